"""The store in a directory keeps the contract, among processes too."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

from persistence import IndexEntry, Persistence, PersistenceError
from persistence.file import FilePersistence
from persistence.file.names import file_name
from persistence.testing import SharedPersistenceContract
from persistence.testing.fixtures import data_of


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk in this process; what waits for it is proven where power is cut."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


class TestFilePersistence(SharedPersistenceContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Callable[[], Persistence]:
        return partial(FilePersistence, tmp_path / "store")

    @pytest.fixture
    def store(self, opener: Callable[[], Persistence]) -> Persistence:
        return opener()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> FilePersistence:
    return FilePersistence(root)


def file_of(root: Path) -> Path:
    """The file of the only partition."""
    (path,) = (root / "partitions").iterdir()
    return path


def changes(store: Persistence) -> dict[str, Callable[[], object]]:
    """Everything that reads or changes partition `p`."""
    return {
        "get": lambda: store.get("p", "f"),
        "load": lambda: store.load("p"),
        "initialize": lambda: store.initialize_if_absent("p", "f", b"2"),
        "write": lambda: store.write_if_unchanged("p", "f", b"1", {"f": b"2"}),
        "delete": lambda: store.delete_if_unchanged("p", "f", b"1"),
    }


def test_c247_the_directory_is_made_at_the_first_write_for_this_user_alone(tmp_path):
    root = tmp_path / "a" / "b"
    store = FilePersistence(root)
    assert store.load("p") == {}
    assert store.entry("p") is None
    assert store.due(9.0) == store.find() == store.read_log("log") == []
    assert not store.write_if_unchanged("p", "f", b"", {"f": b"1"})
    assert not store.delete_if_unchanged("p", "f", b"")
    assert not (tmp_path / "a").exists()
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])
    assert {path.stat().st_mode & 0o077 for path in [root, *root.rglob("*")]} == {0}


@pytest.mark.parametrize(
    "partition", ["../../outside", "/etc/passwd", "..", ".", "", "a/b", "\x00", "~", "é\u202e", "x" * 256, "é" * 5000, "con"]
)
def test_c247_any_id_of_any_length_stays_inside_the_directory(tmp_path, root, store, partition):
    entry = IndexEntry(partition, 1.0)
    assert store.initialize_if_absent(partition, "f", b"1", {"k" * 1000: b"1"}, entry, [(partition, b"told")])
    assert FilePersistence(root).load(partition) == {"f": b"1", "k" * 1000: b"1"}
    assert store.due(1.0) == [entry]
    assert data_of(store.read_log(partition)) == [b"told"]
    assert list(tmp_path.iterdir()) == [root]
    assert [path.parent for path in root.rglob("*.store")] == [root / "partitions"]


def test_c315_ids_that_differ_in_case_alone_have_names_that_differ_without_it(root, store):
    for partition in ("Order:A", "order:a", "ORDER:A"):
        store.initialize_if_absent(partition, "f", partition.encode())
    names = {path.name for path in (root / "partitions").iterdir()}
    assert len({name.casefold() for name in names}) == 3
    assert names == {name.casefold() for name in names}
    assert [store.get(partition, "f") for partition in ("Order:A", "order:a")] == [b"Order:A", b"order:a"]


def test_a_name_tells_people_which_partition_it_is(root, store):
    store.initialize_if_absent("jarvis-briefing-2026-12-01", "f", b"1")
    assert file_of(root).name.startswith("jarvis-briefing-2026-12-01.")


def test_c247_every_damaged_byte_of_a_file_is_an_error_and_never_absence(root, store):
    store.initialize_if_absent("p", "f", b"1", {"a": b"\x00\xff"}, IndexEntry("p", 1.0, "name"))
    whole = file_of(root).read_bytes()
    damaged = [whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :] for place, byte in enumerate(whole)]
    cut = [whole[:length] for length in range(len(whole))]
    for content in [*damaged, *cut, whole + b"\x00", b"", b"\n", b"null\n", b"{}\n"]:
        file_of(root).write_bytes(content)
        for change in changes(store).values():
            with pytest.raises(PersistenceError, match=r"the file '.*\.store' is corrupt .*backup"):
                change()
        assert file_of(root).read_bytes() == content
    file_of(root).write_bytes(b"")
    for look in (lambda: store.due(9.0), store.find, lambda: store.entry("p")):
        with pytest.raises(PersistenceError, match="is corrupt in its first line"):
            look()


def test_a_file_of_a_later_version_asks_for_an_update(root, store):
    text = json.dumps({"version": 2, "partition": "p", "token": "", "index": None}).encode()
    (root / "partitions").mkdir(parents=True)
    store.initialize_if_absent("p", "f", b"1")
    file_of(root).write_bytes(b"%08x %b\n" % (crc32(text), text))
    with pytest.raises(PersistenceError, match="version 2: update this program"):
        store.load("p")


def test_a_file_under_the_name_of_another_partition_is_an_error(root, store):
    store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p"))
    of_p = file_of(root)
    store.initialize_if_absent("q", "f", b"1")
    of_q = next(path for path in (root / "partitions").iterdir() if path != of_p)
    of_q.write_bytes(of_p.read_bytes())
    for look in (lambda: store.load("q"), store.find, lambda: store.delete_if_unchanged("q", "f", b"1")):
        with pytest.raises(PersistenceError, match="holds partition 'p', which has another name"):
            look()
    assert store.load("p") == {"f": b"1"}


def test_files_of_others_in_the_directory_are_passed_over(root, store):
    store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p"))
    (root / "partitions" / ".DS_Store").write_bytes(b"theirs")
    (root / "partitions" / "notes").mkdir()
    assert store.find() == [IndexEntry("p")]


@pytest.mark.parametrize("intent", ["write", "delete"])
def test_c247_a_link_is_replaced_or_removed_and_its_target_kept(tmp_path, root, store, intent):
    store.initialize_if_absent("p", "f", b"1")
    link, target = file_of(root), tmp_path / "target"
    link.rename(target)
    link.symlink_to(target)
    before = target.read_bytes()
    assert changes(store)[intent]()
    assert not link.is_symlink()
    assert link.exists() == (intent == "write")
    assert target.read_bytes() == before


@pytest.mark.parametrize("name", ["new", "undo.new"])
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path, root, store, name):
    target = tmp_path / "target"
    target.write_text("theirs")
    root.mkdir()
    (root / name).symlink_to(target)
    assert store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])
    assert target.read_text() == "theirs"


def test_a_linked_lock_is_refused(tmp_path, root, store):
    root.mkdir()
    (root / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(PersistenceError, match="symbolic link is in the way: remove it"):
        store.initialize_if_absent("p", "f", b"1")


@pytest.mark.parametrize("place", ["", "partitions"])
def test_a_file_in_the_place_of_a_directory_is_told(tmp_path, place):
    root = tmp_path / "store"
    (root / place).parent.mkdir(exist_ok=True)
    (root / place).write_text("theirs")
    store = FilePersistence(root)
    for change in (*changes(store).values(), store.find, lambda: store.entry("p")):
        with pytest.raises(PersistenceError, match="part of the path is a file: choose a directory"):
            change()
    assert (root / place).read_text() == "theirs"


def test_a_directory_in_the_place_of_a_file_is_told(root, store):
    store.initialize_if_absent("p", "f", b"1")
    file_of(root).unlink()
    file_of_p = root / "partitions" / f"{file_name('p')}.store"
    file_of_p.mkdir()
    for change in (*changes(store).values(), store.find):
        with pytest.raises(PersistenceError, match="a directory is in the way: move it away"):
            change()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_that_cannot_lock_is_told_and_nothing_is_written(root, store, monkeypatch, code):
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])

    def refuse(file: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        for name in ("initialize", "write", "delete"):
            with pytest.raises(PersistenceError, match="cannot lock: keep the store on a local disk"):
                changes(store)[name]()
        for look in (lambda: store.read_log("log"), store.find, lambda: store.due(1.0)):
            with pytest.raises(PersistenceError, match="cannot lock"):
                look()
        assert store.load("p") == {"f": b"1"}
    assert store.write_if_unchanged("p", "f", b"1", {"f": b"2"})


def test_no_file_stays_open(store):
    for turn in range(20):
        store.initialize_if_absent(f"{turn}", "f", b"1", append=[("log", b"1")])
        store.write_if_unchanged(f"{turn}", "f", b"1", {"f": b"2"}, append=[("log", b"1")])
        store.read_log("log")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for turn in range(20):
        store.delete_if_unchanged(f"{turn}", "f", b"2")
    store.find()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_store_that_was_removed_begins_again(root, store):
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])
    shutil.rmtree(root)
    assert store.load("p") == {}
    assert store.read_log("log") == []
    assert store.initialize_if_absent("p", "f", b"1")


def test_a_store_whose_lock_was_removed_shows_what_it_holds(root, store):
    store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", 1.0), append=[("log", b"1")])
    for look in (store.find, lambda: store.due(1.0), lambda: store.read_log("log")):
        (root / "lock").unlink()
        assert len(look()) == 1


def test_a_log_keeps_its_newest_entries_up_to_twice_its_limit(root):
    store = FilePersistence(root, log_limit=10)
    store.initialize_if_absent("p", "f", b"1")
    for turn in range(95):
        store.write_if_unchanged("p", "f", b"1", {}, append=[("log", b"%d" % turn)])
        kept = data_of(store.read_log("log"))
        assert kept == [b"%d" % place for place in range(turn + 1 - len(kept), turn + 1)]
        assert min(turn + 1, 10) <= len(kept) <= 20


def test_who_reads_a_log_slowly_reads_on_at_the_oldest_entry_that_is_kept(root):
    store = FilePersistence(root, log_limit=2)
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"first")])
    position = store.read_log("log")[0].position
    for turn in range(9):
        store.write_if_unchanged("p", "f", b"1", {}, append=[("log", b"%d" % turn)])
    assert data_of(store.read_log("log", position)) == [b"5", b"6", b"7", b"8"]


@pytest.mark.parametrize("position", ["1-1", "1-2", "9-10", "2-1", "01-14", "1-999", "1-14-", "1-\u0661"])
def test_a_position_inside_an_entry_or_behind_the_end_is_refused(store, position):
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])
    with pytest.raises(ValueError, match="hand back one that read_log gave"):
        store.read_log("log", position)


def test_every_damaged_byte_of_a_log_is_an_error(root, store):
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"one"), ("log", b"two" * 2000)])
    (path,) = root.rglob("*.log")
    whole = path.read_bytes()
    places = [*range(40), *range(len(whole) - 40, len(whole))]
    damaged = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in places]
    for content in (*damaged, whole[:-1], whole + b"3", whole + b"\n"):
        path.write_bytes(content)
        with pytest.raises(PersistenceError, match=r"log file .* is corrupt: restore it from a backup"):
            store.read_log("log")
    path.write_bytes(whole[:-2])
    with pytest.raises(PersistenceError, match="is corrupt"):
        store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, append=[("log", b"3")])
    assert store.load("p") == {"f": b"1"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[1, 2]", b'["p", null, [[1]]]', b"\xff"])
def test_a_damaged_undo_note_is_an_error(root, store, content):
    store.initialize_if_absent("p", "f", b"1")
    (root / "undo").write_bytes(content)
    with pytest.raises(PersistenceError, match=r"undo note .* is corrupt"):
        store.write_if_unchanged("p", "f", b"1", {"f": b"2"})
    assert store.load("p") == {"f": b"1"}
