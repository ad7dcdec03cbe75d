"""For tests of nodes and of what is built on the engine."""

from collections.abc import Generator
from contextlib import contextmanager

from persistence import InMemoryPersistence
from workflow.clock import Clock, SystemClock
from workflow.context import StepContext, entered
from workflow.control import Control
from workflow.effects import EffectOutsideMemoWarning, warn_of_effects
from workflow.ids import new_run_id, new_writer
from workflow.json_codec import JsonSerializer
from workflow.output import Output
from workflow.records import Ignition
from workflow.store import RunStore

__all__ = ["EffectOutsideMemoWarning", "isolated", "warn_of_effects"]


@contextmanager
def isolated(
    *, workflow_id: str = "isolated", clock: Clock | None = None, output: Output | None = None
) -> Generator[StepContext]:
    """Let nodes be called by hand: a step of a run of its own, in memory.

    Memos are kept for the length of the block. A wait raises the engine's own suspension signal, and what was asked for stands
    in the step's ``suspended_on``.
    """
    store = RunStore(InMemoryPersistence(), JsonSerializer(), workflow_id, clock or SystemClock())
    run_id = new_run_id()
    store.ignite(Control.started(run_id, new_writer(), None), Ignition(run_id, None, "isolated"))
    step = StepContext(store, "isolated-0")
    if output is not None:
        step.output = output
    with entered(step):
        yield step
