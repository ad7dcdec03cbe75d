"""What each call sends: statements, and so round trips, on a connection that was used before."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from persistence import IndexEntry

ENTRY = IndexEntry("p", 1.0, "name", "status", "tag")
APPEND = [("log", b"told"), ("log", b"twice")]


@pytest.fixture
def sent(store) -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the statements of a call which takes effect, BEGIN and COMMIT among them."""
    counted: list[str] = []
    sa.event.listen(store._owned, "before_cursor_execute", lambda _, cursor, statement, *rest: counted.append(statement))
    store.get("p", "f")

    def count(call: Callable[[], object]) -> int:
        counted.clear()
        assert call() is not False
        return len(counted)

    return count


def test_what_each_call_sends(store, sent):
    many = {f"{place}": b"1" for place in range(100)}
    assert sent(lambda: store.initialize_if_absent("q", "f", b"1")) == 3
    assert sent(lambda: store.initialize_if_absent("p", "f", b"1", many, ENTRY, APPEND)) == 7
    assert sent(lambda: store.write_if_unchanged("p", "f", b"1", {"f": b"2", "a": b"2"}, (), ENTRY)) == 5
    assert sent(lambda: store.write_if_unchanged("p", "f", b"2", {"f": b"3"}, many, ENTRY, APPEND)) == 8
    assert sent(lambda: store.write_if_unchanged("p", "f", b"3", {})) == 1
    assert sent(lambda: not store.write_if_unchanged("p", "f", b"lost", {"a": b"1"})) == 3
    for read in (lambda: store.get("p", "f"), lambda: store.load("p"), lambda: store.entry("p"), store.find):
        assert sent(read) == 1
    assert sent(lambda: store.due(1.0)) == sent(lambda: store.read_log("log")) == 1
    assert sent(lambda: store.delete_if_unchanged("p", "f", b"3", APPEND)) == 7
