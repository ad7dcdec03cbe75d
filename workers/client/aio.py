"""`MeshClient.aio`: the same calls for asyncio, each in a thread; only waiting takes none."""

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any

from persistence import IndexEntry
from workers.client import MeshClient, RunHandle, RunResult
from workers.history import PastPage
from workflow import Event, WorkflowRunSnapshot, WorkflowStatus
from workflow.history import HistoryLine

if TYPE_CHECKING:
    from workers.schedules.overview import ScheduleView

__all__ = ["AsyncMeshClient"]


class AsyncMeshClient:
    """See `MeshClient`: what each call means is said there."""

    def __init__(self, client: MeshClient) -> None:
        self._client = client

    async def start(
        self, name: str, workflow_id: str, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None
    ) -> RunHandle:
        """See `MeshClient.start`."""
        return await asyncio.to_thread(self._client.start, name, workflow_id, event, run_id=run_id, tag=tag)

    async def enqueue_briefing(self, date: dt.date | None = None, *, again: bool = False) -> RunHandle:
        """See `MeshClient.enqueue_briefing`."""
        return await asyncio.to_thread(self._client.enqueue_briefing, date, again=again)

    async def wait(self, handle: RunHandle, timeout: float) -> RunResult:
        """See `RunHandle.wait`."""
        return await handle.wait_on_loop(timeout)

    async def answer(self, workflow_id: str, payload: Any, *, run_id: str, interrupt_id: int) -> bool:
        """See `MeshClient.answer`."""
        return await asyncio.to_thread(self._client.answer, workflow_id, payload, run_id=run_id, interrupt_id=interrupt_id)

    async def approve(self, workflow_id: str, decisions: Any, *, run_id: str, interrupt_id: int) -> bool:
        """See `MeshClient.approve`."""
        return await asyncio.to_thread(self._client.approve, workflow_id, decisions, run_id=run_id, interrupt_id=interrupt_id)

    async def signal(
        self, workflow_id: str, event: str, payload: Any = None, *, run_id: str | None = None, interrupt_id: int | None = None
    ) -> bool:
        """See `MeshClient.signal`."""
        return await asyncio.to_thread(
            self._client.signal, workflow_id, event, payload, run_id=run_id, interrupt_id=interrupt_id
        )

    async def cancel(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """See `MeshClient.cancel`."""
        return await asyncio.to_thread(self._client.cancel, workflow_id, run_id=run_id)

    async def abandon(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """See `MeshClient.abandon`."""
        return await asyncio.to_thread(self._client.abandon, workflow_id, run_id=run_id)

    async def retry(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """See `MeshClient.retry`."""
        return await asyncio.to_thread(self._client.retry, workflow_id, run_id=run_id)

    async def inspect(self, workflow_id: str) -> WorkflowRunSnapshot | None:
        """See `MeshClient.inspect`."""
        return await asyncio.to_thread(self._client.inspect, workflow_id)

    async def runs(
        self,
        *,
        status: WorkflowStatus | None = None,
        name: str | None = None,
        tag: str | None = None,
        limit: int = 100,
        after: IndexEntry | None = None,
    ) -> list[IndexEntry]:
        """See `MeshClient.runs`."""
        return await asyncio.to_thread(self._client.runs, status=status, name=name, tag=tag, limit=limit, after=after)

    async def schedules(self) -> "list[ScheduleView]":
        """See `MeshClient.schedules`."""
        return await asyncio.to_thread(self._client.schedules)

    async def past_runs(self, **query: Any) -> PastPage:
        """See `MeshClient.past_runs`."""
        return await asyncio.to_thread(self._client.past_runs, **query)

    async def history(self, workflow_id: str, *, run_id: str | None = None) -> list[HistoryLine]:
        """See `MeshClient.history`."""
        return await asyncio.to_thread(self._client.history, workflow_id, run_id=run_id)
