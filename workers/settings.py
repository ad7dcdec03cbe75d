"""Everything that can be set, from the environment (``JARVIS_…``) and from jarvis.toml. A mistake is one line.

Where a value stands in both, the environment wins. Without a jarvis.toml the example of a holding company is used.
"""

import datetime as dt
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, TypeAdapter, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from mesh.settings import MeshConfig, config_error, parse_config, read_tables
from workers.errors import SettingsError
from workers.schedules.schedule import AT_MOST, AfterDowntime
from workers.schedules.tables import AtMost, OwnSchedules, TimeOfDay

__all__ = ["AlertSettings", "LimitSettings", "ScheduleSettings", "Settings", "WatchdogSettings", "example_config"]

CONFIG_NAME = "jarvis.toml"
DEFAULT_MODULES = ("workers.definitions",)
DEFAULT_ROLES = ("research", "operations", "briefing")

Names = Annotated[tuple[str, ...], NoDecode]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScheduleSettings(_Table):
    """``[schedule]``: when the briefing is written, by the operator's clock, and how often the watchdog sweeps (seconds)."""

    briefing: TimeOfDay = dt.time(7, 0)
    after_downtime: AfterDowntime = AfterDowntime.LATEST
    """What becomes of briefings that passed while nothing ran."""
    at_most: AtMost = AT_MOST
    """Missed briefings that are made up for at most, where all are wanted."""
    watchdog_every: int = Field(default=60, ge=5)


class WatchdogSettings(_Table):
    """``[watchdog]``: who should beat, and after how many seconds of silence an agent counts as stopped."""

    agents: tuple[str, ...] = DEFAULT_ROLES
    stale_after_seconds: float = Field(default=300, gt=0)


class LimitSettings(_Table):
    """``[limits]``: how many segments may run at once over all workers, that are of a workflow, or that use a role."""

    workflows: Mapping[str, PositiveInt] = {}
    roles: Mapping[str, PositiveInt] = {}


class AlertSettings(_Table):
    """``[alerts]``: where alerts go, as Apprise addresses, and which topics are alerts."""

    urls: tuple[str, ...] = ()
    topics: tuple[str, ...] = ("agent.heartbeat.stale", "workflow.failed", "workflow.stalled")
    resend_unknown: bool = False
    """Whether an alert whose sender died while it sent is sent again: it may have arrived. Otherwise it is only said."""


class ServerSettings(_Table):
    """``[server]``: the server of store and bus, and the broker of the Celery messages; without them a private one."""

    redis_url: str | None = None
    broker_url: str | None = None


class Settings(BaseSettings):
    """The settings of one process. ``Settings.load()`` reads them and turns a mistake into a `SettingsError`."""

    model_config = SettingsConfigDict(env_prefix="JARVIS_", frozen=True, extra="forbid")

    home: Path = Path(".jarvis")
    """Where the private server keeps its data and briefings are written."""
    config: Path | None = None
    redis_url: str | None = None
    broker_url: str | None = None
    roles: Names = DEFAULT_ROLES
    """The roles that this worker serves, and beats for."""
    modules: Names = DEFAULT_MODULES
    """Modules to import: they register the workflows that workers know."""
    lease_timeout: float = Field(default=60, ge=1)
    """Seconds; for definitions that declare none."""
    max_takeovers: int = Field(default=5, ge=1)
    """Workers that may be lost with a run, without a step between, before it stands still; for definitions that say nothing."""
    history_keep_for: float = Field(default=90 * 24 * 3600, gt=0)
    """Seconds for which a run is remembered after the last thing that happened to it."""
    history_max_runs: int = Field(default=100_000, ge=1)
    """Runs that are remembered, about."""
    sweep_every: float = Field(default=1, gt=0)
    """Seconds between looks at what is due."""
    heartbeat_every: float = Field(default=15, gt=0)
    """Seconds between beats."""
    probe_every: float = Field(default=10, gt=0)
    """Seconds between a worker's looks at whether it really takes messages."""
    shutdown_grace: float = Field(default=10, ge=0)
    """Seconds in which a worker that is told to go may finish what it has in hand, before it gives it back."""
    takeover_after: float = Field(default=60, gt=0)
    """Seconds after which what a consumer took and left alone goes to another one; a delivery must take less."""
    log_format: str = Field(default="auto", pattern="^(auto|console|json)$")

    schedule: ScheduleSettings = ScheduleSettings()
    schedules: OwnSchedules = ()
    watchdog: WatchdogSettings = WatchdogSettings()
    alerts: AlertSettings = AlertSettings()
    limits: LimitSettings = LimitSettings()
    mesh: MeshConfig = MeshConfig()

    @field_validator("roles", "modules", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """A list in the environment is written with commas."""
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then jarvis.toml."""
        given = init_settings()
        path = Path(given["config"]) if given.get("config") else _configured_path(os.environ)
        return (init_settings, env_settings, _File(settings_cls, path))

    @classmethod
    def load(cls, **given: Any) -> Self:
        """The settings from arguments, environment and file. Raises `SettingsError` or `mesh.errors.ConfigError`."""
        try:
            return cls(**given)
        except ValidationError as error:
            raise SettingsError(str(config_error(Path("settings"), error))) from error

    @property
    def store_url(self) -> str:
        """The server of store and bus. Raises `SettingsError` when none is known."""
        if self.redis_url is None:
            raise SettingsError("no server is known: set JARVIS_REDIS_URL, or start a private one with `jarvis up`")
        return self.redis_url

    @property
    def celery_url(self) -> str:
        """The broker, as Celery takes it: its own URL, or the next database of the store's server."""
        return self.broker_url or broker_beside(self.store_url)


def broker_beside(store_url: str) -> str:
    """The broker URL that goes with a store URL: the same server, its next database. Raises `SettingsError` for a cluster."""
    parts, options = urlsplit(store_url), dict(parse_qsl(urlsplit(store_url).query))
    if parts.scheme.endswith("+cluster"):
        raise SettingsError("the store is a cluster, which has one database and cannot carry messages: set JARVIS_BROKER_URL")
    named = options.pop("db", None)
    if parts.scheme == "unix":
        # kombu reads credentials of a socket from before its path, and nowhere else.
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        return f"redis+socket://{_credentials(options, user, password)}{parts.path}?virtual_host={_database(named) + 1}"
    if not parts.scheme.endswith("+sentinel"):
        # kombu knows no other options in a URL, and reads credentials from before the host alone.
        given, _, host = parts.netloc.rpartition("@")
        user, _, password = given.partition(":")
        parts = parts._replace(netloc=f"{_credentials(options, user, password)}{host}")
        options = {name: value for name, value in options.items() if name.startswith("ssl_")}
    path = parts.path.strip("/")
    service, _, path = path.partition("/") if parts.scheme.endswith("+sentinel") else ("", "", path)
    place = f"{'/' + service if service else ''}/{_database(named or path) + 1}"
    return urlunsplit(parts._replace(path=place, query=urlencode(options, safe="/")))


def example_config() -> Path:
    """The jarvis.toml of the example holding company: in the wheel, or in the source tree beside the rooms."""
    packaged = Path(str(files("mesh"))) / "examples" / "holding" / CONFIG_NAME
    return packaged if packaged.exists() else Path(str(files("mesh"))).parent / "examples" / "holding" / CONFIG_NAME


def _configured_path(environ: Mapping[str, str]) -> Path:
    named = environ.get("JARVIS_CONFIG")
    if named:
        return Path(named)
    here = Path(CONFIG_NAME)
    return here if here.exists() else example_config()


class _File(PydanticBaseSettingsSource):
    """What jarvis.toml says, table by table."""

    def __init__(self, settings_cls: type[BaseSettings], path: Path) -> None:
        super().__init__(settings_cls)
        self._path = path

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Required of a source; this one gives everything at once, in its call."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        tables = read_tables(self._path)
        server = self._table(ServerSettings, "server", tables)
        return {
            "config": self._path,
            "mesh": parse_config(tables, self._path),
            "schedule": self._table(ScheduleSettings, "schedule", tables),
            "schedules": self._tables(OwnSchedules, "schedules", tables),
            "watchdog": self._table(WatchdogSettings, "watchdog", tables),
            "alerts": self._table(AlertSettings, "alerts", tables),
            "limits": self._table(LimitSettings, "limits", tables),
            **server.model_dump(exclude_none=True),
        }

    def _table(self, model: type[BaseModel], name: str, tables: Mapping[str, Any]) -> BaseModel:
        try:
            return model.model_validate(tables.get(name, {}))
        except ValidationError as error:
            raise config_error(self._path / name, error) from error

    def _tables(self, kind: Any, name: str, tables: Mapping[str, Any]) -> Any:
        try:
            return TypeAdapter(kind).validate_python(tables.get(name, ()))
        except ValidationError as error:
            raise config_error(self._path / name, error) from error


def _credentials(options: Mapping[str, str], user: str, password: str) -> str:
    """What stands before the host of a URL, of credentials that may be given among its options as well."""
    user = quote(options["username"], "") if "username" in options else user
    password = quote(options["password"], "") if "password" in options else password
    return f"{user}:{password}@" if user or password else ""


def _database(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
