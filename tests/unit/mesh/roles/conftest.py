"""Factories for what the roles are given: a window, settings, items."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest

from mesh.settings import MeshConfig
from mesh.sources.window import Window, briefing_window

VIENNA = ZoneInfo("Europe/Vienna")
SEVEN = dt.datetime(2026, 11, 30, 7, 0, tzinfo=VIENNA)


@pytest.fixture
def clock() -> Callable[[], dt.datetime]:
    """Monday 30 November 2026, 07:00 in Vienna."""
    return lambda: SEVEN


@pytest.fixture
def window() -> Window:
    """The window of that morning."""
    return briefing_window(SEVEN.date(), SEVEN, VIENNA)


@pytest.fixture
def config() -> Callable[..., MeshConfig]:
    """Make settings for an operator in Vienna."""

    def make(**tables: object) -> MeshConfig:
        return MeshConfig.model_validate({"operator": {"name": "Ada", "zone": "Europe/Vienna"}, **tables})

    return make
