"""The processes of the mesh, each behind a proxy of its own; one that ends is started again, as a supervisor would.

Each process is the leader of a session, so that its children can be found whatever becomes of it. A process that ends without
having been told to is a surprise, which the judge does not forgive.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.chaos.proxy import Proxies, Proxy
from tests.chaos.waiting import until

__all__ = ["Member", "Troop"]

WORKER = ("-m", "celery", "-A", "workers", "worker", "--concurrency", "2", "--loglevel", "INFO")
BEAT = ("-m", "celery", "-A", "workers", "beat", "--pidfile", "", "--loglevel", "INFO")
ROLES: Mapping[str, tuple[str, ...]] = {
    "prefork": (*WORKER, "--pool", "prefork"),
    "threads": (*WORKER, "--pool", "threads"),
    "solo": (*WORKER, "--pool", "solo"),
    "beat": BEAT,
    "sweeper": ("-m", "workers", "sweeper"),
    "consumers": ("-m", "workers", "consumers"),
}
ENDS_OF_CELERY = ("Could not start worker processes", "Unrecoverable error: StopIteration()")
"""How Celery 5.7 ends a worker whose children died before it ran its loop: at its start, or while its broker was away."""
SETTLING_IN = 5
"""Seconds after which a process has surely begun its work."""
WORKERS = ("prefork", "threads", "solo")


@dataclass
class Member:
    """One place in the troop, and the process that holds it now."""

    name: str
    role: str
    proxy: Proxy
    log: Path
    process: subprocess.Popen[bytes] | None = None
    doomed: bool = False
    """Whether its process was told, or made, to end."""
    since: float = 0
    """When its process was started, on the monotonic clock."""
    sessions: list[int] = field(default_factory=list[int])
    """The sessions of all processes that held this place."""

    @property
    def is_worker(self) -> bool:
        """Whether it executes segments."""
        return self.role in WORKERS

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process that holds the place now, or held it last."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_settled_in(self) -> bool:
        """Whether its process has run for a while."""
        return self.is_alive and time.monotonic() > self.since + SETTLING_IN

    def children(self) -> list[int]:
        """The processes of a prefork pool."""
        with suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.pid).children()]
        return []

    def family(self) -> list[int]:
        """The process and its children."""
        return [self.pid, *self.children()]

    def signal(self, number: int, *, to: list[int] | None = None) -> None:
        """Send a signal to the process, or to some of its family."""
        for pid in to or [self.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def output(self) -> str:
        """What it wrote."""
        return self.log.read_text(errors="replace")


class Troop:
    """All members."""

    def __init__(self, folder: Path, environment: Mapping[str, str], proxies: Proxies, roles: list[str]) -> None:
        self._folder = folder
        self._environment = environment
        self.surprises: list[str] = []
        self.ended_by_celery = 0
        self.members = [self._member(place, role, proxies) for place, role in enumerate(roles)]

    def _member(self, place: int, role: str, proxies: Proxies) -> Member:
        name = f"{role}-{place}"
        return Member(name, role, proxies.make(), self._folder / f"{name}.log")

    def start(self) -> None:
        """Start all, and wait until workers take messages."""
        for member in self.members:
            self._start(member)
        for member in self.members:
            if member.is_worker:
                until(lambda member=member: " ready." in member.output(), member.output)

    def _start(self, member: Member) -> None:
        url = f"redis://127.0.0.1:{member.proxy.port}"
        environment = {**os.environ, **self._environment, "JARVIS_REDIS_URL": f"{url}/0", "JARVIS_BROKER_URL": f"{url}/1"}
        own = ("--schedule", str(self._folder / member.name)) if member.role == "beat" else ()
        with member.log.open("ab") as output:
            member.process = subprocess.Popen(
                [sys.executable, *ROLES[member.role], *own],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        member.doomed = False
        member.since = time.monotonic()
        member.sessions.append(member.pid)

    def keep(self) -> None:
        """Start again what has ended."""
        for member in self.members:
            if not member.is_alive:
                self._examine(member)
                self._start(member)

    def going(self) -> list[str]:
        """Who was told to go and has not gone yet."""
        return [member.name for member in self.members if member.doomed]

    def _examine(self, member: Member) -> None:
        tail = "\n".join(member.output().splitlines()[-30:])
        if member.doomed or member.process is None:
            return
        if member.role == "prefork" and any(end in tail for end in ENDS_OF_CELERY):
            self.ended_by_celery += 1
        else:
            self.surprises.append(f"{member.name} ended with {member.process.returncode}:\n{tail}")

    def stop(self, *, workers: bool) -> list[str]:
        """Tell the workers, or all others, to go. Returns who has not gone in time."""
        told = [member for member in self.members if member.is_worker is workers and member.is_alive]
        for member in told:
            member.doomed = True
            member.signal(signal.SIGTERM)
        return [member.name for member in told if not _ended(member)]

    def kill(self) -> None:
        """End everything that was ever started here, and may live."""
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for member in self.members:
            if member.process is not None:
                member.process.wait(20)

    def living(self) -> list[int]:
        """Every process of a session that was started here."""
        ours = {session for member in self.members for session in member.sessions}
        return [process.pid for process in psutil.process_iter() if _lives_in(process, ours)]


def _ended(member: Member, patience: float = 20) -> bool:
    if member.process is None:
        return True
    with suppress(subprocess.TimeoutExpired):
        member.process.wait(patience)
        return True
    return False


def _lives_in(process: psutil.Process, sessions: set[int]) -> bool:
    with suppress(ProcessLookupError, psutil.NoSuchProcess):
        return os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE
    return False
