"""Where a segment's live items go: nowhere, or over a bounded hand-over to whoever reads them.

A slow reader slows the run: a node that has an item to give waits until the one before it has been taken.
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["HandOver", "NoOutput", "Output"]

T = TypeVar("T")


class Output(Protocol):
    """Takes live items."""

    def put(self, item: Any) -> None:
        """Hand over one item, waiting for room. Blocks; not for an event loop's thread."""
        ...

    def put_at_once(self, item: Any) -> None:
        """Hand over one item without waiting, for code on an event loop."""
        ...


class NoOutput:
    """Nobody reads."""

    def put(self, item: Any) -> None:
        """See `Output.put`."""

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""


@dataclass(frozen=True, slots=True)
class _End(Generic[T]):
    result: T | None
    error: BaseException | None


class HandOver(Generic[T]):
    """Items from a segment's thread to its reader, one at a time, and at the end its result or its error."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: deque[Any] = deque()
        self._end: _End[T] | None = None
        self._closed = False

    def put(self, item: Any) -> None:
        """See `Output.put`. Once the reader has gone, items are dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._items)
            self._add(item)

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""
        with self._changed:
            self._add(item)

    def finish(self, result: T | None, error: BaseException | None = None) -> None:
        """The segment has ended."""
        with self._changed:
            self._end = _End(result, error)
            self._changed.notify_all()

    def close(self) -> None:
        """The reader has gone: let whoever waits go on."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def take(self) -> tuple[bool, Any]:
        """The next item as (True, item), or (False, result) at the end. Blocks. Raises what the segment raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._end)
            if self._items:
                self._changed.notify_all()
                return True, self._items.popleft()
            end = self._end
        if end is not None and end.error is not None:
            raise end.error
        return False, end and end.result

    def _add(self, item: Any) -> None:
        if not self._closed:
            self._items.append(item)
            self._changed.notify_all()
