"""Values come back from records equal in type and value, or are refused with the path to them (F5, G6)."""

import dataclasses
import datetime as dt
import enum
import json
import math
import threading
import uuid
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel

from persistence import PersistenceError
from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    JsonSerializer,
    OpaqueValue,
    PickleSerializer,
    SerializationError,
    StartEvent,
    StopEvent,
    WorkflowState,
)


class Colour(enum.Enum):
    RED = "red"
    GREEN = object()


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    A = "a"


class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    label: str = "none"
    length: float = dataclasses.field(init=False, default=0.0)


@dataclasses.dataclass
class Grown:
    x: int
    later: list[int] = dataclasses.field(default_factory=lambda: [7])


class Invoice(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    number: int = Field(alias="invoiceNumber")
    colour: Colour | Size | str | int = "plain"
    lines: tuple[Decimal, ...] = ()


class Names(RootModel[list[str]]):
    pass


class Everything(Event):
    colour: Colour | str
    size: Size | int
    point: Point
    amount: Decimal
    at: dt.datetime
    day: dt.date
    key: uuid.UUID
    data: bytes
    pair: tuple[int, str]
    tags: set[str]
    by_number: dict[int, str]
    value: Any


TYPES = (Colour, Size, Word, Right, Point, Grown, Invoice, Names)
CODEC = JsonSerializer(TYPES)
ZONES = ("Europe/Vienna", "America/St_Johns", "UTC", "Pacific/Auckland")


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal in type and value all the way down, with zone and fold."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=False)
        return len(left) == len(right) and all(same(a, b) for one, two in pairs for a, b in zip(one, two, strict=True))
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, set | frozenset):
        return left == right and sorted(map(type_of, left)) == sorted(map(type_of, right))
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, Decimal):
        return left.as_tuple() == right.as_tuple()
    if isinstance(left, dt.datetime | dt.time):
        return str(left) == str(right) and left.fold == right.fold and str(left.tzinfo) == str(right.tzinfo)
    if isinstance(left, BaseModel):
        return same(dict(left), dict(right)) and same(left.model_extra, right.model_extra)
    return left == right


def type_of(value: Any) -> str:
    """The name of its type, for comparing sets."""
    return type(value).__name__


def returned(value: Any) -> Any:
    """The value after a way through the store."""
    return CODEC.loads(CODEC.dumps(value))


TEXT = st.text(st.characters(codec=None, categories=["L", "N", "P", "S", "Z", "C", "Cs"])) | st.sampled_from(
    ["$", "@x", "\ud83d", "\ud83d\ude00", "\x00"]
)
HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    TEXT,
    st.binary(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.sampled_from([ZoneInfo(zone) for zone in ZONES]), allow_imaginary=True),
    st.datetimes(timezones=st.timezone_keys().map(lambda _: dt.timezone(dt.timedelta(hours=-3, minutes=30, seconds=7)))),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.sampled_from([*Colour, *Size, *Word, Right.READ, Right.READ | Right.WRITE, Right(0)]),
    st.sampled_from([Path("/tmp/ä"), PurePosixPath("a/b"), PureWindowsPath("c:\\x")]),
    st.builds(Point, st.integers(), TEXT),
)
VALUES = st.recursive(
    HASHABLE | st.floats() | st.just(Decimal("sNaN")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXT, inner, max_size=3),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.sets(HASHABLE, max_size=3),
        st.frozensets(HASHABLE, max_size=3),
        st.builds(lambda value: StopEvent(result=value), inner),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(VALUES)
def test_every_supported_value_comes_back_as_itself(value) -> None:
    assert same(returned(value), value)


@settings(deadline=None, max_examples=50)
@given(VALUES)
def test_the_bytes_are_json_without_surplus(value) -> None:
    data = CODEC.dumps(value)
    assert len(json.dumps(json.loads(data), separators=(",", ":"), ensure_ascii=False).encode()) >= len(data)


def test_f5_an_event_full_of_types_comes_back_as_itself() -> None:
    event = Everything(
        colour=Colour.RED,
        size=Size.SMALL,
        point=Point(1),
        amount=Decimal("1.10"),
        at=dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1),
        day=dt.date(2026, 11, 30),
        key=uuid.UUID(int=5),
        data=b"\x00\xff",
        pair=(1, "a"),
        tags={"a", "b"},
        by_number={1: "one"},
        value={"__type__": "x", "__value__": 1, "$": "@os.system", "v": [float("nan"), 2**70, "\ud83d"]},
    )
    back = returned(event)
    assert same(dict(back), dict(event))
    assert back.at.utcoffset() == dt.timedelta(hours=1)
    assert type(back) is Everything


@pytest.mark.parametrize(
    "value",
    [
        Invoice(invoiceNumber=3),
        Invoice(invoiceNumber=3, colour=Colour.RED, lines=(Decimal("1.0"),)),
        Invoice(invoiceNumber=3, colour=Size.SMALL),
        Invoice.model_validate({"invoiceNumber": 3, "colour": 1, "unforeseen": {1: (2,)}}),
        Names(["a", "b"]),
        [Names([])],
        Right.READ | Right.WRITE,
        {"$": 1},
        {"$": {"$": "tuple", "v": []}},
        {1: "a", "1": "b"},
        {(1, 2): {frozenset({1}): b""}},
        dt.datetime(2026, 1, 1, fold=1),  # noqa: DTZ001
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC, fold=1),
        dt.time(12, tzinfo=ZoneInfo("Europe/Vienna")),
        dt.time(1, 2, 3, 4, fold=1),
        dt.datetime.max.replace(tzinfo=dt.UTC),
        dt.timedelta.min,
        "\ud83d\ude00",
        {"\ud83d\ude00": 1, "\U0001f600": 2},
        -0.0,
        math.inf,
        -math.inf,
        Decimal("-0E+5"),
        True,
        10**4000,
    ],
    ids=repr,
)
def test_a_value_that_is_easily_changed_is_not(value) -> None:
    assert same(returned(value), value)


def test_a_request_keeps_its_class_and_a_state_its_further_keys() -> None:
    class Held(WorkflowState):
        size: Size = Size.SMALL

    state = Held({"more": (1,)})
    assert returned(state) == state
    request = ApprovalRequest("?", expires_at=dt.datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Vienna")))
    assert returned(request) == request
    assert str(returned(request).expires_at.tzinfo) == "Europe/Vienna"


# --- what is refused --------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: int
    b: int


class Plain:
    pass


class Text(str):
    pass


class Number(int):
    pass


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "value"),
        ({"a": [1, {"b": object()}]}, "value['a'][1]['b']"),
        ({("k",): object()}, "value[('k',)]"),
        ({object(): 1}, "value key"),
        ((1, threading.Lock()), "value[1]"),
        (StopEvent(result=[print]), "value.result[0]"),
        (Pair(1, 2), "value"),
        (OrderedDict(a=1), "value"),
        (bytearray(b"x"), "value"),
        (Text("x"), "value"),
        (Number(1), "value"),
        (ValueError("x"), "value"),
        (1j, "value"),
        (Plain, "value"),
        (dt.datetime(2026, 1, 1, tzinfo=type("Odd", (dt.tzinfo,), {"utcoffset": lambda *_: dt.timedelta(0)})()), "value"),
    ],
    ids=lambda value: str(type(value)),
)
def test_an_unknown_type_is_refused_with_the_path_to_it(value, path) -> None:
    with pytest.raises(SerializationError) as caught:
        CODEC.dumps(value)
    assert str(caught.value).startswith(f"{path} ")
    assert caught.value.permanent


class Unheard(enum.Enum):
    A = 1


@dataclasses.dataclass
class Unseen:
    x: int = 1


class Unknown(BaseModel):
    x: int = 1


@pytest.mark.parametrize("value", [Unheard.A, Unseen(), Unknown()])
def test_a_class_that_nobody_registered_is_refused_though_it_is_of_a_known_kind(value) -> None:
    with pytest.raises(SerializationError, match="types"):
        JsonSerializer().dumps([value])


@pytest.mark.parametrize("value", [Plain(), Pair(1, 2), Text("x")])
def test_a_class_in_types_that_has_no_fields_is_refused(value) -> None:
    with pytest.raises(SerializationError, match=r"value\[0\] is of type"):
        JsonSerializer([type(value)]).dumps([value])


def test_a_value_that_contains_itself_or_is_too_long_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in (loop, 10**5000):
        with pytest.raises(SerializationError):
            CODEC.dumps(value)


# --- what is corrupt --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"1 2",
        b'{"a":1}{"a":1}',
        b"[1]x",
        b'{"$":"nothing","v":1}',
        b'{"$":5,"v":1}',
        b'{"$":"tuple"}',
        b'{"$":"tuple","v":5}',
        b'{"$":"dict","v":[[1]]}',
        b'{"$":"dict","v":[[[1],2]]}',
        b'{"$":"set","v":[[1]]}',
        b'{"$":"bytes","v":"!!!!"}',
        b'{"$":"bytes","v":"a"}',
        b'{"$":"bytes","v":5}',
        b'{"$":"datetime","v":"yesterday"}',
        b'{"$":"datetime","v":["2026-01-01","Nowhere/Town",0]}',
        b'{"$":"datetime","v":["2026-01-01","../../etc/passwd",0]}',
        b'{"$":"datetime","v":["2026-01-01","Europe",0]}',
        b'{"$":"date","v":5}',
        b'{"$":"timedelta","v":[1e99,0,0]}',
        b'{"$":"decimal","v":"one"}',
        b'{"$":"uuid","v":"x"}',
        b'{"$":"path","v":5}',
        b'{"$":"float","v":"x"}',
        b'{"$":"@workflow.events.StopEvent","v":{"odd":1}}',
        b'{"$":"@workflow.events.StopEvent","v":5}',
        b'{"$":"@Colour","v":"BLUE"}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_record_are_an_error_of_the_store(data) -> None:
    name = f"{Colour.__module__}.Colour".encode()
    with pytest.raises(PersistenceError):
        CODEC.loads(data.replace(b"@Colour", b"@" + name))


def test_c313_bytes_behind_a_record_are_corruption_for_every_codec() -> None:
    for codec in (CODEC, PickleSerializer()):
        data = codec.dumps({"a": 1})
        assert codec.loads(data) == {"a": 1}
        with pytest.raises(PersistenceError):
            codec.loads(data + data)
        with pytest.raises(PersistenceError):
            codec.loads(data[:-1])


def test_a_record_of_an_older_program_gets_the_defaults_of_new_fields_and_nothing_else() -> None:
    name = f"{Grown.__module__}.Grown"
    assert CODEC.loads(json.dumps({"$": f"@{name}", "v": {"x": 1}}).encode()) == Grown(1, [7])
    for fields in ({}, {"x": 1, "removed": 2}):
        with pytest.raises(PersistenceError):
            CODEC.loads(json.dumps({"$": f"@{name}", "v": fields}).encode())


# --- readers and names ------------------------------------------------------------------------------------------------------


def test_a_reader_without_the_class_sees_an_opaque_value() -> None:
    codec = JsonSerializer([Unheard, Unseen, Unknown])
    data = codec.dumps({"unseen": Unseen(), "more": [Unheard.A, Unknown()]})
    seen: Any = JsonSerializer().loads(data)
    assert seen["unseen"] == OpaqueValue(f"{Unseen.__module__}.Unseen", {"x": 1})
    assert seen["more"] == [
        OpaqueValue(f"{Unheard.__module__}.Unheard", "A"),
        OpaqueValue(f"{Unknown.__module__}.Unknown", {"x": 1}),
    ]
    assert JsonSerializer().dumps(seen) == data, "what is not understood is written back as it was"


def test_what_the_fields_of_an_event_hold_is_known_with_the_event() -> None:
    assert JsonSerializer().loads(JsonSerializer().dumps([Colour.RED, Point(1)])) == [Colour.RED, Point(1)]


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess.Popen", "decimal.Decimal"])
def test_the_store_cannot_name_a_class_that_the_program_has_not_registered(name) -> None:
    assert JsonSerializer().loads(json.dumps({"$": f"@{name}", "v": {}}).encode()) == OpaqueValue(name, {})


def test_a_declared_name_keeps_a_renamed_class_readable() -> None:
    class Before(Event):
        type_name: ClassVar[str] = "orders.Placed"
        number: int

    data = CODEC.dumps(Before(number=1))
    assert b'"@orders.Placed"' in data

    class After(Event):
        type_name: ClassVar[str] = "orders.Placed"
        number: int

    class Child(After):
        pass

    assert type(CODEC.loads(data)) is After
    assert type(returned(Child(number=2))) is Child


def test_a_record_is_detached_from_the_value() -> None:
    value = {"list": [1]}
    data = CODEC.dumps(value)
    value["list"].append(2)
    first: Any = CODEC.loads(data)
    first["list"].append(3)
    assert CODEC.loads(data) == {"list": [1]}


def test_an_event_with_values_of_registered_types_goes_through_a_queue() -> None:
    event = StartEvent()
    assert ExecutionRequest.from_json(ExecutionRequest.start(event).to_json()).event == event
