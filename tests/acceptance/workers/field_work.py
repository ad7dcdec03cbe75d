"""Loaded by the workers of tests/acceptance/workers/test_field_runs.py, beside `scripted_work`.

workflow       what it does
values         records an event with values of every kind, waits for `values.checked`, and says which ones came back changed
unstorable     records an event with a value that records cannot hold
"""

import datetime as dt
import enum
import math
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from workers import register
from workflow import Event, StopEvent, Workflow, WorkflowResources, WorkflowState, await_event

LEASE = 3
"""Seconds."""


class Colour(enum.Enum):
    RED = 1


@dataclass
class Label:
    text: str
    width: int = field(init=False, default=0)


class Asked(Event):
    """Begin."""


class Carried(Event):
    """Values on their way through the store."""

    colour: Colour
    colours: dict[str, list[Colour]]
    label: Label
    value: Any = None


def values() -> dict[str, Any]:
    """What is carried, made anew in each process."""
    label = Label("flour")
    label.width = 7
    return {
        "colour": Colour.RED,
        "colours": {"warm": [Colour.RED]},
        "label": label,
        "value": {
            "decimal": Decimal("1.10"),
            "aware": dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1),
            "naive": dt.datetime(2026, 10, 25, 2, 30),  # noqa: DTZ001
            "day": dt.date(2026, 11, 30),
            "uuid": uuid.UUID(int=5),
            "bytes": b"\x00\xff",
            "tuple": (1, "a"),
            "set": {"a", "b"},
            "by number": {1: "one", "1": "text"},
            "nan": math.nan,
            "big": 2**70,
            "surrogate": "\ud83d",
            "named like ours": {"__type__": "x", "__value__": 1, "$": "tuple", "v": []},
        },
    }


def carry(event: Asked, state: WorkflowState) -> Carried:
    return Carried(**values())


def check(event: Carried, state: WorkflowState) -> StopEvent:
    await_event("values.checked")
    return StopEvent(
        {"pid": os.getpid(), "changed": list(changed({name: getattr(event, name) for name in values()}, values()))}
    )


def changed(found: Any, wanted: Any, place: str = "") -> Iterator[str]:
    """The places at which a value is not what it was, by type and by value."""
    if type(found) is not type(wanted):
        yield f"{place}: {type(found).__name__}"
    elif isinstance(wanted, dict):
        if [(type(key), key) for key in found] != [(type(key), key) for key in wanted]:
            yield f"{place}: keys {list(found)}"
        for key in wanted:
            yield from changed(found.get(key), wanted[key], f"{place}.{key}")
    elif isinstance(wanted, float) and math.isnan(wanted):
        if not math.isnan(found):
            yield f"{place}: {found}"
    elif found != wanted or getattr(found, "fold", 0) != getattr(wanted, "fold", 0):
        yield f"{place}: {found!r}"


def carry_a_lock(event: Asked, state: WorkflowState) -> Carried:
    return Carried(**{**values(), "value": {"orders": [{"lock": threading.Lock()}]}})


def defined(*nodes: Any) -> Any:
    """A factory of definitions."""
    options: dict[str, Any] = {
        "start_event": Asked(),
        "resources": WorkflowResources(),
        "retain_for": 600,
        "lease_timeout": LEASE,
    }
    return lambda workflow_id: Workflow(workflow_id, nodes=nodes, **options)


register("values", defined(carry, check))
register("unstorable", defined(carry_a_lock, check))
