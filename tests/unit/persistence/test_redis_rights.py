"""The page that lists the rights grants what the code asks for, and no more."""

import re
from pathlib import Path

import pytest

from console.health.servers import NEEDS
from persistence.redis import CONNECTION_RIGHTS, STORE_RIGHTS

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
