"""What a caller asks the engine to do with a run: an immutable value, captured when it is made, fit for a queue."""

import json
from dataclasses import dataclass, field
from typing import Any, Self, cast

from persistence import PersistenceError
from workflow.canonical import answer_json
from workflow.errors import WorkflowError
from workflow.events import Event
from workflow.ids import check_run_id
from workflow.json_codec import JsonSerializer
from workflow.text import is_unicode

__all__ = ["ExecutionRequest"]

_KINDS = ("start", "resume", "signal")


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """Made by `start`, `resume` or `signal`; every read of its input gives a detached copy."""

    kind: str
    run_id: str | None = None
    recover_failed: bool = False
    tag: str | None = None
    expected_attempt: int | None = None
    expected_interrupt_id: int | None = None
    signal_name: str | None = None
    position: str | None = None
    """Where on the bus the signal stood, if it came from there: a further wait of the same node asks for what came later."""
    _event: Event | None = field(default=None, repr=False)
    _payload: str | None = field(default=None, repr=False)

    @classmethod
    def start(
        cls, event: Event | None = None, *, run_id: str | None = None, recover_failed: bool = False, tag: str | None = None
    ) -> Self:
        """A fresh input, optionally under a run id that the caller reserves. Without an event the definition's own is used.

        A reserved start never replaces another run. With ``recover_failed`` it continues its own dead or pending run. Raises
        `WorkflowError` for a tag that no store could keep.
        """
        if run_id is not None:
            check_run_id(run_id)
        _check_tag(tag)
        captured = event.model_copy(deep=True) if event is not None else None
        return cls("start", run_id=run_id, recover_failed=recover_failed, tag=tag, _event=captured)

    @classmethod
    def resume(
        cls,
        payload: Any = None,
        *,
        expected_run_id: str | None = None,
        expected_execution_attempt: int | None = None,
        expected_interrupt_id: int | None = None,
    ) -> Self:
        """Continue a run. None brings no answer (recovery, due timer, retained outcome); anything else, ``{}`` too, is one."""
        return cls(
            "resume",
            run_id=expected_run_id,
            expected_attempt=expected_execution_attempt,
            expected_interrupt_id=expected_interrupt_id,
            _payload=None if payload is None else answer_json(payload),
        )

    @classmethod
    def signal(
        cls,
        name: str,
        payload: Any = None,
        *,
        expected_run_id: str | None = None,
        expected_interrupt_id: int | None = None,
        position: str | None = None,
    ) -> Self:
        """Answer the current wait, which must be for the event ``name``. Without a payload the node receives ``{}``."""
        return cls(
            "signal",
            run_id=expected_run_id,
            expected_interrupt_id=expected_interrupt_id,
            signal_name=name,
            position=position,
            _payload=answer_json({} if payload is None else payload),
        )

    @property
    def event(self) -> Event | None:
        """The start event, a copy of its own."""
        return None if self._event is None else self._event.model_copy(deep=True)

    @property
    def has_payload(self) -> bool:
        """Whether the request brings an answer."""
        return self._payload is not None

    @property
    def payload(self) -> Any:
        """The answer, a copy of its own; None without one."""
        return None if self._payload is None else json.loads(self._payload)

    def to_json(self) -> str:
        """The request as text for a queue."""
        codec = JsonSerializer()
        stored = {
            "kind": self.kind,
            "run": self.run_id,
            "recoverFailed": self.recover_failed,
            "tag": self.tag,
            "attempt": self.expected_attempt,
            "interrupt": self.expected_interrupt_id,
            "signal": self.signal_name,
            "position": self.position,
            "event": self._event,
            "payload": self._payload,
        }
        return codec.dumps(stored).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request behind such a text. Raises `WorkflowError` for any other."""
        try:
            held = cast(dict[str, Any], JsonSerializer().loads(text.encode()))
            event = held["event"]
            if held["kind"] not in _KINDS:
                raise ValueError(f"its kind is {held['kind']!r}")
            if event is not None and not isinstance(event, Event):
                raise TypeError(f"its event {event!r} is not defined in this program")
            if held["kind"] == "start" and held["run"] is not None:
                check_run_id(held["run"])
            _check_tag(held["tag"])
            return cls(
                held["kind"],
                run_id=held["run"],
                recover_failed=held["recoverFailed"],
                tag=held["tag"],
                expected_attempt=held["attempt"],
                expected_interrupt_id=held["interrupt"],
                signal_name=held["signal"],
                position=held.get("position"),
                _event=event,
                _payload=held["payload"],
            )
        except (PersistenceError, KeyError, TypeError, ValueError) as trouble:
            raise WorkflowError(f"this is no execution request: {trouble}") from trouble


def _check_tag(tag: str | None) -> None:
    """Raise `WorkflowError` for a tag that a store would refuse once the run is to be written."""
    if not is_unicode(tag or ""):
        raise WorkflowError(f"invalid tag {tag!r:.80}: it holds half of a surrogate pair, remove that")
    if "\x00" in (tag or ""):
        raise WorkflowError(f"invalid tag {tag!r:.80}: it holds a NUL character, remove that")
