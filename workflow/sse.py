"""Framing for HTTP edges that push to browsers: server-sent events, as the WHATWG's HTML standard defines them.

Serve what these functions return as ``text/event-stream``, in UTF-8, unbuffered and never cached. A browser that loses its
connection comes back by itself and sends the id of the last event that it got in the header ``Last-Event-ID``; an id that says
where to go on, such as the cursor of a watched frame, makes it go on there.
"""

import json
import re
from typing import Any, Protocol

from workflow.errors import WorkflowError

__all__ = ["SSE_HEADERS", "sse_comment", "sse_event", "sse_frame"]

SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""What a response says of itself; the last one keeps a proxy of the nginx kind from holding events back."""

_LINE_END = re.compile("\r\n|\r|\n")
_NOT_IN_A_FIELD = re.compile("[\r\n\0]")


class HasTypeAndData(Protocol):
    """A frame: a `StreamFrame`, an `Envelope`, or a frame that a watcher got."""

    @property
    def type(self) -> str: ...
    @property
    def data(self) -> Any: ...


def sse_event(data: str, *, event: str | None = None, id: str | None = None, retry: float | None = None) -> str:  # noqa: A002
    """One event. ``data`` may have any number of lines; their ends become plain newlines.

    ``event`` and ``id`` must be of one line, else `WorkflowError`, for a second one would be read as another field. ``retry``
    is in seconds: how long the browser waits before it comes back.
    """
    fields = [("event", event), ("id", id), ("retry", None if retry is None else str(round(retry * 1000)))]
    lines = [f"{name}: {_one_line(name, value)}\n" for name, value in fields if value is not None]
    return "".join([*lines, *(f"data: {line}\n" for line in _LINE_END.split(data)), "\n"])


def sse_frame(frame: HasTypeAndData, *, id: str | None = None) -> str:  # noqa: A002
    """One event for a frame: its type is the event's, its data is written as JSON."""
    return sse_event(json.dumps(frame.data, ensure_ascii=False), event=frame.type, id=id)


def sse_comment(text: str = "keep-alive") -> str:
    """What browsers pass over. Sent now and then, it keeps proxies from closing a silent connection."""
    return "".join([*(f": {line}\n" for line in _LINE_END.split(text)), "\n"])


def _one_line(name: str, value: str) -> str:
    if _NOT_IN_A_FIELD.search(value):
        raise WorkflowError(f"{value!r:.80} cannot be the {name} of an event: leave out line ends and NUL")
    return value
