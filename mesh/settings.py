"""The part of jarvis.toml that says who the operator is and what a briefing reads.

A mistake in the file is one line: the file, the key, what is wrong. Tables that belong to other rooms are let through
unread; any other unknown name is a typing error, and is refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator

from mesh.errors import ConfigError
from mesh.sources.checks import CHECK_TIMEOUT_SECONDS
from mesh.sources.text import clean
from mesh.sources.window import DEFAULT_WINDOW_HOURS

OTHER_TABLES = frozenset({"alerts", "limits", "schedule", "schedules", "server", "watchdog"})
"""Tables of jarvis.toml that the workers read."""

DEFAULT_ITEMS_PER_SOURCE = 5


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; use an IANA name such as Europe/Vienna") from None
    return name


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or clean(url, len(url)) != url:
        raise ValueError("must be a web address that begins with http:// or https://")
    return url


def _endpoint(endpoint: str) -> str:
    host, _, port = endpoint.rpartition(":")
    if not host.strip("[]") or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be host:port, such as db.example:5432")
    return endpoint


def _shown_name(name: str) -> str:
    shown = clean(name, 60)
    if not shown:
        raise ValueError("must not be empty")
    return shown


def _resolved(path: Path, info: ValidationInfo) -> Path:
    """Return `path` as seen from the folder of the settings file."""
    folder = cast("Mapping[str, Path]", info.context or {}).get("folder", Path())
    return folder / path.expanduser()


Name = Annotated[str, AfterValidator(_shown_name)]
ZoneName = Annotated[str, AfterValidator(_zone)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
LocalPath = Annotated[Path, AfterValidator(_resolved)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OperatorSettings(_Table):
    """`[operator]`: whose briefing it is, and by which clock they live."""

    name: str = ""
    zone: ZoneName = "UTC"

    @property
    def tzinfo(self) -> ZoneInfo:
        """The operator's zone."""
        return ZoneInfo(self.zone)


class BriefingSettings(_Table):
    """`[briefing]`: how far back "new" reaches, and how many items of one source are shown before "and 7 more"."""

    window_hours: float = Field(default=DEFAULT_WINDOW_HOURS, gt=0, le=24 * 366 * 100)
    items_per_source: int = Field(default=DEFAULT_ITEMS_PER_SOURCE, ge=1, le=100)


class _Located(_Table):
    """Something with a name that stands at an address or in a file."""

    name: Name
    url: WebAddress | None = None
    path: LocalPath | None = None

    @model_validator(mode="after")
    def _exactly_one_place(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("give either url or path")
        return self

    @property
    def location(self) -> str | Path:
        """The address or the file, whichever was given."""
        return cast("str | Path", self.url or self.path)


class FeedSettings(_Located):
    """`[[feeds]]`: an RSS or Atom feed."""


class CalendarSettings(_Located):
    """`[[calendars]]`: an iCalendar file."""


class NotesSettings(_Table):
    """`[[notes]]`: a folder of Markdown notes."""

    name: Name
    path: LocalPath


class CheckSettings(_Table):
    """`[[checks]]`: a service that should answer, over HTTP with the status `expect` or over TCP at all."""

    name: Name
    url: WebAddress | None = None
    tcp: Annotated[str, AfterValidator(_endpoint)] | None = None
    expect: int = Field(default=200, ge=100, le=599)
    timeout_seconds: float = Field(default=CHECK_TIMEOUT_SECONDS, gt=0, le=60)

    @model_validator(mode="after")
    def _exactly_one_target(self) -> Self:
        if (self.url is None) == (self.tcp is None):
            raise ValueError("give either url or tcp")
        return self

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port of a TCP check."""
        host, _, port = (self.tcp or "").rpartition(":")
        return host.strip("[]"), int(port)


class MeshConfig(_Table):
    """Everything a briefing needs to know, as it stands in jarvis.toml."""

    operator: OperatorSettings = OperatorSettings()
    briefing: BriefingSettings = BriefingSettings()
    feeds: tuple[FeedSettings, ...] = ()
    calendars: tuple[CalendarSettings, ...] = ()
    notes: tuple[NotesSettings, ...] = ()
    checks: tuple[CheckSettings, ...] = ()

    @model_validator(mode="after")
    def _names_tell_sources_apart(self) -> Self:
        for table in (self.feeds, self.calendars, self.notes, self.checks):
            names = [source.name for source in table]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"two sources of one kind are called {name!r}; give each a name of its own")
        return self


def load_config(path: Path) -> MeshConfig:
    """Return what jarvis.toml says about operator and sources. Raises `ConfigError` with file, key and remedy."""
    return parse_config(read_tables(path), path)


def read_tables(path: Path) -> dict[str, Any]:
    """Return the whole file as tables, for the rooms that own some of them. Raises `ConfigError` if it is not TOML."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; `jarvis init` writes a new one") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error


def parse_config(tables: Mapping[str, Any], path: Path) -> MeshConfig:
    """Return the settings in `tables`, which were read from `path`. Raises `ConfigError`."""
    own = {name: table for name, table in tables.items() if name not in OTHER_TABLES}
    for name in own:
        if name not in MeshConfig.model_fields:
            known = ", ".join(sorted(OTHER_TABLES | MeshConfig.model_fields.keys()))
            raise ConfigError(f"{path}: there is no table {name!r}; known tables: {known}")
    try:
        return MeshConfig.model_validate(own, context={"folder": path.parent})
    except ValidationError as error:
        raise config_error(path, error) from error


def config_error(path: Path, error: ValidationError) -> ConfigError:
    """Return pydantic's findings as one line: the first of them, and how many more there are."""
    first, *more = error.errors(include_url=False)
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    rest = f" (and {len(more)} more)" if more else ""
    return ConfigError(f"{path}: {key + ': ' if key else ''}{_complaint(first['type'], first['msg'])}{rest}")


def _complaint(kind: str, message: str) -> str:
    match kind:
        case "extra_forbidden":
            return "there is no such key; look for a typing error"
        case "tuple_type":
            return "must be a list of tables; begin each with its name in double brackets"
        case "missing":
            return "is missing; add it"
        case _:
            return clean(message.removeprefix("Value error, "))
