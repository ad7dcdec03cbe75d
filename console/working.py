"""Hands for the length of one call: a Celery worker, and a sweeper in a thread of this process."""

import datetime as dt
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from console.joining import Joined
from console.output import say
from workers.processes import Supervisor, owner_of

__all__ = ["hands", "heard_lately"]

HEARD_WITHIN = 60.0
"""Seconds: a mesh whose workers were all silent for longer is taken to have none."""
WORKER_PREFIX = "worker:"


@contextmanager
def hands(mesh: Joined) -> Generator[Joined]:
    """See to it that somebody works, from here to the end of the block: the mesh's workers, or one of our own.

    Gives the mesh with whatever has to be tended while it is waited for.
    """
    if mesh.supervisor is not None:
        with _at_work(mesh, mesh.supervisor):
            yield mesh
    elif mesh.host is not None or _has_workers(mesh):
        yield mesh
    else:
        say(f"no worker was heard on this server within the last {HEARD_WITHIN:.0f} s: starting one for this call")
        with Supervisor(mesh.home, say=say) as supervisor:
            own = Joined(mesh.settings, mesh.home, supervisor)
            try:
                with _at_work(own, supervisor):
                    yield own
            finally:
                own.close()


def heard_lately(seen: Mapping[str, dt.datetime], now: dt.datetime) -> list[str]:
    """The workers among those who beat that beat lately."""
    return sorted(
        agent for agent, at in seen.items() if agent.startswith(WORKER_PREFIX) and (now - at).total_seconds() <= HEARD_WITHIN
    )


def _has_workers(mesh: Joined) -> bool:
    """Whether somebody works on a server that was configured. Whoever owns our home folder has brought a worker."""
    seen = mesh.client.runtime.heartbeats.all()
    return owner_of(mesh.home) is not None or bool(heard_lately(seen, dt.datetime.now(dt.UTC)))


@contextmanager
def _at_work(mesh: Joined, supervisor: Supervisor) -> Generator[None]:
    from workers.mesh_processes import call_worker
    from workers.sweeper import Sweeper

    supervisor.start(call_worker(mesh.settings, mesh.home))
    runtime = mesh.client.runtime
    sweeper = Sweeper(runtime.store, runtime.hints, every=mesh.settings.sweep_every)
    thread = threading.Thread(target=sweeper.run, name="sweeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sweeper.stop()
        thread.join()
