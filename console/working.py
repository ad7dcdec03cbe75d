"""Hands for the length of one call: a Celery worker, and a sweeper in a thread of this process."""

import datetime as dt
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager

from console.joining import Joined
from console.output import say
from workers.errors import FolderInUseError
from workers.processes import Supervisor, owner_of
from workers.signals.beats import WORKER_PREFIX

__all__ = ["hands", "heard_lately"]

HEARD_WITHIN = 60.0
"""Seconds: a mesh whose workers were all silent for longer is taken to have none."""


@contextmanager
def hands(mesh: Joined) -> Generator[Joined]:
    """See to it that somebody works, from here to the end of the block: the mesh's workers, or one of our own.

    Gives the mesh with whatever has to be tended while it is waited for.
    """
    with ExitStack() as leaving:
        is_private = mesh.supervisor is not None
        working = mesh if is_private or _has_workers(mesh) else _owning(mesh, leaving)
        if working.supervisor is not None:
            expected = () if is_private else _once_heard(working)
            leaving.enter_context(_at_work(working, working.supervisor, expected))
        yield working


def heard_lately(seen: Mapping[str, dt.datetime], now: dt.datetime) -> list[str]:
    """The workers among those who beat that beat lately."""
    return sorted(
        agent for agent, at in seen.items() if agent.startswith(WORKER_PREFIX) and (now - at).total_seconds() <= HEARD_WITHIN
    )


def _has_workers(mesh: Joined) -> bool:
    """Whether somebody else works. Whoever owns our home folder has brought a worker, or ends soon."""
    if mesh.host is not None or owner_of(mesh.home) is not None:
        return True
    return bool(heard_lately(mesh.client.runtime.heartbeats.all(), dt.datetime.now(dt.UTC)))


def _owning(mesh: Joined, leaving: ExitStack) -> Joined:
    """The mesh on a configured server, with this process as the owner of the home folder until ``leaving``."""
    say(f"no worker was heard on this server within the last {HEARD_WITHIN:.0f} s: starting one for this call")
    try:
        supervisor = leaving.enter_context(Supervisor(mesh.home, say=say))
    except FolderInUseError as refused:
        if refused.pid is None:
            raise
        return mesh  # somebody else was faster, and is starting its worker now
    owning = Joined(mesh.settings, mesh.home, supervisor)
    leaving.callback(owning.close)
    return owning


def _once_heard(mesh: Joined) -> tuple[str, ...]:
    """The agents that should beat on a server which others use too: of those in the settings, whoever has ever beaten there.

    On a private server none stands longer than this call.
    """
    seen = mesh.client.runtime.heartbeats.all()
    return tuple(agent for agent in mesh.settings.watchdog.agents if agent in seen)


@contextmanager
def _at_work(mesh: Joined, supervisor: Supervisor, expected: tuple[str, ...]) -> Generator[None]:
    from workers.mesh_processes import call_worker
    from workers.sweeper import Sweeper

    supervisor.start(call_worker(mesh.settings, mesh.home, expected))
    runtime = mesh.client.runtime
    sweeper = Sweeper(runtime.store, runtime.hints, every=mesh.settings.sweep_every, engine_of=runtime.engine_of)
    thread = threading.Thread(target=sweeper.run, name="sweeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sweeper.stop()
        thread.join()
