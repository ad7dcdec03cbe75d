"""Which lines of history are signals, so that people can be alerted: pure.

topic               when                                                      payload
workflow.failed     a run has failed and is not tried again by itself         workflow_id, run_id, name, tag, attempt, at,
workflow.stalled    worker after worker was lost with a run: it stands still  step, error, message
workflow.suspended  a run waits for a person                                  the same, and waits_for

A signal's id is made of workflow id, run id, attempt and topic: told again, it is the same one.
"""

import datetime as dt
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from bus import Signal
from bus.payload import ID_LIMIT
from workflow.history import WAIT_NAMES, Happened, HistoryLine
from workflow.interrupts import InterruptType

__all__ = ["FAILED_TOPIC", "STALLED_TOPIC", "SUSPENDED_TOPIC", "signal_of", "without_wait"]

FAILED_TOPIC = "workflow.failed"
STALLED_TOPIC = "workflow.stalled"
SUSPENDED_TOPIC = "workflow.suspended"


def signal_of(line: HistoryLine) -> Signal | None:
    """The signal that a line is, if any."""
    topic = _topic(line)
    return None if topic is None else Signal(_id(line, topic), topic, _payload(line))


def without_wait(signal: Signal) -> Signal:
    """The signal without what the wait shows, for a bus that does not take that."""
    return Signal(signal.id, signal.topic, {key: value for key, value in signal.payload.items() if key != "waits_for"})


def _topic(line: HistoryLine) -> str | None:
    match line.kind:
        case Happened.FAILED if line.retry_at is None:
            return FAILED_TOPIC
        case Happened.STALLED:
            return STALLED_TOPIC
        case Happened.SUSPENDED if line.waits_for is not None and _needs_person(line.waits_for):
            return SUSPENDED_TOPIC
        case _:
            return None


def _needs_person(shown: Mapping[str, Any]) -> bool:
    """Whether a wait is for a person: an approval, or of a class that has something to show. Timers and events are not."""
    if shown.get("type") != InterruptType.WAIT_FOR_EVENT.value:
        return False
    return shown.get("eventName") == "approval" or not set(shown) <= WAIT_NAMES


def _id(line: HistoryLine, topic: str) -> str:
    rest = f"/{line.run_id}/{line.attempt}/{topic}"
    plain = line.workflow_id + rest
    return plain if len(plain.encode()) <= ID_LIMIT else sha256(line.workflow_id.encode()).hexdigest() + rest


def _payload(line: HistoryLine) -> dict[str, Any]:
    told = {
        "workflow_id": line.workflow_id,
        "run_id": line.run_id,
        "name": line.name,
        "tag": line.tag,
        "attempt": line.attempt,
        "at": dt.datetime.fromtimestamp(line.at, dt.UTC).isoformat(),
        "step": line.step or None,
        "error": line.error,
        # An error may quote broken text, which no signal may hold.
        "message": None if line.message is None else line.message.encode(errors="replace").decode(),
        "waits_for": None if line.waits_for is None else dict(line.waits_for),
    }
    return {key: value for key, value in told.items() if value is not None}
