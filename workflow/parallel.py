"""A fork: one event that starts several branches, and meets their results again at the join."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr, field_validator

from workflow.errors import WorkflowError
from workflow.events import Event

__all__ = ["ParallelEvent"]


class ParallelEvent(Event):
    """Subclass it, return it from the forking node with the event that starts each branch, and handle it in the join.

    Each branch runs until its `StopEvent`, on a copy of the state that the fork left. The join gets the results here. A
    subclass may declare its branches in ``declared_branches``, name to event class: pictures show them, others are refused.
    """

    declared_branches: ClassVar[Mapping[str, type[Event]]] = {}

    branches: Mapping[str, Event]

    _results: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])

    def __init__(self, branches: Mapping[str, Event], **fields: Any) -> None:
        super().__init__(**{"branches": branches, **fields})

    @field_validator("branches")
    @classmethod
    def _are_named(cls, branches: Mapping[str, Event]) -> Mapping[str, Event]:
        if not branches or "" in branches:
            raise ValueError("a fork needs branches, each with a name that is not empty")
        for name, event in branches.items():
            declared = cls.declared_branches.get(name)
            if cls.declared_branches and (declared is None or not isinstance(event, declared)):
                raise ValueError(f"{cls.__qualname__} declares no branch {name!r} that starts with {type(event).__qualname__}")
        return dict(branches)

    def fresh(self) -> Self:
        """The same fork without any result. For the engine: a node may return one event object again and again."""
        copy = self.model_copy()
        copy._results = {}
        return copy

    def joined(self, results: Mapping[str, Any]) -> Self:
        """The same fork with these results besides its own. For the engine: they are kept beside an event, not in it."""
        copy = self.model_copy()
        copy._results = {**results, **self._results}
        return copy

    def has_result(self, branch: str) -> bool:
        """Whether a branch has ended; its result may be None."""
        return branch in self._results

    def get_result(self, branch: str) -> Any:
        """The result of a branch. Raises `WorkflowError` when it has none."""
        if branch not in self._results:
            raise WorkflowError(f"branch {branch!r} has no result: there are {', '.join(sorted(self._results)) or 'none'}")
        return self._results[branch]

    def set_result(self, branch: str, result: Any) -> None:
        """Keep the result of a branch; it replaces an earlier one."""
        self._results[branch] = result

    @property
    def results(self) -> dict[str, Any]:
        """All results by branch, in the order in which the branches were declared."""
        return {name: self._results[name] for name in self.branches if name in self._results}
