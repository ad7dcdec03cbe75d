"""Loaded by the workers that `benchmarks.runtime` starts: a run of four steps, and what it is compared with."""

import os

import redis
from celery import shared_task

from workers import register
from workflow import Event, Node, StopEvent, Workflow, WorkflowResources, WorkflowState

__all__ = ["HEARD", "NOOP", "NOTICE", "STEPS"]

STEPS = "bench-steps"
NOOP = "bench.noop"
NOTICE = "bench.notice"
HEARD = "bench:heard"
"""The list on which a notice says that it was executed."""


class Begun(Event):
    """Begin."""


class First(Event):
    """One step is done."""


class Second(Event):
    """Two steps are done."""


class Third(Event):
    """Three steps are done."""


class One(Node):
    def __call__(self, event: Begun, state: WorkflowState) -> First:
        return First()


class Two(Node):
    def __call__(self, event: First, state: WorkflowState) -> Second:
        return Second()


class Three(Node):
    def __call__(self, event: Second, state: WorkflowState) -> Third:
        return Third()


class Four(Node):
    def __call__(self, event: Third, state: WorkflowState) -> StopEvent:
        return StopEvent("done")


class FourSteps(Workflow[WorkflowState]):
    """As little as four durable steps can be; kept for its result, like a briefing."""

    retain_for = 600

    def start_event(self) -> Begun:
        return Begun()

    def nodes(self) -> tuple[Node, ...]:
        return One(), Two(), Three(), Four()

    def resources(self) -> WorkflowResources:
        return WorkflowResources()


@shared_task(name=NOOP, ignore_result=True)
def noop() -> None:
    """Do nothing."""


@shared_task(name=NOTICE, ignore_result=True)
def notice(token: str) -> None:
    """Say that this was executed."""
    _server.rpush(f"{HEARD}:{token}", 1)


_server = redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"])
register(STEPS, FourSteps)
