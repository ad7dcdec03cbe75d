"""After it all: does each worker take messages, and each beat send them? Runs are started until each has executed one."""

import itertools
import time
from contextlib import suppress

import psutil

from tests.chaos.field import Field
from tests.chaos.troop import Member
from tests.chaos.waiting import until

__all__ = ["BeatCount", "probe_workers"]

PATIENCE = 60
"""Seconds in which each worker has executed one: a probe that begins anew has half of it."""
SENT = "Sending due task"
"""What a beat logs with each message."""


def probe_workers(field: Field, number: int) -> list[str]:
    """Start runs, from this number on, until each worker has executed one. Returns their workflow ids."""
    since, numbers, started = time.time(), itertools.count(number), list[str]()

    def all_have_worked() -> bool:
        workflow_id = f"chain-{next(numbers)}"
        field.direct.start("chaos-chain", workflow_id)
        started.append(workflow_id)
        time.sleep(0.1)  # a worker that is busy is to have its turn
        return not _silent(field, since)

    def shown() -> str:
        return "\n".join(_shown(member) for member in _silent(field, since))

    until(all_have_worked, lambda: f"each worker takes messages: {shown()}", PATIENCE)
    return started


def _silent(field: Field, since: float) -> list[Member]:
    seen = {line.pid for line in field.ledger.lines() if line.kind == "segment" and line.at > since}
    return [member for member in field.troop.members if member.is_worker and not seen & set(member.family())]


def _shown(member: Member) -> str:
    status = "gone"
    with suppress(psutil.NoSuchProcess):
        status = psutil.Process(member.pid).status()
    return f"{member.name} ({status}):\n" + "\n".join(member.output().splitlines()[-20:])


class BeatCount:
    """Counts from now on what the beats send."""

    def __init__(self, field: Field) -> None:
        beats = [member for member in field.troop.members if member.role == "beat"]
        self._before = [(beat, beat.output().count(SENT)) for beat in beats]

    def wait(self) -> None:
        """Wait until each has sent something."""
        for beat, before in self._before:
            until(lambda beat=beat, before=before: beat.output().count(SENT) > before, beat.output)
