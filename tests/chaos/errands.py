"""The workflows of the ring, loaded by its workers: one of each kind of thing that a run can do and be interrupted in.

name              what it goes through                                          how it ends
chaos-chain       three steps, the second one asynchronous                      completed
chaos-long        one effect that takes longer than a lease; two at once        completed
chaos-timer       an effect, a timer, an effect                                 completed
chaos-signal      a wait that a signal of the bus ends                          completed, with the signal's word
chaos-fork        three branches, one of which sleeps; odd ones run at once     completed
chaos-retry       a node that fails twice by itself                             completed
chaos-approval    a question answered by `approve`, and one by `answer`         completed, with both answers
chaos-refused     a permanent error after an effect                             failed
chaos-cancelled   a wait that nothing ends                                      cancelled
chaos-tick        one effect; started by the schedule                           completed

The workflow id ends in the errand's number. Nothing else is an input.
"""

import asyncio
import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from tests.chaos.ledger import outside
from workers import register
from workflow import (
    START_OF_RUN,
    ApprovalRequest,
    ConcurrentBranchRunner,
    Event,
    ParallelEvent,
    RetryPolicy,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    amemoize,
    await_event,
    branch_id,
    idempotency_key,
    interrupt,
    memoize,
    sleep_until,
)
from workflow.observing import Observation, WorkflowStarted

__all__ = ["ANSWERED", "FAILURES", "KINDS", "heard_early", "kind_of", "number_of"]

LABOUR = 0.03
"""Seconds that an effect takes after it was written down: most faults fall between an effect and its record."""
LONG = 4.0
"""Seconds of an effect that outlasts a lease."""
SLEEP = 1.0
"""Seconds of a timer."""
FAILURES = 2
"""Times that the node of `chaos-retry` fails."""
ANSWERED = "chaos.answered"
"""The topic of the signals that are waited for."""
KEPT = 3600
"""Seconds for which an outcome is kept: until the judge has seen it."""


def number_of(workflow_id: str) -> int:
    """The errand's number."""
    return int(workflow_id.rsplit("-", 1)[1])


def kind_of(workflow_id: str) -> str:
    """The errand's kind."""
    return workflow_id.split("-", 1)[0]


def heard_early(number: int) -> bool:
    """Whether the signal of this errand may come at any moment of its run, not only while it waits."""
    return number % 2 == 0


def effect(state: WorkflowState, name: str, *, takes: float = LABOUR) -> str:
    """Do something outside, once recorded; returns its idempotency key."""
    key, run = idempotency_key(name), state.execution

    def make() -> str:
        outside().write("effect", run.workflow_id, run.attempt, name, key)
        time.sleep(takes)
        return name

    return memoize(name, make)


class Next(Event):
    """The first step is done."""


class Last(Event):
    """The last step but one is done."""


# --- steps, timers ----------------------------------------------------------------------------------------------------------


def chain_first(event: StartEvent, state: WorkflowState) -> Next:
    effect(state, "first")
    return Next()


async def chain_next(event: Next, state: WorkflowState) -> Last:
    key, run = idempotency_key("next"), state.execution

    async def make() -> str:
        outside().write("effect", run.workflow_id, run.attempt, "next", key)
        await asyncio.sleep(LABOUR)
        return "next"

    await amemoize("next", make)
    return Last()


def chain_last(event: Last, state: WorkflowState) -> StopEvent:
    return StopEvent([effect(state, "last"), effect(state, "very last")])


def long_way(event: StartEvent, state: WorkflowState) -> StopEvent:
    return StopEvent(effect(state, "long", takes=LONG))


def tick(event: StartEvent, state: WorkflowState) -> StopEvent:
    return StopEvent(effect(state, "tick"))


def timer(event: StartEvent, state: WorkflowState) -> StopEvent:
    effect(state, "before")
    until = memoize("until", lambda: dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SLEEP))
    sleep_until(until)
    too_early = dt.datetime.now(dt.UTC) < until - dt.timedelta(seconds=1)  # timers are kept in whole seconds
    return StopEvent([effect(state, "after"), too_early])


# --- what comes from outside ------------------------------------------------------------------------------------------------


def listen(event: StartEvent, state: WorkflowState) -> StopEvent:
    effect(state, "before")
    workflow_id = state.execution.workflow_id
    since = START_OF_RUN if heard_early(number_of(workflow_id)) else None
    heard = await_event(ANSWERED, since=since, match={"errand": workflow_id})
    effect(state, "after")
    return StopEvent(heard["word"])


def ask_first(event: StartEvent, state: WorkflowState) -> Next:
    effect(state, "before")
    state["first"] = interrupt(ApprovalRequest("the first question"))
    return Next()


def ask_next(event: Next, state: WorkflowState) -> StopEvent:
    answer = interrupt(ApprovalRequest("the second question"))
    effect(state, "after")
    return StopEvent([state["first"], answer])


def wait_for_ever(event: StartEvent, state: WorkflowState) -> StopEvent:
    effect(state, "before")
    return StopEvent(await_event("chaos.never"))


# --- failures ---------------------------------------------------------------------------------------------------------------


class IllError(Exception):
    """A failure that passes."""


class RefusedError(Exception):
    """A failure that does not."""

    permanent = True


def ill(event: StartEvent, state: WorkflowState) -> StopEvent:
    effect(state, "before")
    run, ledger = state.execution, outside()
    tries = [line for line in ledger.lines() if (line.kind, line.workflow_id) == ("try", run.workflow_id)]
    if len(tries) < FAILURES:
        ledger.write("try", run.workflow_id, run.attempt)
        raise IllError(f"try {len(tries) + 1}")
    return StopEvent(effect(state, "after"))


def refuse(event: StartEvent, state: WorkflowState) -> StopEvent:
    effect(state, "before")
    raise RefusedError("never")


# --- branches ---------------------------------------------------------------------------------------------------------------


class Fork(ParallelEvent):
    """Three branches."""


class Work(Event):
    """A branch that only works."""


class Doze(Event):
    """A branch that waits."""


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    effect(state, "fork")
    return Fork({"left": Work(), "right": Work(), "late": Doze()})


def work(event: Work, state: WorkflowState) -> StopEvent:
    return StopEvent(effect(state, f"{branch_id()}"))


def doze(event: Doze, state: WorkflowState) -> StopEvent:
    sleep_until(memoize("until", lambda: dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SLEEP)))
    return StopEvent(effect(state, "late"))


def join(event: Fork, state: WorkflowState) -> StopEvent:
    effect(state, "join")
    return StopEvent(dict(sorted(event.results.items())))


# --- definitions ------------------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "chain": (chain_first, chain_next, chain_last),
    "long": (long_way,),
    "timer": (timer,),
    "signal": (listen,),
    "fork": (fork, work, doze, join),
    "retry": (ill,),
    "approval": (ask_first, ask_next),
    "refused": (refuse,),
    "cancelled": (wait_for_ever,),
    "tick": (tick,),
}
"""The kinds of errand, with their nodes."""

PATIENT = RetryPolicy(attempts=100, first_delay=0.2, max_delay=1)
"""What no fault of a store or a bus that is away for a moment can exhaust."""


def note_segment(observation: Observation) -> None:
    """A listener: who executes which attempt."""
    if isinstance(observation, WorkflowStarted):
        outside().write("segment", observation.execution.workflow_id, observation.execution.attempt)


def errand(kind: str, workflow_id: str) -> Workflow[WorkflowState]:
    at_once = kind == "fork" and number_of(workflow_id) % 2 == 1
    return Workflow(
        workflow_id,
        nodes=KINDS[kind],
        start_event=StartEvent(),
        retain_for=KEPT,
        branch_runner=ConcurrentBranchRunner() if at_once else SequentialBranchRunner(),
        listeners=(note_segment,),
        retry=PATIENT,
    )


def factory(kind: str) -> Callable[[str], Workflow[WorkflowState]]:
    return lambda workflow_id: errand(kind, workflow_id)


for _kind in KINDS:
    register(f"chaos-{_kind}", factory(_kind))
