"""The default codec: JSON in which every other type is named, so that it comes back as itself.

A value that JSON lacks is written as ``{"$": kind, "v": …}``. Kinds are the usual value types below and the registered classes
(``"@" + name``). A user's own mapping with other than text keys, or with a key ``$``, is written as kind ``dict``, so it can
never be mistaken for one of ours. Nothing is changed silently: what cannot be kept exactly raises `SerializationError`.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import from_json, to_json

from persistence import PersistenceError
from workflow.errors import SerializationError
from workflow.registry import defined_type, held_classes, is_storable, type_name
from workflow.serializer import OpaqueValue
from workflow.state import WorkflowState
from workflow.text import is_unicode
from workflow.values import COLLECTION_KINDS, COLLECTIONS_BY_NAME, VALUE_KINDS, VALUES_BY_NAME, Kind

__all__ = ["JsonSerializer"]

_WORD = 2**63
_TEXT = frozenset({str})
_class_of: Callable[[Any], type[Any]] = type
"""For a type checker, to which the type of anything is unknown; a `cast` for each value would cost time."""
_PLAIN = (bool, int, float, str, list, dict, type(None))


class _MisfitError(Exception):
    """What was recorded does not fit its class as the program defines it now."""


class _UnstorableError(Exception):
    """Climbs from a value that cannot be kept to the root, gathering the path on its way."""

    path = ""

    def inside(self, place: str) -> Self:
        """The same, seen from one level up."""
        self.path = place + self.path
        return self


class JsonSerializer:
    """The default codec. ``types`` adds enums, dataclasses and pydantic models that no definition has registered."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types = {type_name(cls): cls for cls in types}

    def admit(self, annotation: Any) -> None:
        """Make the classes of one more annotation known. Raises `SerializationError` for one that records cannot hold."""
        for cls in held_classes(annotation):
            if is_storable(cls):
                self._types[type_name(cls)] = cls
            elif cls not in _PLAIN and cls not in VALUE_KINDS and cls not in COLLECTION_KINDS:
                raise SerializationError(f"records cannot hold {cls.__qualname__}: use an enum, dataclass or pydantic model")

    def dumps(self, value: object, *, context: bytes = b"") -> bytes:
        """See `Serializer.dumps`."""
        try:
            return to_json(self._encode(value))
        except _UnstorableError as trouble:
            raise SerializationError(f"value{trouble.path} {trouble}") from trouble
        except (RecursionError, ValueError) as trouble:
            raise SerializationError(f"a value is too deep, contains itself, or is too long a number: {trouble}") from trouble

    def loads(self, data: bytes, *, context: bytes = b"") -> object:
        """See `Serializer.loads`."""
        try:
            return self._decode(from_json(data))
        except _MisfitError as change:
            raise PersistenceError(
                f"a record was written by another version of the program: {change}; give new fields a default, or go back"
            ) from change
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError, OSError) as trouble:
            raise PersistenceError(f"a record cannot be decoded ({trouble}): it is corrupt or of another codec") from trouble

    def _encode(self, value: Any) -> Any:
        cls = _class_of(value)
        if value is None or cls is bool:
            return value
        if cls is str:
            return value if is_unicode(value) else {"$": "text", "v": VALUES_BY_NAME["text"].to_json(value)}
        if cls is dict:
            return self._encode_mapping(value)
        if cls is int:
            # As text a number of very many digits raises ValueError, as it would when it is read back.
            return value if -_WORD <= value < _WORD else int(str(value))
        if cls is float:
            return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
        if cls is list:
            return self._encode_all(value)
        return self._encode_named(value, cls)

    def _encode_all(self, values: Iterable[Any]) -> list[Any]:
        encoded: list[Any] = []
        try:
            for item in values:
                encoded.append(self._encode(item))  # noqa: PERF401 - the length says where it went wrong
        except _UnstorableError as trouble:
            raise trouble.inside(f"[{len(encoded)}]") from None
        return encoded

    def _encode_mapping(self, value: Mapping[Any, Any]) -> Any:
        if "$" not in value and _has_plain_keys(value):
            return self._encode_items(value, "[{!r}]")
        # Pairs, so that keys of any type come back as they were.
        items = self._encode_items(value, "[{!r}]")
        return {"$": "dict", "v": [[self._encode_key(key), item] for key, item in items.items()]}

    def _encode_key(self, key: Any) -> Any:
        try:
            return self._encode(key)
        except _UnstorableError as trouble:
            raise trouble.inside(" key") from None

    def _encode_items(self, values: Mapping[Any, Any], place: str) -> dict[Any, Any]:
        encoded: dict[Any, Any] = {}
        key: Any = None
        try:
            for key, item in values.items():
                cls = _class_of(item)
                # Most values are short text and small numbers: they are not worth a call.
                is_plain = (cls is str and item.isascii()) or (cls is int and -_WORD <= item < _WORD) or item is None
                encoded[key] = item if is_plain else self._encode(item)
        except _UnstorableError as trouble:
            raise trouble.inside(place.format(key)) from None
        return encoded

    def _encode_named(self, value: Any, cls: type[Any]) -> dict[str, Any]:
        """A value that JSON lacks: its kind or class by name, and what it is made of."""
        if cls in VALUE_KINDS:
            kind = VALUE_KINDS[cls]
            return {"$": kind.name, "v": _kept(kind, value)}
        if cls in COLLECTION_KINDS:
            kind = COLLECTION_KINDS[cls]
            return {"$": kind.name, "v": self._encode_all(kind.to_json(value))}
        if cls is OpaqueValue:
            return {"$": f"@{value.name}", "v": self._encode(value.fields)}
        return {"$": f"@{self._name(cls)}", "v": self._encode_object(value)}

    def _encode_object(self, value: Any) -> Any:
        if isinstance(value, enum.Flag):
            return value.value  # a combination has no name of its own
        if isinstance(value, enum.Enum):
            return value.name
        return self._encode_items(_fields(value), ".{}")

    def _name(self, cls: type[Any]) -> str:
        name = type_name(cls)
        if self._known(name) is not cls:
            raise _UnstorableError(
                f"is of type {cls.__qualname__}, which records cannot hold: use plain values, a pydantic model or an enum, "
                "and list its class in the workflow's `types`"
            )
        return name

    def _decode(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [self._decode(item) for item in cast(list[Any], stored)]
        if not isinstance(stored, dict):
            return stored
        held = cast(dict[str, Any], stored)
        if "$" not in held:
            return {key: self._decode(item) for key, item in held.items()}
        kind, value = cast(str, held["$"]), held["v"]
        if kind.startswith("@"):
            return self._decode_object(kind[1:], value)
        if kind == "dict":
            return {self._decode(key): self._decode(item) for key, item in value}
        if kind in COLLECTIONS_BY_NAME:
            return COLLECTIONS_BY_NAME[kind].from_json([self._decode(item) for item in value])
        return VALUES_BY_NAME[kind].from_json(value)

    def _decode_object(self, name: str, stored: Any) -> Any:
        cls = self._known(name)
        if cls is None:
            return OpaqueValue(name, self._decode(stored))
        if issubclass(cls, enum.Flag):
            return cls(stored)
        if issubclass(cls, enum.Enum):
            return _member(cls, stored)
        fields = {key: self._decode(item) for key, item in stored.items()}
        try:
            return _rebuilt(cls, fields)
        except ValueError as change:
            raise _MisfitError(f"{cls.__qualname__} is defined otherwise now ({_told(change)})") from change

    def _known(self, name: str) -> type[Any] | None:
        return self._types.get(name) or defined_type(name)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, WorkflowState):
        return value.all()
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).__pydantic_fields__}
        return {**fields, **value.__pydantic_extra__} if value.__pydantic_extra__ else fields
    if not dataclasses.is_dataclass(value):
        raise _UnstorableError(
            f"is of type {type(value).__qualname__}, which `types` lists: it is no enum, dataclass or pydantic model"
        )
    return {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}


def _member(cls: type[enum.Enum], name: str) -> enum.Enum:
    if name not in cls.__members__:
        raise _MisfitError(f"{cls.__qualname__} has no member {name!r} now")
    return cls[name]


def _told(change: ValueError) -> str:
    """What does not fit, by the fields' names and without their values, which are nobody's business here."""
    if not isinstance(change, ValidationError):
        return str(change)
    told = (f"{'.'.join(map(str, error['loc'])) or 'it'}: {error['msg']}" for error in change.errors(include_input=False))
    return "; ".join(told)


def _rebuilt(cls: type[Any], fields: dict[str, Any]) -> Any:
    """An object from its fields, validated where its class does, without calling an ``__init__`` of its own."""
    if issubclass(cls, WorkflowState):
        return cls(fields)
    made: Any = object.__new__(cls)
    if issubclass(cls, BaseModel):
        given: Any = fields["root"] if issubclass(cls, RootModel) else fields
        return cls.__pydantic_validator__.validate_python(given, self_instance=made, by_alias=False, by_name=True)
    known = {entry.name: entry for entry in dataclasses.fields(cls)}
    if not fields.keys() <= known.keys():
        raise ValueError(f"{cls.__qualname__} has no field {', '.join(sorted(fields.keys() - known.keys()))}")
    for name, entry in known.items():
        object.__setattr__(made, name, fields[name] if name in fields else _default(entry))
    return made


def _default(entry: dataclasses.Field[Any]) -> Any:
    """What a field that a record of an older program lacks begins with. Raises ValueError when it has no default."""
    if entry.default_factory is not dataclasses.MISSING:
        return entry.default_factory()
    if entry.default is dataclasses.MISSING:
        raise ValueError(f"the field {entry.name!r} is missing")
    return entry.default


def _has_plain_keys(value: Mapping[Any, Any]) -> bool:
    if not _TEXT.issuperset(map(type, value)):
        return False
    return "".join(value).isascii() or all(map(is_unicode, value))


def _kept(kind: Kind, value: Any) -> Any:
    try:
        return kind.to_json(value)
    except ValueError as trouble:
        raise _UnstorableError(f"cannot be kept exactly: {trouble}") from trouble
