"""Cases of scale: what is due and what is found comes by an index, whatever the number of partitions."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases

__all__ = ["ScaleCases"]

THREADS = 8
REPEATS = 15
PAGE = 10
SLOWER = 10
"""Times that a look-up may take longer among a hundred times as many partitions; one that reads them all takes a hundred."""


def fill(store: Persistence, first: int, last: int) -> None:
    """So many partitions more, one in a hundred of them with a name of its own, all of them due one after the other."""

    def add(place: int) -> None:
        name = f"rare {place // 100}" if place % 100 == 0 else "common"
        entry = IndexEntry(f"p{place:07}", float(place), name, "suspended", f"tag {place}")
        assert store.initialize_if_absent(entry.partition, FENCE, b"1", index=entry)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(add, range(first, last)))


def seconds(look: Callable[[], object]) -> float:
    """What a look-up takes when nothing else is in its way."""
    took: list[float] = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        look()
        took.append(time.perf_counter() - begun)
    return min(took)


class ScaleCases(StoreCases):
    """The index at two sizes."""

    few: ClassVar[int] = 1_000
    """Partitions at first."""
    many: ClassVar[int] = 100_000
    """Partitions in the end."""

    def test_what_is_due_and_found_comes_in_indexed_time(self, store: Persistence) -> None:
        looks: dict[str, Callable[[], list[IndexEntry]]] = {
            "due": lambda: store.due(1e9, PAGE),
            "nothing due": lambda: store.due(-1.0, PAGE),
            "name": lambda: store.find(name="rare 3", limit=PAGE),
            "tag": lambda: store.find(tag="tag 77", limit=PAGE),
            "status": lambda: store.find(status="suspended", limit=PAGE),
            "page": lambda: store.find(status="suspended", limit=PAGE, after=IndexEntry(f"p{self.few // 2:07}")),
        }
        fill(store, 0, self.few)
        before = {name: (look(), seconds(look)) for name, look in looks.items()}
        fill(store, self.few, self.many)
        after = {name: (look(), seconds(look)) for name, look in looks.items()}
        assert {name: found for name, (found, _) in after.items()} == {name: found for name, (found, _) in before.items()}
        ratios = {name: after[name][1] / before[name][1] for name in looks}
        assert {name: ratio for name, ratio in ratios.items() if ratio > SLOWER * self.many / self.few / 100} == {}
