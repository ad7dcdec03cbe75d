"""Channels: frames are pushed to somebody who does not pull them, perhaps on another machine.

A segment opens a feed on its workflow's channel. With a stream adapter the feed gets the very frames that the reader gets, in
the same order; without one only how the segment ended. Nothing that a channel does, fails to do or takes its time for alters
a run (`workflow.outbox`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from workflow.state import WorkflowState

__all__ = ["CallbackChannel", "Channel", "Envelope", "Feed", "content_of"]


class Channel(Protocol):
    """Where segments push their frames. One object serves many runs at once."""

    def open(self, workflow_id: str, run_id: str, attempt: int) -> "Feed":
        """The feed of one segment, of which there is one for each attempt at a run. Called in the thread that feeds it."""
        ...


class Feed(Protocol):
    """The frames of one segment. Called by one thread, in order; what these raise is reported, and alters nothing.

    After `send` for each frame comes exactly one of the others, when the run's outcome is recorded, even after a failed send.
    """

    def send(self, frame: Any) -> None:
        """One frame of the adapter."""
        ...

    def interrupted(self, state: WorkflowState) -> None:
        """The run is suspended; ``state.interrupt_request`` says what it waits for. The state is a copy."""
        ...

    def completed(self, state: WorkflowState) -> None:
        """The run is completed. The state is a copy."""
        ...

    def failed(self, error: BaseException) -> None:
        """The segment has failed."""
        ...


@dataclass(frozen=True, slots=True)
class Envelope:
    """A frame and its place: ``sequence`` counts from 0 in a stream, and each segment is a stream of its own.

    ``type`` and ``data`` are the frame's own; a frame without them is of type ``frame`` and all data. The last one of a stream
    has the type ``stream.interrupted``, ``stream.completed`` or ``stream.failed``, and the workflow id for its data.
    """

    workflow_id: str
    run_id: str
    stream_id: str
    sequence: int
    type: str
    data: Any


class CallbackChannel:
    """Calls a function with an `Envelope` for each frame, in a thread of the segment.

    After it has raised once it gets no more frames of that segment, only the last envelope: what came after a gap would not
    make sense to most readers. The run goes on.
    """

    def __init__(self, callback: Callable[[Envelope], object]) -> None:
        self._callback = callback

    def open(self, workflow_id: str, run_id: str, attempt: int) -> Feed:
        """See `Channel.open`."""
        return _CallbackFeed(self._callback, workflow_id, run_id, f"{run_id}.{attempt}")


class _CallbackFeed:
    def __init__(self, callback: Callable[[Envelope], object], workflow_id: str, run_id: str, stream_id: str) -> None:
        self._callback = callback
        self._of = workflow_id, run_id, stream_id
        self._sequence = 0
        self._broken = False

    def send(self, frame: Any) -> None:
        """See `Feed.send`."""
        if not self._broken:
            self._call(*content_of(frame))

    def interrupted(self, state: WorkflowState) -> None:
        """See `Feed.interrupted`."""
        self._last("interrupted")

    def completed(self, state: WorkflowState) -> None:
        """See `Feed.completed`."""
        self._last("completed")

    def failed(self, error: BaseException) -> None:
        """See `Feed.failed`."""
        self._last("failed")

    def _last(self, how: str) -> None:
        self._call(f"stream.{how}", {"workflow_id": self._of[0]})

    def _call(self, kind: str, data: Any) -> None:
        sequence, self._sequence = self._sequence, self._sequence + 1
        try:
            self._callback(Envelope(*self._of, sequence, kind, data))
        except BaseException:
            self._broken = True
            raise


def content_of(frame: Any) -> tuple[str, Any]:
    """The type and the data of a frame: its own where it has both."""
    if hasattr(frame, "type") and hasattr(frame, "data"):
        return str(frame.type), frame.data
    return "frame", frame
