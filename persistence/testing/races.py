"""Cases of races: many change one partition at the same moment, and the store lets exactly one of them."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier as ProcessBarrier

import pytest

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["Opener", "ProcessRaceCases", "ThreadRaceCases"]

Opener = Callable[[], Persistence]

CONTESTANTS = 4
ROUNDS = 25
START_SECONDS = 60.0
"""How long contestants wait for each other, the start of a process included."""


class ThreadRaceCases(StoreCases):
    """Threads of one process."""

    def test_of_threads_that_race_for_a_fence_one_wins(self, store: Persistence) -> None:
        prepare(store)
        barrier = threading.Barrier(CONTESTANTS)
        with ThreadPoolExecutor(CONTESTANTS) as pool:
            runs = [pool.submit(contest, store, name, lambda: barrier.wait(START_SECONDS)) for name in range(CONTESTANTS)]
            check(store, [run.result() for run in runs])

    def test_threads_that_count_together_lose_nothing(self, store: Persistence) -> None:
        store.initialize_if_absent("counter", FENCE, b"0")
        barrier = threading.Barrier(CONTESTANTS)
        with ThreadPoolExecutor(CONTESTANTS) as pool:
            for run in [pool.submit(count, store, lambda: barrier.wait(START_SECONDS)) for _ in range(CONTESTANTS)]:
                run.result()
        assert store.get("counter", FENCE) == f"{CONTESTANTS * ROUNDS}".encode()

    def test_a_load_never_shows_half_a_write(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"0", {"a": b"0", "b": b"0"})
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write_both, store)
            seen = [store.load("p")]
            while not writing.done():
                seen.append(store.load("p"))
            writing.result()
        assert [loaded for loaded in seen if len(set(loaded.values())) != 1] == []

    def test_records_index_and_logs_change_at_one_moment(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"0", {}, IndexEntry("p", 0.0))
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write_everything, store)
            seen = [look_at_everything(store)]
            while not writing.done():
                seen.append(look_at_everything(store))
            writing.result()
        seen.append(look_at_everything(store))
        # Each number was read after the one before it, and none of them ever falls behind another.
        assert [numbers for numbers in seen if numbers != sorted(numbers)] == []
        assert seen[-1] == [8 * ROUNDS] * len(seen[-1])


class ProcessRaceCases(StoreCases):
    """Processes that open the same store."""

    @pytest.fixture
    def opener(self) -> Opener:
        """A callable that opens the store under test in another process: picklable, so a function or a `partial` of one."""
        raise NotImplementedError("override the fixture `opener` in your suite: return a picklable callable")

    def test_of_processes_that_race_for_a_fence_one_wins(self, store: Persistence, opener: Opener) -> None:
        prepare(store)
        with processes() as pool:
            runs = [pool.submit(contest_in_process, opener, name) for name in range(CONTESTANTS)]
            check(store, [run.result() for run in runs])
        assert int(store.get("counter", FENCE) or b"") == CONTESTANTS * ROUNDS


def prepare(store: Persistence) -> None:
    """One partition for each round, and the counter."""
    for turn in range(ROUNDS):
        store.initialize_if_absent(f"race {turn}", FENCE, b"start")
    store.initialize_if_absent("counter", FENCE, b"0")


def contest(store: Persistence, name: int, wait: Callable[[], object]) -> list[bool]:
    """Race the others once a round, and tell which rounds were won."""
    won: list[bool] = []
    for turn in range(ROUNDS):
        mine = f"{name}".encode()
        wait()
        won.append(store.write_if_unchanged(f"race {turn}", FENCE, b"start", {FENCE: mine}, append=[(f"race {turn}", mine)]))
    return won


def count(store: Persistence, wait: Callable[[], object]) -> None:
    """Add one to the counter, as often as there are rounds, however often the others come first."""
    wait()
    for _ in range(ROUNDS):
        held = store.get("counter", FENCE) or b""
        while not store.write_if_unchanged("counter", FENCE, held, {FENCE: b"%d" % (int(held) + 1)}):
            held = store.get("counter", FENCE) or b""


def check(store: Persistence, results: list[list[bool]]) -> None:
    """In every round exactly one contestant won, and the store holds that one's write and no other."""
    for turn in range(ROUNDS):
        winners = [f"{name}".encode() for name, won in enumerate(results) if won[turn]]
        assert len(winners) == 1
        assert store.load(f"race {turn}") == {FENCE: winners[0]}
        assert data_of(store.read_log(f"race {turn}")) == winners


def write_both(store: Persistence) -> None:
    """Write three records that always agree, many times."""
    for turn in range(8 * ROUNDS):
        new = f"{turn + 1}".encode()
        assert store.write_if_unchanged("p", FENCE, f"{turn}".encode(), {FENCE: new, "a": new, "b": new})


def write_everything(store: Persistence) -> None:
    """Write a number to a record, to the index and to a log, many times."""
    for turn in range(8 * ROUNDS):
        index = IndexEntry("p", turn + 1.0, summary=f"{turn + 1}")
        append = [("together", f"{turn + 1}".encode())]
        assert store.write_if_unchanged("p", FENCE, f"{turn}".encode(), {FENCE: f"{turn + 1}".encode()}, (), index, append)


def look_at_everything(store: Persistence) -> list[int]:
    """The number in each place, there and back again, so that whichever place were changed first would be caught."""

    def fence() -> int:
        return int(store.get("p", FENCE) or b"")

    def entry() -> int:
        found = store.entry("p")
        return int(found.summary or 0) if found else -1

    def log() -> int:
        return len(store.read_log("together", limit=8 * ROUNDS + 1))

    def due() -> int:
        return int(store.due(1e9)[0].due or 0)

    return [look() for look in (fence, entry, log, due, log, entry, fence)]


class _Together:
    """The barrier of a contestant's process, handed over when that process starts."""

    barrier: ProcessBarrier


def processes() -> ProcessPoolExecutor:
    """A process for each contestant, started afresh so that nothing of this process leaks into it."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(CONTESTANTS, context, _enter, (context.Barrier(CONTESTANTS),))


def _enter(barrier: ProcessBarrier) -> None:
    _Together.barrier = barrier


def contest_in_process(opener: Opener, name: int) -> list[bool]:
    """Race and count in this process, with a store of its own."""
    store = opener()

    def wait() -> int:
        return _Together.barrier.wait(START_SECONDS)

    won = contest(store, name, wait)
    count(store, wait)
    return won
