"""How the branches of a fork advance: one after the other, or side by side.

A runner decides only when each open branch may go on. Whether a branch pauses, what it records and what its end means is
decided on its path.
"""

import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workflow.bridge import Host
from workflow.errors import GraphError

__all__ = ["BranchRunner", "ConcurrentBranchRunner", "OpenBranch", "SequentialBranchRunner"]


@dataclass(frozen=True, slots=True)
class OpenBranch:
    """A branch that has not ended. `advance` takes it as far as it gets now.

    ``is_pausing`` says that no new node may begin; ``stop`` says so to all branches.
    """

    name: str
    advance: Callable[[], Coroutine[Any, Any, None]]
    is_pausing: Callable[[], bool]
    stop: Callable[[], None]


class BranchRunner(Protocol):
    """Advances the open branches of a fork once. Raises the first error among them, once all that run have ended."""

    async def run(self, branches: Sequence[OpenBranch], host: Host) -> None:
        """Advance each as far as it gets."""
        ...


@dataclass(frozen=True, slots=True)
class SequentialBranchRunner:
    """One branch after the other, in the order in which the fork declares them. The first wait stops it."""

    async def run(self, branches: Sequence[OpenBranch], host: Host) -> None:
        """See `BranchRunner.run`."""
        for branch in branches:
            if branch.is_pausing():
                return
            await branch.advance()


@dataclass(frozen=True, slots=True)
class ConcurrentBranchRunner:
    """All branches side by side, at most ``limit`` at a time: plain nodes in threads, async ones on the event loop.

    Once a branch waits or fails no branch begins another node; what runs is finished, and recorded.
    """

    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise GraphError(f"the limit of a branch runner must be at least 1 or None, not {self.limit!r}")

    async def run(self, branches: Sequence[OpenBranch], host: Host) -> None:
        """See `BranchRunner.run`."""
        errors: list[BaseException] = []

        async def advance(branch: OpenBranch) -> None:
            try:
                await branch.advance()
            except BaseException as error:  # noqa: BLE001 - the first one is raised when all have ended
                errors.append(error)

        cores = [advance(branch) for branch in branches]
        try:
            await host.together(cores, self.limit, branches[0].stop)
        finally:
            for core in cores:
                if inspect.getcoroutinestate(core) == inspect.CORO_CREATED:
                    core.close()  # it was never begun
        if errors:
            raise errors[0]
