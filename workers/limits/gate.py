"""Before a segment runs it takes the slots that limit its workflow; they are kept while it runs and given back afterwards."""

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress

import structlog

from workers.errors import WorkersError
from workers.limits.contract import Slots

__all__ = ["SLOT_LEASE", "Gate"]

SLOT_LEASE = 30
"""Seconds after which a worker that died gives its slots back; a living one extends them at a third of it."""

_log = structlog.get_logger(__name__)


class Gate:
    """``workflows`` and ``roles`` say how many segments may run at once that are of a workflow, or that use a role.

    ``roles_of`` names the roles that a workflow's segments use.
    """

    def __init__(
        self,
        slots: Slots,
        workflows: Mapping[str, int],
        roles: Mapping[str, int],
        roles_of: Callable[[str], Iterable[str]],
        *,
        lease: float = SLOT_LEASE,
    ) -> None:
        self._slots = slots
        self._workflows = workflows
        self._roles = roles
        self._roles_of = roles_of
        self._lease = lease

    @contextmanager
    def slot(self, name: str, holder: str) -> Generator[float | None]:
        """Around a segment of a workflow. Yields None when it may run, otherwise in how many seconds to ask again.

        ``holder`` is of this execution alone: a hint that comes twice must not share the slot of the first.
        """
        limits = self._limits(name)
        if not limits:
            yield None
            return
        wait = self._slots.take(limits, holder, self._lease)
        if wait is not None:
            yield wait
            return
        done = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(limits, holder, done), name="slots", daemon=True)
        keeper.start()
        try:
            yield None
        finally:
            done.set()
            keeper.join()
            # A slot that cannot be given back ends with its lease.
            with suppress(WorkersError):
                self._slots.give_back(limits, holder)

    def _limits(self, name: str) -> dict[str, int]:
        limits = {f"role:{role}": self._roles[role] for role in self._roles_of(name) if role in self._roles}
        return {**limits, f"workflow:{name}": self._workflows[name]} if name in self._workflows else limits

    def _keep(self, limits: Mapping[str, int], holder: str, done: threading.Event) -> None:
        while not done.wait(self._lease / 3):
            try:
                if self._slots.take(limits, holder, self._lease) is not None:
                    _log.warning("a slot was lost while its segment runs; another segment may run beside it", holder=holder)
            except WorkersError as trouble:
                _log.warning("slots could not be kept; another segment may run beside this one", trouble=str(trouble))
