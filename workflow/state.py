"""What a run knows: typed, validated fields, and further keys beside them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, PrivateAttr

from workflow.errors import WorkflowError
from workflow.interrupts import InterruptRequest
from workflow.registry import register_type
from workflow.status import WorkflowStatus

__all__ = ["Execution", "WorkflowState"]


@dataclass(frozen=True, slots=True)
class Execution:
    """What the engine knows of the run that a state belongs to."""

    workflow_id: str
    run_id: str
    attempt: int
    status: WorkflowStatus
    result: Any = None
    tag: str | None = None
    interrupt: InterruptRequest | None = None


class WorkflowState(BaseModel):
    """The data of a run. Subclasses add typed fields; further keys live beside them, reached by ``get``, ``set`` and ``[]``.

    Assignments are validated. ``all()`` holds typed fields and further keys alike, never what the engine knows.
    """

    model_config = ConfigDict(validate_assignment=True, extra="forbid", arbitrary_types_allowed=True)

    _more: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])
    _execution: Execution | None = PrivateAttr(default=None)

    def __init__(self, data: Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        given = {**(data or {}), **fields}
        known = type(self).__pydantic_fields__
        super().__init__(**{key: value for key, value in given.items() if key in known})
        self._further.update({key: value for key, value in given.items() if key not in known})

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Make the class known to the codec; refuse a field that would hide a method."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in cls.__pydantic_fields__:
            if hasattr(WorkflowState, name):
                raise TypeError(f"field {name!r} of {cls.__qualname__} would hide WorkflowState.{name}: rename the field")
        register_type(cls)

    @property
    def _further(self) -> dict[str, Any]:
        """The further keys, without pydantic's long way to a private attribute."""
        return cast(dict[str, Any], self.__pydantic_private__)["_more"]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; ``default`` only when the key is missing, so a stored None is returned."""
        if key in type(self).__pydantic_fields__:
            return getattr(self, key)
        return self._further.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Store a value. A typed field validates it."""
        if key in type(self).__pydantic_fields__:
            setattr(self, key, value)
        else:
            self._further[key] = value

    def has(self, key: str) -> bool:
        """Whether the key exists (typed fields always do)."""
        return key in type(self).__pydantic_fields__ or key in self._further

    def delete(self, key: str) -> None:
        """Remove a further key; a typed field goes back to its default. A missing key is no error."""
        declared = type(self).__pydantic_fields__.get(key)
        if declared is None:
            self._further.pop(key, None)
        elif declared.is_required():
            raise WorkflowError(f"field {key!r} has no default and cannot be deleted: set another value")
        else:
            setattr(self, key, declared.get_default(call_default_factory=True, validated_data={}))

    def only(self, keys: Iterable[str]) -> dict[str, Any]:
        """The given keys that exist, with their values."""
        return {key: self.get(key) for key in keys if self.has(key)}

    def without(self, keys: Iterable[str]) -> dict[str, Any]:
        """Everything but the given keys."""
        left_out = set(keys)
        return {key: value for key, value in self.all().items() if key not in left_out}

    def all(self) -> dict[str, Any]:
        """Typed fields, then further keys."""
        return {**{name: getattr(self, name) for name in type(self).__pydantic_fields__}, **self._further}

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.has(key)

    def __getitem__(self, key: str) -> Any:
        if not self.has(key):
            raise KeyError(key)
        return self.get(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def __iter__(self) -> Iterator[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkflowState) and type(other) is type(self) and self.all() == other.all()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def execution(self) -> Execution:
        """The run that this state belongs to. Raises `WorkflowError` outside a run."""
        if self._execution is None:
            raise WorkflowError("this state belongs to no run: the engine fills in `execution` when a run starts")
        return self._execution

    def is_interrupted(self) -> bool:
        """Whether the run waits for a person, an event or a moment."""
        return self._execution is not None and self._execution.status is WorkflowStatus.SUSPENDED

    @property
    def interrupt_request(self) -> InterruptRequest | None:
        """What the run waits for; None when it does not."""
        return None if self._execution is None else self._execution.interrupt

    def restore(self, values: Mapping[str, Any]) -> None:
        """Store several values at once; typed fields are validated together, as some are valid only so. For the engine."""
        known = type(self).__pydantic_fields__
        if not known.keys().isdisjoint(values):
            typed = {name: values.get(name, getattr(self, name)) for name in known}
            self.__pydantic_validator__.validate_python(typed, self_instance=self, by_alias=False, by_name=True)
        self._further.update({key: value for key, value in values.items() if key not in known})

    def stamped(self, execution: Execution) -> Self:
        """The same object, marked as belonging to a run. For the engine."""
        self._execution = execution
        return self
