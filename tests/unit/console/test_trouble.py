"""What a person sees of each room's errors."""

import errno

import pytest

from bus import BusError
from console.errors import BriefingFailedError, ForeignRoomError, MisuseError
from console.trouble import explained
from mesh.errors import ConfigError, MeshError
from persistence import PersistenceError, UnreachableError
from workers.errors import FolderInUseError, ServerNotFoundError, SettingsError
from workflow import WorkflowError


@pytest.mark.parametrize("error", [MisuseError("do this"), ConfigError("do this"), SettingsError("do this")])
def test_what_a_person_wrote_wrongly_is_misuse(error):
    assert explained(error) == ("do this", 2)


@pytest.mark.parametrize(
    "error",
    [
        BriefingFailedError("do this"),
        ForeignRoomError("do this"),
        BusError("do this"),
        MeshError("do this"),
        PersistenceError("do this"),
        UnreachableError("do this"),
        FolderInUseError("do this", 7),
        ServerNotFoundError("do this"),
        WorkflowError("do this"),
    ],
)
def test_every_other_error_of_a_room_is_its_own_line(error):
    assert explained(error) == ("do this", 1)


def test_an_error_of_many_lines_becomes_one():
    assert explained(WorkflowError("first\n  second\n")) == ("first second", 1)


def test_a_full_disk_is_no_bug():
    line, code = explained(OSError(errno.ENOSPC, "No space left on device", "page.md"))
    assert (line.startswith("the disk is full"), code) == (True, 1)
