"""Which processes make up a mesh, and how each is started: the one list behind `jarvis up` and `jarvis brief`.

role        program                        what it does
worker      celery worker                  executes segments and sweeps
beat        celery beat                    starts the daily briefing and the watchdog's sweeps
sweeper     python -m workers sweeper      hints at what is due
consumers   python -m workers consumers    records heartbeats, delivers alerts

They get their settings by environment only, so that no address with a password stands in a command line.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workers.broker.hints import SEGMENTS, SWEEPS
from workers.processes import ProcessSpec
from workers.processes.folders import make_private
from workers.settings import Settings

__all__ = ["call_worker", "mesh_environment", "mesh_processes", "worker_process"]

CONCURRENCY = 4
"""Segments that the worker of a small mesh executes at the same time. They mostly wait for others."""
LEAVING = 5
"""Seconds beyond its grace that a worker has for giving back what it holds, before it is ended by force."""


def mesh_processes(settings: Settings, home: Path) -> list[ProcessSpec]:
    """All processes of a mesh, but the server. ``settings`` names the server and the broker; ``home`` is absolute."""
    schedule = home / "beat"
    make_private(schedule)
    beat = ["beat", "--schedule", str(schedule / "schedule"), "--loglevel", "INFO"]
    return [
        worker_process(settings, home),
        _process("beat", [*_celery(home), *beat], settings, home),
        _process("sweeper", ["-m", "workers", "sweeper"], settings, home),
        _process("consumers", ["-m", "workers", "consumers"], settings, home),
    ]


def call_worker(settings: Settings, home: Path, expected: Sequence[str]) -> ProcessSpec:
    """A worker for the length of one call, which takes no sweeps: these go by all the agents of a mesh that stands.

    ``expected`` are the agents that a briefing reports when they do not beat.
    """
    watchdog = settings.watchdog.model_copy(update={"agents": tuple(expected)})
    spec = worker_process(settings, home, SEGMENTS)
    return replace(spec, env={**spec.env, "JARVIS_WATCHDOG": watchdog.model_dump_json()})


def worker_process(settings: Settings, home: Path, *queues: str) -> ProcessSpec:
    """One Celery worker, by default for both queues."""
    pool = ["--pool", "threads", "--concurrency", str(CONCURRENCY), "--queues", ",".join(queues or (SEGMENTS, SWEEPS))]
    spec = _process("worker", [*_celery(home), "worker", *pool, "--loglevel", "INFO"], settings, home)
    return replace(spec, grace=settings.shutdown_grace + LEAVING)


def mesh_environment(settings: Settings, home: Path) -> dict[str, str]:
    """What a process of this mesh is told. Paths are absolute: it does not run in the caller's folder."""
    environment = {
        "JARVIS_REDIS_URL": settings.store_url,
        "JARVIS_BROKER_URL": settings.celery_url,
        "JARVIS_HOME": str(home),
        # A folder called `bus` or `mesh` where the caller stands must not take the place of ours.
        "PYTHONSAFEPATH": "1",
    }
    return environment if settings.config is None else {**environment, "JARVIS_CONFIG": str(settings.config.absolute())}


def _celery(home: Path) -> list[str]:
    # Celery puts its working folder before everything else that is imported: let it be one without Python files.
    return ["-m", "celery", "--quiet", "--workdir", str(home), "--app", "workers"]


def _process(role: str, arguments: list[str], settings: Settings, home: Path) -> ProcessSpec:
    environment: Mapping[str, str] = mesh_environment(settings, home)
    return ProcessSpec(role, [sys.executable, *arguments], env=environment, log=home / "logs" / f"{role}.log")
