"""The four ports in one hand, and a clock: what the mesh's workflows can use while a segment runs."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from mesh.ports import JarvisAgentFactory, JarvisHeartbeatStore, JarvisKnowledgeStore, JarvisSignalBus
from workflow import Clock, SystemClock, WorkflowResources

__all__ = ["JarvisResources"]


class JarvisResources(WorkflowResources):
    """Rebuilt for each segment; ``closers`` are called when it ends, the last one first."""

    def __init__(
        self,
        signals: JarvisSignalBus,
        knowledge: JarvisKnowledgeStore,
        heartbeats: JarvisHeartbeatStore,
        agents: JarvisAgentFactory,
        *,
        clock: Clock | None = None,
        closers: Sequence[Callable[[], None]] = (),
    ) -> None:
        super().__init__()
        self.signals = signals
        self.knowledge = knowledge
        self.heartbeats = heartbeats
        self.agents = agents
        self.clock = clock or SystemClock()
        self._closing = ExitStack()
        for close in closers:
            self._closing.callback(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.close()
