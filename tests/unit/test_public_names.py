"""The public names of every room: pinned, sorted, and all of them there."""

import importlib
import subprocess
import sys

import pytest

ROOMS = {
    "persistence": [
        "InMemoryPersistence",
        "IndexEntry",
        "LogEntry",
        "Persistence",
        "PersistenceError",
        "RedisPersistence",
        "UnreachableError",
        "open_persistence",
    ],
    "persistence.redis": ["RedisLink", "RedisPersistence", "Script", "connect", "load_script"],
    "persistence.testing": ["PersistenceContract", "SharedPersistenceContract"],
}
"""What a room promises. A name that is added here stays."""

NOT_LOADED = {"persistence": ["redis", "pytest", "hypothesis"]}
"""What importing a room does not load: clients and tools that only some of its users need."""


@pytest.mark.parametrize("room", ROOMS)
def test_the_public_names_of_a_room_are_pinned_and_sorted(room):
    assert importlib.import_module(room).__all__ == ROOMS[room]
    assert ROOMS[room] == sorted(ROOMS[room])


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_there(room):
    module = importlib.import_module(room)
    assert [name for name in ROOMS[room] if getattr(module, name, None) is None] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_a_room_does_not_have_is_an_attribute_error(room):
    with pytest.raises(AttributeError, match="no_such_name"):
        importlib.import_module(room).no_such_name  # noqa: B018 - read for the error that it raises


@pytest.mark.parametrize("room", NOT_LOADED)
def test_importing_a_room_loads_no_client(room):
    program = f"import sys, {room}; print([name for name in {NOT_LOADED[room]} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
