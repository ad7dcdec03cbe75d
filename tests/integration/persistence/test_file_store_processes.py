"""The store in a directory among real processes: killed ones, forked ones, and one that may write no large file."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from persistence import open_persistence

ROUNDS = 12
WRITERS = 3

COUNT = """
import itertools, sys
from persistence import IndexEntry, open_persistence

store, name = open_persistence(sys.argv[1]), sys.argv[2]
for turn in itertools.count(int(store.get(name, "f") or b"0")):
    told = [("log", b"%s %d" % (name.encode(), turn + 1)), (f"log of {name}", b"%d" % (turn + 1))]
    index = IndexEntry(name, float(turn + 1))
    if turn == 0:
        assert store.initialize_if_absent(name, "f", b"1", {"copy": b"1"}, index, told)
    else:
        new = b"%d" % (turn + 1)
        assert store.write_if_unchanged(name, "f", b"%d" % turn, {"f": new, "copy": new}, (), index, told)
    print(turn + 1, flush=True)
"""

DIE_WITH_THE_LOCK = """
import os, signal, sys
from pathlib import Path
from persistence.file.lock import locked

with locked(Path(sys.argv[1]), create=True):
    child = os.fork()
    if child == 0:
        print("forked", flush=True)
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
"""

FORK_WHILE_WRITING = """
import os, sys, threading
from persistence import open_persistence

store = open_persistence(sys.argv[1])
store.initialize_if_absent("parent", "f", b"0")
done = threading.Event()

def write():
    turn = 0
    while not done.is_set():
        assert store.write_if_unchanged("parent", "f", b"%d" % turn, {"f": b"%d" % (turn + 1)}, append=[("log", b"parent")])
        turn += 1

thread = threading.Thread(target=write)
thread.start()
for place in range(10):
    child = os.fork()
    if child == 0:
        assert store.initialize_if_absent(f"child {place}", "f", b"1", append=[("log", b"child")])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
done.set()
thread.join()
entries = [entry.data for entry in store.read_log("log", limit=100_000)]
assert entries.count(b"child") == 10
assert entries.count(b"parent") == int(store.get("parent", "f"))
"""

WRITE_TOO_MUCH = """
import resource, sys
from persistence import PersistenceError, open_persistence

store = open_persistence(sys.argv[1])
store.initialize_if_absent("p", "f", b"1", append=[("log", b"1")])
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
for large in ({"records": {"f": bytes(9000)}}, {"records": {"f": b"2"}, "append": [("log", bytes(9000))]}):
    try:
        store.write_if_unchanged("p", "f", b"1", **large)
    except PersistenceError as refused:
        print(refused)
assert store.load("p") == {"f": b"1"}
assert [entry.data for entry in store.read_log("log")] == [b"1"]
assert store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, append=[("log", b"2")])
assert [entry.data for entry in store.read_log("log")] == [b"1", b"2"]
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a program; whatever still runs after the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(program: str, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", program, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_processes_that_are_killed_while_they_write_lose_and_repeat_nothing(tmp_path: Path, start: Start):
    url = f"file://{tmp_path}/store"
    for turn in range(ROUNDS):
        writers = {f"p{number}": start(COUNT, url, f"p{number}") for number in range(WRITERS)}
        said = {}
        for place, (name, process) in enumerate(writers.items()):
            # Each dies somewhere behind a line of its own.
            said[name] = [process.stdout.readline() for _ in range(1 + (turn + place) % 5)]
            process.kill()
        for name, process in writers.items():
            said[name] += process.stdout.read().splitlines(keepends=True)
        check_counts(url, {name: int(lines[-1]) for name, lines in said.items() if lines[-1].endswith("\n")})


def check_counts(url: str, said: dict[str, int]) -> None:
    """Everything that a writer told is there, at most one write more, and the logs hold each write once and in order."""
    store = open_persistence(url)
    log = [entry.data.decode() for entry in store.read_log("log", limit=1_000_000)]
    for name, told in said.items():
        count = int(store.get(name, "f") or b"")
        assert told <= count <= told + 1
        assert store.load(name) == {"f": b"%d" % count, "copy": b"%d" % count}
        assert store.entry(name).due == count
        numbers = [str(number) for number in range(1, count + 1)]
        assert [line.split()[1] for line in log if line.startswith(f"{name} ")] == numbers
        assert [entry.data.decode() for entry in store.read_log(f"log of {name}", limit=1_000_000)] == numbers


def test_a_lock_ends_with_its_holder_though_a_forked_child_lives_on(tmp_path: Path, start: Start):
    root = tmp_path / "store"
    root.mkdir()
    process = start(DIE_WITH_THE_LOCK, str(root / "lock"))
    assert process.stdout.readline() == "forked\n"
    assert process.wait() == -9
    assert open_persistence(f"file://{root}").initialize_if_absent("p", "f", b"1")


def test_a_process_may_fork_while_a_thread_of_it_writes(tmp_path: Path, start: Start):
    process = start(FORK_WHILE_WRITING, f"file://{tmp_path}/store")
    process.communicate()
    assert process.returncode == 0


def test_a_file_that_the_system_refuses_to_let_grow_is_told_and_nothing_of_it_is_left(tmp_path: Path, start: Start):
    process = start(WRITE_TOO_MUCH, f"file://{tmp_path}/store")
    told = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert len(told) == 2
    assert all("raise the limit; nothing was written" in line for line in told)
    assert {path.name for path in (tmp_path / "store").iterdir()} == {"lock", "partitions", "logs"}
