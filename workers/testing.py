"""A mesh in the memory of one process, for tests of what is built on it: no server, no broker, no waiting.

What workers, sweeper and signal consumers do all day, `InMemoryRuntime.work` does until nothing is left to do now. With a
`ManualClock` a test turns time, so that timers, deadlines and retries cost none.
"""

from functools import cached_property
from typing import Any

from bus import InMemorySignalBus
from mesh.heartbeats import InMemoryHeartbeatStore
from mesh.knowledge import InMemoryKnowledgeStore
from mesh.ports import JarvisAgentFactory
from mesh.roles.rules import RuleAgents
from persistence import InMemoryPersistence, Persistence
from workers.composition import Runtime
from workers.history import RunArchive
from workers.limits import Gate, InMemorySlots
from workers.registry import roles_of
from workers.segments import run_segment
from workers.settings import Settings
from workers.sweeper import Sweeper
from workers.waking import InMemoryWakeUps
from workflow import CallbackChannel, Clock, Envelope, Workflow

__all__ = ["InMemoryRuntime", "NotedHints"]


class NotedHints:
    """Hints that are noted, oldest first, and wait until somebody follows them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        """All that was ever sent: name, workflow id and run id."""
        self._followed = 0

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        """See `workers.broker.hints.Hints.send`."""
        self.sent.append((name, workflow_id, run_id))
        return True

    def take(self) -> list[tuple[str, str, str]]:
        """Those that nobody has followed yet."""
        taken, self._followed = self.sent[self._followed :], len(self.sent)
        return taken


class InMemoryRuntime(Runtime):
    """What a `MeshClient` and its workers use, without a server. Without settings, those of the environment and jarvis.toml.

    ``agents`` are asked by the mesh's own workflows, ``clock`` is that of all runs, and ``store`` may be shared with another
    runtime, as processes share it.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        agents: JarvisAgentFactory | None = None,
        clock: Clock | None = None,
        store: Persistence | None = None,
    ) -> None:
        super().__init__(settings or Settings.load(), agents=agents, clock=clock)
        self.frames: list[Envelope] = []
        """What runs with a stream adapter have pushed."""
        self._given_store = store
        self._heard: str | None = None

    def work(self) -> int:
        """Do what workers, sweeper and consumers would, until nothing is left to do now.

        History is passed on, signals reach the runs that wait for them, and what is due is taken up and executed.
        Returns how many segments that took. What a run raises is recorded with it, as in a worker.
        """
        sweeper = Sweeper(
            self.store, self.hints, every=0, now=self.now, engine_of=self.engine_of, attend=self.subscriptions.attend
        )
        segments = 0
        while True:
            self.relay.pass_on()
            self._hear()
            swept = sweeper.sweep()
            followed = self.hints.take()
            for name, workflow_id, run_id in followed:
                run_segment(self, name, workflow_id, run_id)
            segments += len(followed)
            if not swept and not followed:
                return segments

    def _hear(self) -> None:
        while page := self.signals.read(after=self._heard):
            for signal in page:
                self.subscriptions.hear(signal)
            self._heard = page.position

    def definition(self, name: str, workflow_id: str) -> Workflow[Any]:
        """See `Runtime.definition`."""
        return super().definition(name, workflow_id).reconfigure(clock=self.clock)

    @cached_property
    def store(self) -> Persistence:
        """See `Runtime.store`."""
        return self._given_store or InMemoryPersistence()

    @cached_property
    def deliveries(self) -> Persistence:
        """See `Runtime.deliveries`."""
        return InMemoryPersistence()

    @cached_property
    def deliveries_here(self) -> Persistence:
        """See `Runtime.deliveries_here`."""
        return InMemoryPersistence()

    @cached_property
    def archive(self) -> RunArchive:
        """See `Runtime.archive`."""
        return RunArchive(InMemoryPersistence())

    @cached_property
    def signals(self) -> InMemorySignalBus:
        """See `Runtime.signals`."""
        return InMemorySignalBus(self.clock.now)

    @cached_property
    def channel(self) -> Any:
        """See `Runtime.channel`."""
        return CallbackChannel(self.frames.append)

    @cached_property
    def knowledge(self) -> InMemoryKnowledgeStore:
        """See `Runtime.knowledge`."""
        return InMemoryKnowledgeStore()

    @cached_property
    def heartbeats(self) -> InMemoryHeartbeatStore:
        """See `Runtime.heartbeats`."""
        return InMemoryHeartbeatStore(self.clock)

    @cached_property
    def hints(self) -> NotedHints:
        """See `Runtime.hints`."""
        return NotedHints()

    @cached_property
    def wake_ups(self) -> InMemoryWakeUps:
        """See `Runtime.wake_ups`."""
        return InMemoryWakeUps()

    @cached_property
    def gate(self) -> Gate:
        """See `Runtime.gate`."""
        limits = self.settings.limits
        return Gate(InMemorySlots(self.now), limits.workflows, limits.roles, roles_of)

    @cached_property
    def agents(self) -> JarvisAgentFactory:
        """See `Runtime.agents`. Those that work by rule see nothing of the mesh's own state."""
        return self._agents or RuleAgents(self.settings.mesh, clock=self.clock.now)
