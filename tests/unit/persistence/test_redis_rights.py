"""The page that lists the rights grants what the code asks for, and no more."""

import re
from pathlib import Path

import pytest

from bus.redis import bus, channel
from console.health.servers import NEEDS
from mesh.heartbeats import redis as heartbeats
from mesh.knowledge import redis as knowledge
from persistence.redis import CONNECTION_RIGHTS, STORE_RIGHTS, store
from workers import composition
from workers.limits import redis as limits
from workers.waking import redis as waking

ROOT = Path(__file__).parents[3]
LINES = re.findall(r"^ACL SETUSER .*", (ROOT / "docs" / "reference" / "redis.md").read_text(), re.MULTILINE)
CALLED = re.compile(r"redis\.call\('([A-Z]+)'(?:, *'([A-Z]+)')?")
CONTAINERS = {"XGROUP", "XINFO"}


def granted(line: str) -> set[str]:
    return {word[1:] for word in line.split() if word.startswith("+")}


def called(*rooms: str) -> set[str]:
    """The commands that the scripts of these rooms call, as ACL SETUSER takes them."""
    found = [call for room in rooms for file in (ROOT / room).rglob("*.lua") for call in CALLED.findall(file.read_text())]
    return {f"{name}|{sub}".lower() if name in CONTAINERS else name.lower() for name, sub in found}


def test_the_page_has_a_user_of_the_store_and_one_of_the_mesh():
    store, mesh = LINES
    assert granted(store) == {*STORE_RIGHTS, *CONNECTION_RIGHTS}
    assert granted(mesh) == granted(store) | {name for names in NEEDS.values() for name in names}


@pytest.mark.parametrize(
    ("line", "rooms"), [(LINES[0], ["persistence"]), (LINES[1], ["persistence", "bus", "mesh", "workers"])]
)
def test_every_command_of_the_scripts_is_granted(line, rooms):
    assert called(*rooms) - granted(line) == set()


FAMILIES = {
    *(store.DEFAULT_PREFIX, composition.ALERT_PREFIX, composition.HISTORY_PREFIX),
    *(f"{{{bus.DEFAULT_STREAM}}}:", f"{{{channel.DEFAULT_NAME}:", limits.DEFAULT_PREFIX),
    *(heartbeats.DEFAULT_PREFIX, knowledge.DEFAULT_PREFIX, waking.DEFAULT_KEY),
}
"""What the keys of a mesh begin with."""


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_page_opens_every_family_of_keys_and_the_doctor_asks_for_it(family):
    patterns = [word[1:].removesuffix("*") for word in LINES[1].split() if word.startswith("~")]
    assert any(family.startswith(pattern) for pattern in patterns)
    assert sum(key.startswith(family) for key in NEEDS) == 1


def test_the_doctor_asks_for_no_other_family_of_keys():
    assert all(any(key.startswith(family) for family in FAMILIES) for key in NEEDS)
