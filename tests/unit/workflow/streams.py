"""Adapters and channels that write down what they are asked."""

from collections.abc import Iterable
from typing import Any

from workflow import StreamAdapter, WorkflowState


class Numbering(StreamAdapter):
    """Says what it is asked, as frames."""

    def start(self) -> Iterable[Any]:
        return (["start"],)

    def transform(self, item: Any) -> Iterable[Any]:
        yield ["item", item]

    def interrupt(self, request: Any) -> Iterable[Any]:
        return (["interrupt", request],)

    def end(self, state: WorkflowState) -> Iterable[Any]:
        return (["end", state.execution.result],)

    def error(self, error: BaseException) -> Iterable[Any]:
        return (["error", error],)


class Capturing:
    """A channel that keeps what it gets, from all segments; ``failing`` names the calls that raise."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.opened: list[tuple[str, str, int]] = []
        self.sent: list[Any] = []
        self.ends: list[tuple[str, Any]] = []

    def open(self, workflow_id: str, run_id: str, attempt: int) -> "Capturing":
        self.opened.append((workflow_id, run_id, attempt))
        return self._maybe("open")

    def send(self, frame: Any) -> None:
        self.sent.append(frame)
        self._maybe("send")

    def interrupted(self, state: WorkflowState) -> None:
        self._ended("interrupted", state)

    def completed(self, state: WorkflowState) -> None:
        self._ended("completed", state)

    def failed(self, error: BaseException) -> None:
        self._ended("failed", error)

    def _ended(self, how: str, what: Any) -> None:
        self.ends.append((how, what))
        self._maybe("end")

    def _maybe(self, call: str) -> "Capturing":
        if call in self.failing:
            raise ConnectionError(f"{call} fails")
        return self
