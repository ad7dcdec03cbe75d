"""The composition root: the one place that names concrete backends and puts a process together from its settings.

What only workers use (Celery, the readers of feeds and calendars) is imported when it is asked for: a client that only looks
does not wait for it.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from redis import Redis

from bus import RedisSignalBus, SignalBus
from mesh.heartbeats import RedisHeartbeatStore
from mesh.knowledge import RedisKnowledgeStore
from mesh.ports import JarvisAgentFactory, JarvisHeartbeatStore, JarvisKnowledgeStore
from mesh.resources import JarvisResources
from persistence import Persistence, RedisPersistence
from persistence.redis import connect
from workers import registry
from workers.errors import SettingsError
from workers.settings import Settings
from workflow import Workflow, WorkflowEngine
from workflow.observing import Listener

if TYPE_CHECKING:
    from celery import Celery

    from workers.hints import Hints

__all__ = ["ALERT_PREFIX", "Runtime"]

ALERT_PREFIX = "jarvis:alerts:"
"""Keys of the delivery ledger, kept apart from runs."""


class Runtime:
    """Everything that a process of this mesh uses, made when first asked for. ``agents`` replaces the agent factory."""

    def __init__(self, settings: Settings, *, agents: JarvisAgentFactory | None = None) -> None:
        self.settings = settings
        self._agents = agents
        registry.load_modules(settings.modules)

    @cached_property
    def client(self) -> Redis:
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
    def signals(self) -> SignalBus:
        """The bus."""
        return RedisSignalBus(self.client)

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
        return WorkflowEngine(self.store)

    @cached_property
    def celery(self) -> "Celery":
        """The Celery application: a sender of hints here, the worker's own in a worker."""
        from celery import Celery

        from workers.celeryconfig import celery_settings

        app = Celery("workers")
        app.conf.update(celery_settings(self.settings))
        return app

    @cached_property
    def hints(self) -> "Hints":
        """How workers are told that a run can be continued."""
        from workers.hints import CeleryHints

        return CeleryHints(self.celery)

    @cached_property
    def agents(self) -> JarvisAgentFactory:
        """The agents: those handed in, or the ones that work by rule."""
        from mesh.roles.rules import RuleAgents
        from workers.facts import MeshFactsReader

        facts = MeshFactsReader(self.store, self.heartbeats, self.celery, self.settings)
        return self._agents or RuleAgents(self.settings.mesh, facts)

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is told what the runs of this process do."""
        from workers.listeners import process_listeners

        return process_listeners()

    def definition(self, name: str, workflow_id: str) -> Workflow[Any]:
        """A registered workflow, ready to run: on this store, listened to, with a lease, and with resources of the mesh.

        What it says itself of its lease and its resources stands, and the listeners are added to its own.
        """
        made = registry.definition(name, workflow_id).reconfigure(persistence=self.store).listened_to_by(*self.listeners)
        if made.lease_timeout is None:
            made = made.reconfigure(lease_timeout=self.settings.lease_timeout)
        return made if made.has_resources else made.reconfigure(resources=self._resources)

    def close(self) -> None:
        """Let go of connections."""
        if "client" in self.__dict__:
            self.client.close()
        if "celery" in self.__dict__:
            self.celery.close()

    def _resources(self) -> JarvisResources:
        return JarvisResources(self.signals, self.knowledge, self.heartbeats, self.agents)
