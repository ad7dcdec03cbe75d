"""The operations role, by rule: what is down, what stands in the calendar, how the mesh is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from mesh.roles.assignment import Assignment
from mesh.roles.document import ATTENTION, CALENDAR, REMARKS, SERVICES, Section, render
from mesh.roles.lines import filled, line, trouble_sections
from mesh.roles.phrases import short_day, span
from mesh.settings import CheckSettings, MeshConfig
from mesh.sources.calendars import CalendarSource
from mesh.sources.checks import CheckSource, Probe, http_place, http_probe, tcp_probe
from mesh.sources.fetch import Fetcher
from mesh.sources.item import Item, Kind, Reading, Severity
from mesh.sources.mesh_state import MeshFactsProvider, MeshStateSource
from mesh.sources.reader import read_all
from mesh.sources.source import Source
from mesh.sources.window import Window, briefing_window


class OperationsRole:
    """Reads calendars, checks and the mesh's state afresh for every assignment. `state` may be missing: embedded use."""

    def __init__(
        self,
        config: MeshConfig,
        state: MeshFactsProvider | None,
        fetcher: Callable[[], Fetcher],
        clock: Callable[[], dt.datetime],
    ) -> None:
        self._config = config
        self._state = state
        self._fetcher = fetcher
        self._clock = clock

    def perform(self, assignment: Assignment) -> str:
        """Return the sections on calendar and services for the assignment's date, as Markdown."""
        config = self._config
        window = briefing_window(assignment.date, self._clock(), config.operator.tzinfo, hours=config.briefing.window_hours)
        with self._fetcher() as fetcher:
            reading = read_all(self._sources(fetcher), window)
        return render(operations_sections(reading, window, config))

    def _sources(self, fetcher: Fetcher) -> list[Source]:
        calendars: list[Source] = [CalendarSource(table.name, table.location, fetcher) for table in self._config.calendars]
        checks = [check_source(table, fetcher, self._clock) for table in self._config.checks]
        return [*calendars, *checks, *([MeshStateSource(self._state)] if self._state else [])]


def check_source(settings: CheckSettings, fetcher: Fetcher, clock: Callable[[], dt.datetime]) -> CheckSource:
    """Return the check that a table of the settings describes."""
    place, probe = _probe(settings, fetcher)
    return CheckSource(settings.name, place, probe, clock)


def operations_sections(reading: Reading, window: Window, config: MeshConfig) -> Iterator[Section]:
    """Yield what the operations role has to say about a reading."""
    services = reading.of(Kind.CHECK, Kind.MESH)
    urgent = [item for item in services if item.severity > Severity.INFO]
    quiet = [item for item in services if item.severity is Severity.INFO]
    yield from filled(ATTENTION, (_service_line(item, window) for item in urgent))
    if config.calendars:
        events = (_event_line(item, window) for item in sorted(reading.of(Kind.EVENT), key=_by_hour))
        yield from filled(CALENDAR, events, f"Nothing in the calendar on {short_day(window.day, window)}.")
    yield from filled(SERVICES, (_service_line(item, window) for item in quiet))
    if not config.calendars and not config.checks:
        yield Section(REMARKS, "- **operations**: jarvis.toml names no calendars and no service checks to read")
    yield from trouble_sections(reading)


def _probe(settings: CheckSettings, fetcher: Fetcher) -> tuple[str, Probe]:
    if settings.url is not None:
        probe = http_probe(fetcher, settings.url, expect=settings.expect, timeout=settings.timeout_seconds)
        return http_place(settings.url), probe
    host, port = settings.endpoint
    return f"{host}:{port}", tcp_probe(host, port, timeout=settings.timeout_seconds)


def _service_line(item: Item, window: Window) -> str:
    if item.kind is Kind.MESH:
        return line(item, window)
    return line(item, window, label="Up" if item.severity is Severity.INFO else "Down")


def _event_line(item: Item, window: Window) -> str:
    return line(item, window, label=span(item.at, item.until, window), when=short_day(window.day, window))


def _by_hour(item: Item) -> float:
    """All-day events come first."""
    return item.at.timestamp() if isinstance(item.at, dt.datetime) else float("-inf")
