"""Stream adapters: live items become the frames of a protocol, between a beginning and one of three ends.

Override what the protocol needs. An adapter that keeps something between frames is handed to a workflow as its class, or as a
function that makes it: each segment makes its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import to_jsonable_python

from workflow.errors import WorkflowError
from workflow.events import ActivityStreamEvent
from workflow.interrupts import InterruptRequest
from workflow.state import WorkflowState

__all__ = ["JsonStreamAdapter", "StreamAdapter", "StreamAdapterLike", "StreamFrame", "adapter_maker", "frames_of"]


class StreamAdapter:
    """Turns what a segment emits into frames, objects of any kind. This one passes items on as they are.

    `start` comes first, then `transform` for each item, one at a time and in the order in which its frames are seen; what these
    raise fails the run like an error of the node. Then comes exactly one of `interrupt`, `end` and `error`, after the run's
    outcome is recorded; what these raise is logged, and alters nothing. All are plain functions: be quick, and do not block.
    """

    def start(self) -> Iterable[Any]:
        """The frames before everything else."""
        return ()

    def transform(self, item: Any) -> Iterable[Any]:
        """The frames for one item; none hides it."""
        return (item,)

    def interrupt(self, request: InterruptRequest) -> Iterable[Any]:
        """The last frames of a segment whose run is suspended now."""
        return ()

    def end(self, state: WorkflowState) -> Iterable[Any]:
        """The last frames of a completed run. The state is a copy."""
        return ()

    def error(self, error: BaseException) -> Iterable[Any]:
        """The last frames of a segment that failed."""
        return ()


StreamAdapterLike = StreamAdapter | Callable[[], StreamAdapter]
"""An adapter that all segments share, or what makes one for each: its class, or a function without arguments."""


@dataclass(frozen=True, slots=True)
class StreamFrame:
    """A frame with a type, and data that JSON can say."""

    type: str
    data: Any


class JsonStreamAdapter(StreamAdapter):
    """Frames for readers elsewhere, which know none of the program's classes.

    type               data
    run.started        {}
    <type of activity> {"id", "data"} of an `ActivityStreamEvent`; nothing in its data can pass for the type of the frame
    run.item           any other item, as JSON
    run.interrupted    {"interrupt": its id, "type": what kind of answer is awaited}
    run.ended          {"result"}
    run.failed         {"error": the name of its class}; its words stay in the store, as they may say too much
    """

    def start(self) -> Iterable[Any]:
        """See `StreamAdapter.start`."""
        return (StreamFrame("run.started", {}),)

    def transform(self, item: Any) -> Iterable[Any]:
        """See `StreamAdapter.transform`."""
        if isinstance(item, ActivityStreamEvent):
            return (StreamFrame(item.type, {"id": item.id, "data": _plain(item.data)}),)
        return (StreamFrame("run.item", _plain(item)),)

    def interrupt(self, request: InterruptRequest) -> Iterable[Any]:
        """See `StreamAdapter.interrupt`."""
        return (StreamFrame("run.interrupted", {"interrupt": request.id, "type": request.type.value}),)

    def end(self, state: WorkflowState) -> Iterable[Any]:
        """See `StreamAdapter.end`."""
        return (StreamFrame("run.ended", {"result": _plain(state.execution.result)}),)

    def error(self, error: BaseException) -> Iterable[Any]:
        """See `StreamAdapter.error`."""
        return (StreamFrame("run.failed", {"error": type(error).__name__}),)


def _plain(value: Any) -> Any:
    """The value as JSON has it; what JSON cannot say, as text. Progress is no reason for a run to fail."""
    try:
        return to_jsonable_python(value, fallback=str, inf_nan_mode="null", bytes_mode="base64")
    except (ValueError, RecursionError):  # a model that holds bytes, a list that holds itself
        return str(value)


def adapter_maker(given: object) -> Callable[[], StreamAdapter]:
    """What makes the adapter of a segment. Raises `WorkflowError`, then and now, for what is none."""
    if isinstance(given, StreamAdapter):
        return lambda: given
    if not callable(given):
        raise WorkflowError(f"{given!r} is no stream adapter: hand in a StreamAdapter, its class or what makes one")
    return lambda: _checked(given())


def _checked(made: object) -> StreamAdapter:
    if not isinstance(made, StreamAdapter):
        raise WorkflowError(f"{made!r} is no stream adapter: what makes one must return a StreamAdapter")
    return made


def frames_of(made: object) -> list[Any]:
    """The frames that an adapter returned. Raises `WorkflowError` for a single one, which would fall into its letters."""
    if not isinstance(made, Iterable) or isinstance(made, str | bytes | Mapping):
        kind = type(cast(object, made)).__qualname__
        raise WorkflowError(f"a stream adapter returned {kind}: return a list of frames, or yield them")
    return list(cast(Iterable[Any], made))
