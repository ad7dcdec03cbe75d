"""The composition root: the one place that names concrete backends and puts a process together from its settings.

What only workers use (Celery, the readers of feeds and calendars) is imported when it is asked for: a client that only looks
does not wait for it.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from bus import RedisChannel, RedisSignalBus, SignalBus, open_channel
from mesh.heartbeats import RedisHeartbeatStore
from mesh.knowledge import RedisKnowledgeStore
from mesh.ports import JarvisAgentFactory, JarvisHeartbeatStore, JarvisKnowledgeStore
from mesh.resources import JarvisResources
from mesh.watchdog import WatchdogWorkflow
from persistence import Persistence, RedisPersistence
from persistence.redis import Client, connect
from workers import registry
from workers.errors import SettingsError
from workers.history import HistoryRelay, RunArchive
from workers.limits import Gate, InMemorySlots, RedisSlots
from workers.schedules.schedule import schedule_of
from workers.settings import Settings
from workers.signals.positions import BusPosition
from workers.waking import InMemoryWakeUps, RedisWakeUps, WakeUps
from workflow import Clock, SystemClock, Workflow, WorkflowEngine
from workflow.observing import Listener

if TYPE_CHECKING:
    from celery import Celery

    from workers.broker.hints import Hints
    from workers.signals.subscriptions import Subscriptions

__all__ = ["ALERT_PREFIX", "OCCURRENCE_RETAIN_FOR", "Runtime"]

ALERT_PREFIX = "jarvis:alerts:"
"""Keys of the delivery ledger, kept apart from runs."""
HISTORY_PREFIX = "jarvis:history:"
"""Keys of the archive of runs, kept apart from runs."""
SWEEPS_REMEMBERED = 24 * 3600
"""Seconds for which a sweep of the watchdog that went well is remembered: there is one each minute."""
OCCURRENCE_RETAIN_FOR = 7 * 24 * 3600
"""Seconds for which a run of a user's schedule is kept at least: while it is there its slot cannot run again."""


_OUTLIVING_A_FORK = frozenset({"settings", "clock", "_agents", "celery", "hints", "listeners"})
"""What of a runtime holds no connection of ours; Celery sees to its own."""


class Runtime:
    """Everything that a process of this mesh uses, made when first asked for.

    ``agents`` replaces the agent factory, ``clock`` says when a run is due.
    """

    def __init__(self, settings: Settings, *, agents: JarvisAgentFactory | None = None, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self._agents = agents
        registry.load_modules(settings.modules)

    @cached_property
    def client(self) -> Client:
        """The server of store and bus. Raises `SettingsError` for a URL that is none."""
        try:
            return connect(self.settings.store_url)
        except ValueError as wrong:
            raise SettingsError(f"JARVIS_REDIS_URL: {wrong}") from wrong

    @cached_property
    def store(self) -> Persistence:
        """Runs."""
        return RedisPersistence(self.client)

    @cached_property
    def deliveries(self) -> Persistence:
        """Which alerts have been delivered."""
        return RedisPersistence(self.client, prefix=ALERT_PREFIX)

    @cached_property
    def deliveries_here(self) -> Persistence:
        """Which alerts this machine has delivered, on its own disk: no server that is full or forgets takes that away."""
        from persistence.file import FilePersistence

        return FilePersistence(self.settings.home / "alerts")

    @cached_property
    def archive(self) -> RunArchive:
        """What has become of runs."""
        settings = self.settings
        return RunArchive(
            RedisPersistence(self.client, prefix=HISTORY_PREFIX),
            keep_for=settings.history_keep_for,
            max_runs=settings.history_max_runs,
            brief={str(WatchdogWorkflow.name): SWEEPS_REMEMBERED},
        )

    @cached_property
    def relay(self) -> HistoryRelay:
        """What passes the history of runs on, from the store into the archive and onto the bus."""
        return HistoryRelay(self.store, self.archive, self.signals)

    @cached_property
    def signals(self) -> SignalBus:
        """The bus."""
        return RedisSignalBus(self.client)

    @cached_property
    def channel(self) -> RedisChannel:
        """Where the frames of runs are pushed, so that they can be watched from elsewhere."""
        return open_channel(self.settings.store_url)

    @cached_property
    def knowledge(self) -> JarvisKnowledgeStore:
        """The notes that agents share."""
        return RedisKnowledgeStore(self.client)

    @cached_property
    def heartbeats(self) -> JarvisHeartbeatStore:
        """When each agent was last seen."""
        return RedisHeartbeatStore(self.client)

    @cached_property
    def engine(self) -> WorkflowEngine:
        """Runs by their workflow id alone."""
        return WorkflowEngine(self.store, clock=self.clock)

    def engine_of(self, name: str, workflow_id: str) -> WorkflowEngine:
        """The engine for a run of this definition, which may have a codec of its own."""
        return self.definition(name, workflow_id).engine() if name in registry.names() else self.engine

    @cached_property
    def celery(self) -> "Celery":
        """The Celery application: a sender of hints here, the worker's own in a worker."""
        from celery import Celery

        from workers.broker.celeryconfig import celery_settings

        app = Celery("workers")
        app.conf.update(celery_settings(self.settings))
        return app

    @cached_property
    def hints(self) -> "Hints":
        """How workers are told that a run can be continued."""
        from workers.broker.hints import CeleryHints

        return CeleryHints(self.celery)

    @cached_property
    def wake_ups(self) -> WakeUps:
        """How whoever waits for a run hears that it is settled; without a server, from this process alone."""
        return InMemoryWakeUps() if self.settings.redis_url is None else RedisWakeUps(self.client)

    @cached_property
    def position(self) -> BusPosition:
        """Where the bus stands."""
        return BusPosition(self.signals)

    @cached_property
    def subscriptions(self) -> "Subscriptions":
        """How signals reach runs that wait for them."""
        from workers.signals.subscriptions import Subscriptions

        return Subscriptions(self.store, self.engine_of, self.signals, self.hints)

    @cached_property
    def gate(self) -> Gate:
        """How many segments of a kind may run at once."""
        limits = self.settings.limits
        # Without limits nobody asks for a slot, and no server is needed.
        slots = RedisSlots(self.client) if limits.workflows or limits.roles else InMemorySlots()
        return Gate(slots, limits.workflows, limits.roles, registry.roles_of)

    @cached_property
    def agents(self) -> JarvisAgentFactory:
        """The agents: those handed in, or the ones that work by rule."""
        from mesh.roles.rules import RuleAgents
        from workers.facts import MeshFactsReader

        facts = MeshFactsReader(self.store, self.engine_of, self.heartbeats, self.celery, self.settings)
        return self._agents or RuleAgents(self.settings.mesh, facts)

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is told what the runs of this process do."""
        from workers.telemetry.listeners import process_listeners

        return process_listeners()

    def now(self) -> float:
        """The present moment in Unix seconds."""
        return self.clock.now().timestamp()

    def definition(self, name: str, workflow_id: str) -> Workflow[Any]:
        """A registered workflow, ready to run: on store and bus, listened to, with lease, history and resources of the mesh.

        What it says itself of lease, takeovers, resources and channel stands, and the listeners are added to its own. One that
        has a stream adapter pushes its frames to the mesh's channel.
        """
        made = registry.definition(name, workflow_id).reconfigure(persistence=self.store).listened_to_by(*self.listeners)
        if made.lease_timeout is None:
            made = made.reconfigure(lease_timeout=self.settings.lease_timeout)
        if made.max_takeovers is None:
            made = made.reconfigure(max_takeovers=self.settings.max_takeovers)
        made = made.reconfigure(history=True, signal_position=self.position)
        if made.streams:
            made = made.reconfigure(channel=self.channel)
        if any(schedule_of(workflow_id) == own.name for own in self.settings.schedules):
            made = _kept(made)
        return made if made.has_resources else made.reconfigure(resources=self._resources)

    def forget_connections(self) -> None:
        """In a forked child: make connections anew when they are asked for. The parent's are left to it."""
        for name in self.__dict__.keys() - _OUTLIVING_A_FORK:
            del self.__dict__[name]

    def close(self) -> None:
        """Let go of connections."""
        if isinstance(self.__dict__.get("wake_ups"), RedisWakeUps):
            self.__dict__["wake_ups"].close()
        if "client" in self.__dict__:
            self.client.close()
        if "celery" in self.__dict__:
            self.celery.close()

    def _resources(self) -> JarvisResources:
        return JarvisResources(self.signals, self.knowledge, self.heartbeats, self.agents, clock=self.clock)


def _kept(made: Workflow[Any]) -> Workflow[Any]:
    """The definition for an occurrence of a schedule: kept long enough, whatever it says of other runs."""
    if made.retain_for is None and made.retain_completion:
        return made  # for ever
    return made.reconfigure(retain_for=max(made.retain_for or 0, OCCURRENCE_RETAIN_FOR))
