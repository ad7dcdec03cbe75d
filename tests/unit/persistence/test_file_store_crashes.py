"""A write to the store in a directory happens as a whole or not at all, wherever the process or the power ends."""

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from persistence import IndexEntry, Persistence, PersistenceError, UnreachableError
from persistence.file import FilePersistence
from persistence.file.disk import Disk

LOGS = ("log", "other log")
LOG_LIMIT = 2
"""So few that most writes begin a new segment."""


@dataclass(frozen=True)
class Seen:
    """All that a store shows of its one partition and its logs."""

    records: dict[str, bytes]
    entry: IndexEntry | None
    found: list[IndexEntry]
    logs: list[list[bytes]]


def seen(store: Persistence) -> Seen:
    logs = [[entry.data for entry in store.read_log(log)] for log in LOGS]
    return Seen(store.load("p"), store.entry("p"), store.find(), logs)


def begin(store: Persistence) -> bool:
    return store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, IndexEntry("p", 1.0), [("log", b"1"), ("other log", b"2")])


def write(store: Persistence) -> bool:
    append = [("log", b"3"), ("log", b"4"), ("other log", b"5")]
    return store.write_if_unchanged("p", "f", b"1", {"f": b"2", "b": b"2"}, ["a"], IndexEntry("p", 2.0, "name"), append)


def write_alone(store: Persistence) -> bool:
    return store.write_if_unchanged("p", "f", b"1", {"f": b"2", "b": b"2"}, ["a"], IndexEntry("p", 2.0))


def append_alone(store: Persistence) -> bool:
    return store.write_if_unchanged("p", "f", b"1", {}, append=[("log", b"3")])


def delete(store: Persistence) -> bool:
    return store.delete_if_unchanged("p", "f", b"1", [("log", b"6"), ("other log", b"7")])


def nothing(store: Persistence) -> bool:
    return True


def begin_and_fill(store: Persistence) -> bool:
    """A log whose last segment is full, so that the next write begins another and one too old goes."""
    begin(store)
    return all(store.write_if_unchanged("p", "f", b"1", {}, append=[("log", b"x")]) for _ in range(3))


Step = Callable[[Persistence], bool]
WRITES: dict[str, tuple[Step, Step]] = {
    "begin": (nothing, begin),
    "write": (begin, write),
    "write alone": (begin, write_alone),
    "append alone": (begin, append_alone),
    "delete": (begin, delete),
    "write to full segments": (begin_and_fill, write),
    "delete with full segments": (begin_and_fill, delete),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: what is durable is told by the disks of these tests, and that they tell the truth by the last one."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(params=WRITES)
def case(request: pytest.FixtureRequest) -> tuple[Step, Step]:
    """Return what stands before, and the write that is struck."""
    return WRITES[request.param]


def without_old(one: Seen) -> tuple[object, ...]:
    """What is seen, apart from the entries that are too old to be kept: they go after the write that makes them so."""
    return one.records, one.entry, one.found, [log[-2:] for log in one.logs]


def around(root: Path, case: tuple[Step, Step]) -> list[tuple[object, ...]]:
    """What is seen before and after the write, when nothing strikes."""
    store = FilePersistence(root, log_limit=LOG_LIMIT)
    case[0](store)
    before = seen(store)
    assert case[1](store)
    return [without_old(before), without_old(seen(store))]


@pytest.mark.parametrize("moment", ["before", "half", "after"])
def test_a_process_that_dies_at_any_operation_leaves_all_of_a_write_or_nothing(tmp_path, disks, case, moment):
    before, after = around(tmp_path / "model", case)
    outcomes = []
    for number in count(1):
        root = tmp_path / f"{number}"
        case[0](FilePersistence(root, log_limit=LOG_LIMIT))
        disk = disks.Struck()
        disk.die_at(number, moment)
        with suppress(disks.Death):
            case[1](FilePersistence(root, log_limit=LOG_LIMIT, disk=disk))
        if disk.count < number:
            break
        store = FilePersistence(root, log_limit=LOG_LIMIT)
        outcomes.append(without_old(seen(store)))
        if outcomes[-1] == before:
            assert case[1](store)
        assert without_old(seen(store)) == after
        assert_tidy(root)
    assert [outcome for outcome in outcomes if outcome not in (before, after)] == []
    assert before in outcomes
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome == after)


def test_a_power_cut_at_any_moment_leaves_all_of_a_write_or_nothing(tmp_path, disks, materialize, case):
    before, after = around(tmp_path / "model", case)
    root = tmp_path / "store"
    disk = disks.Forgetful(root)
    store = FilePersistence(root, log_limit=LOG_LIMIT, disk=disk)
    case[0](store)
    disk.cuts.clear()
    assert case[1](store)
    outcomes = [without_old(seen(FilePersistence(materialize(files), log_limit=LOG_LIMIT))) for files in distinct(disk.cuts)]
    assert [outcome for outcome in outcomes if outcome not in (before, after)] == []
    assert before in outcomes
    # What the store has promised is there whatever is lost now.
    for files in distinct([disk.left()]):
        assert without_old(seen(FilePersistence(materialize(files), log_limit=LOG_LIMIT))) == after


def test_a_power_cut_while_a_crash_is_put_in_order_loses_and_repeats_nothing(tmp_path, disks, materialize, case):
    states = around(tmp_path / "model", case)
    for number in count(1):
        root = tmp_path / f"{number}"
        case[0](FilePersistence(root, log_limit=LOG_LIMIT))
        killed = disks.Struck()
        killed.die_at(number, "after")
        with suppress(disks.Death):
            case[1](FilePersistence(root, log_limit=LOG_LIMIT, disk=killed))
        if killed.count < number:
            break
        disk = disks.Forgetful(root)
        disk.adopt()
        seen(FilePersistence(root, log_limit=LOG_LIMIT, disk=disk))
        for files in distinct([*disk.cuts, disk.left()]):
            assert without_old(seen(FilePersistence(materialize(files), log_limit=LOG_LIMIT))) in states


def distinct(cuts: list[list[dict[str, bytes]]]) -> list[dict[str, bytes]]:
    """Every state of the disk once."""
    return [dict(files) for files in {tuple(sorted(files.items())) for cut in cuts for files in cut}]


def assert_tidy(root: Path) -> None:
    """Only the files of the layout are there."""
    names = {path.name for path in root.glob("*")}
    assert names <= {"lock", "partitions", "logs"}
    assert {path.suffix for path in root.glob("partitions/*")} <= {".store"}


REFUSALS = {
    errno.ENOSPC: "disk is full: free space .*nothing was written",
    errno.EDQUOT: "quota .*free space",
    errno.EACCES: "owner or rights",
    errno.EROFS: "read-only: mount it for writing",
    errno.EIO: "the disk failed",
    errno.EBADMSG: "the disk refused",
}


@pytest.mark.parametrize("code", REFUSALS, ids=errno.errorcode.get)
def test_c314_a_disk_that_refuses_any_operation_is_an_error_with_advice_and_nothing_is_written(tmp_path, disks, case, code):
    before, after = around(tmp_path / "model", case)
    for number in count(1):
        root = tmp_path / f"{number}"
        case[0](FilePersistence(root, log_limit=LOG_LIMIT))
        disk = disks.Struck()
        disk.strike = refusing(number, code)
        store = FilePersistence(root, log_limit=LOG_LIMIT, disk=disk)
        refused = refusal(case[1], store)
        if isinstance(refused, UnreachableError):
            # The file is in its place, and only its folder could not be settled.
            assert "look at the disk, then read" in str(refused)
        elif refused is not None:
            assert re.search(REFUSALS[code], str(refused))
            assert without_old(seen(store)) == before
            assert_tidy(root)
            assert case[1](store)
        assert without_old(seen(store)) == after
        assert_tidy(root)
        if disk.count < number:
            break


def refusal(step: Step, store: Persistence) -> PersistenceError | None:
    """What the store says to a write that it does not take."""
    try:
        assert step(store)
    except PersistenceError as refused:
        return refused
    return None


@pytest.mark.parametrize("moment", ["before", "half"])
def test_a_disk_that_stays_full_takes_nothing_until_there_is_space(tmp_path, disks, case, moment):
    root = tmp_path / "store"
    before, after = around(tmp_path / "model", case)
    disk = disks.Struck()
    store = FilePersistence(root, log_limit=LOG_LIMIT, disk=disk)
    case[0](store)

    def full(number: int, name: str, at: str) -> None:
        if name in ("create", "append") and at == moment:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk.strike = full
    for _ in range(3):
        with pytest.raises(PersistenceError, match="disk is full"):
            case[1](store)
        assert without_old(seen(store)) == before
    disk.strike = lambda number, name, at: None
    assert case[1](store)
    assert without_old(seen(store)) == after
    assert_tidy(root)


def refusing(place: int, code: int) -> Callable[[int, str, str], None]:
    """Refuse one operation, half-way if it has halves."""

    def strike(number: int, name: str, at: str) -> None:
        if number == place and at == ("half" if name in ("create", "append") else "before"):
            raise OSError(code, os.strerror(code))

    return strike


def test_every_operation_is_durable_before_it_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    disk = Disk()
    disk.make_folder(tmp_path / "one" / "two")
    disk.create(tmp_path / "file", b"1")
    disk.append(tmp_path / "file", 1, b"2")
    disk.cut(tmp_path / "file", 1)
    disk.settle(tmp_path / "one")
    assert synced == [tmp_path.name, "one", "file", "file", "file", "one"]
