"""How a command comes to a mesh: the server that is configured, the one that runs for the home folder, or one of its own.

With no server configured, whoever owns the home folder runs the private server, and everybody else is its guest. An owner
may end at any moment; its guests then start anew, the first of them as the owner. So what is done with a mesh may be
done twice, and must stand that.
"""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bus import BusError
from console.output import say
from mesh.errors import MeshError
from persistence import PersistenceError
from workers.embedded import ServerAddress, find_server, start_server
from workers.errors import FolderInUseError
from workers.processes import Supervisor, owner_of
from workers.settings import Settings

if TYPE_CHECKING:
    from workers.client import MeshClient

__all__ = ["Joined", "at_address", "running_server", "visit"]

PATIENCE = 20.0
"""Seconds in which an owner that is just starting brings its server up."""
_LOOK = 0.05

T = TypeVar("T")


@dataclass(frozen=True)
class Joined:
    """A mesh that a command has come to. ``settings`` name its server; the home folder is absolute.

    As the owner of the home folder there is a ``supervisor``; as a guest ``host`` is the pid of the owner; with a server
    that was configured there is neither.
    """

    settings: Settings
    home: Path
    supervisor: Supervisor | None = None
    host: int | None = None

    @cached_property
    def client(self) -> "MeshClient":
        """The mesh as its users reach it."""
        from workers.client import MeshClient

        return MeshClient(self.settings)

    def has_ended(self) -> bool:
        """Whether the owner whose guest we are has gone, and its server with it."""
        return self.host is not None and owner_of(self.home) != self.host

    def tend(self) -> None:
        """Look after the processes that are ours."""
        if self.supervisor is not None:
            self.supervisor.tend()

    def close(self) -> None:
        """Let go of connections."""
        if "client" in self.__dict__:
            self.client.close()


def visit(settings: Settings, act: Callable[[Joined], T]) -> T:
    """Do something with the mesh, and once more from the start when the owner of its server ended meanwhile.

    Raises what ``act`` raises, `FolderInUseError`, and the errors of a server that cannot be had.
    """
    _quiet_logs(settings)
    while True:
        with _joined(settings) as mesh:
            try:
                return act(mesh)
            except (BusError, MeshError, PersistenceError):
                if not mesh.has_ended():
                    raise


def running_server(home: Path) -> tuple[int, ServerAddress] | None:
    """The owner of the home folder, and the server that it keeps; None when there is no owner, or no server yet."""
    owner, address = owner_of(home), find_server(home)
    return (owner, address) if owner is not None and address is not None else None


def at_address(settings: Settings, address: ServerAddress) -> Settings:
    """The settings, with the private server as the server."""
    urls = {"redis_url": address.store_url, "broker_url": settings.broker_url or address.broker_url}
    return settings.model_copy(update=urls)


@contextmanager
def _joined(settings: Settings) -> Generator[Joined]:
    home = settings.home.absolute()
    with ExitStack() as leaving:
        mesh = Joined(settings, home) if settings.redis_url is not None else _private(settings, home, leaving)
        leaving.callback(mesh.close)
        yield mesh


def _private(settings: Settings, home: Path, leaving: ExitStack) -> Joined:
    """The mesh of the home folder's owner, or with this process as the owner until ``leaving``."""
    while (running := _await_server(home)) is None:
        try:
            supervisor = leaving.enter_context(Supervisor(home, say=say))
        except FolderInUseError as refused:
            if refused.pid is None:
                raise
            continue  # somebody else was faster, and is starting its server now
        return Joined(at_address(settings, start_server(supervisor)), home, supervisor)
    host, address = running
    return Joined(at_address(settings, address), home, host=host)


def _await_server(home: Path) -> tuple[int, ServerAddress] | None:
    """The server of whoever owns the home folder, waited for while it starts. None when nobody owns it."""
    deadline = time.monotonic() + PATIENCE
    while (running := running_server(home)) is None and (owner := owner_of(home)) is not None:
        if time.monotonic() > deadline:
            raise FolderInUseError(f"{home} is in use by process {owner}, which runs no server there: stop it first", owner)
        time.sleep(_LOOK)
    return running


def _quiet_logs(settings: Settings) -> None:
    """Warnings of the rooms are words for the person in front; structlog alone would print them among the data."""
    import logging

    from workers.telemetry import configure_logging

    configure_logging(settings.log_format, logging.WARNING)
