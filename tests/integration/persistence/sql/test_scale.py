"""What is due and what is found comes in indexed time among 100,000 partitions."""

import time
from collections.abc import Callable

import sqlalchemy as sa

from persistence import IndexEntry
from persistence.sql import SqlPersistence, Tables

FEW, MANY = 1_000, 100_000
REPEATS = 15
PAGE = 10
SLOWER = 10
"""Times that a look-up may take longer among a hundred times as many; one that reads them all takes a hundred."""


def fill(url: sa.URL, first: int, last: int) -> None:
    """So many entries more, one in a hundred with a name of its own, written past the store for the sake of speed."""

    def row(place: int) -> dict[str, object]:
        name = b"rare %d" % (place // 100) if place % 100 == 0 else b"common"
        status = b"failed" if place % 50 == 7 and place < FEW else b"suspended"
        words = {"name": name, "status": status, "tag": b"tag %d" % place, "summary": b""}
        return {"partition": b"p%07d" % place, "due": float(place), **words}

    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.insert(Tables().index), [row(place) for place in range(first, last)])


def seconds(look: Callable[[], object]) -> float:
    """What a look-up takes when nothing else is in its way."""
    took: list[float] = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        look()
        took.append(time.perf_counter() - begun)
    return min(took)


def test_look_ups_hardly_know_how_many_partitions_there_are(store: SqlPersistence, any_url: sa.URL) -> None:
    looks: dict[str, Callable[[], list[IndexEntry]]] = {
        "due": lambda: store.due(1e9, PAGE),
        "nothing due": lambda: store.due(-1.0, PAGE),
        "name": lambda: store.find(name="rare 3", limit=PAGE),
        "tag": lambda: store.find(tag="tag 77", limit=PAGE),
        "status": lambda: store.find(status="suspended", limit=PAGE),
        "rare pair": lambda: store.find(name="common", status="failed", limit=PAGE),
        "absent pair": lambda: store.find(name="rare 3", status="failed", limit=PAGE),
        "page": lambda: store.find(status="suspended", limit=PAGE, after=IndexEntry(f"p{FEW // 2:07}")),
    }
    fill(any_url, 0, FEW)
    before = {name: (look(), seconds(look)) for name, look in looks.items()}
    fill(any_url, FEW, MANY)
    after = {name: (look(), seconds(look)) for name, look in looks.items()}
    assert {name: found for name, (found, _) in after.items()} == {name: found for name, (found, _) in before.items()}
    assert {name: after[name][1] / took for name, (_, took) in before.items() if after[name][1] > SLOWER * took} == {}
