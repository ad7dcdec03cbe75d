"""What may be published, and what each refusal says."""

import enum
import json
from collections import OrderedDict
from datetime import date
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import BusError, InMemorySignalBus, Signal
from bus.payload import DEPTH_LIMIT, ID_LIMIT, draft, loads, same_content


class Colour(enum.StrEnum):
    RED = "red"


text = st.text(st.characters(codec="utf-8"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(text, json_values, max_size=5))
def test_every_json_object_comes_back_equal_in_type_and_value(payload):
    assert repr(loads(draft(Signal("a", "t", payload)).payload)) == repr(payload)


def nested(depth):
    value = "end"
    for _ in range(depth):
        value = [value]
    return {"x": value}


def circular():
    payload = {}
    payload["self"] = payload
    return payload


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"a": {"b": [1, float("nan")]}}, r"payload\.a\.b\[1\] of signal 'id' is nan"),
        ({"a": float("-inf")}, "is -inf"),
        ({"a": "\ud83d"}, "half of a surrogate pair"),
        ({"\udc00": 1}, "half of a surrogate pair"),
        ({1: "a"}, "has the key 1: keys must be text"),
        ({"a": {None: 1}}, r"payload\.a of signal 'id' has the key None"),
        ({"a": (1, 2)}, r"payload\.a of signal 'id' is of type tuple"),
        ({"a": {1}}, "of type set"),
        ({"a": b"x"}, "of type bytes"),
        ({"a": date(2026, 1, 1)}, "of type date"),
        ({"a": Colour.RED}, "of type Colour"),
        ({"a": OrderedDict()}, "of type OrderedDict"),
        ({"a": 10**5000}, "send it as text"),
        (nested(DEPTH_LIMIT), "nested deeper"),
        (circular(), "nested deeper"),
        (None, "make it a JSON object"),
        ([], "make it a JSON object"),
        ("text", "make it a JSON object"),
    ],
)
def test_what_json_would_change_is_refused_with_its_path(payload, told):
    with pytest.raises(BusError, match=told) as refusal:
        InMemorySignalBus().publish("id", "t", payload)
    assert "\n" not in str(refusal.value)


def test_any_mapping_may_be_the_payload_itself():
    assert InMemorySignalBus().publish("id", "t", MappingProxyType({"a": 1})).payload == {"a": 1}


@pytest.mark.parametrize("signal_id", ["", "a\nb", "\x00", "\ud800", "x" * (ID_LIMIT + 1), "€" * 200, None, 7])
def test_what_is_no_id_is_refused(signal_id):
    with pytest.raises(BusError, match="cannot be a signal id") as refusal:
        InMemorySignalBus().publish(signal_id, "t", {})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("signal_id", ["a b/c:d{e}", "watchdog/ü/20261130T000000.000000Z", "x" * ID_LIMIT, "𝄞"])
def test_ids_may_hold_any_text_on_one_line(signal_id):
    assert InMemorySignalBus().publish(signal_id, "t", {}).id == signal_id


def test_stored_bytes_that_are_no_json_object_are_refused():
    for data in (b"", b"[]", b'{"a": NaN}', b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            loads(data)


def test_content_is_compared_by_meaning_not_by_spelling():
    assert same_content(b'{"a":1,"b":[{"c":2,"d":3}]}', b'{"b": [{"d": 3, "c": 2}], "a": 1}')
    for other in ("1.0", "true", '"1"', "[1]"):
        assert not same_content(b'{"a":1}', json.dumps({"a": json.loads(other)}).encode())
