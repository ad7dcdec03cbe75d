"""How what a segment emits gets out: through a stream adapter where there is one, to the reader and to the channel.

Without adapter and channel nothing here stands between a node and its reader.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from workflow.adapting import StreamAdapter, frames_of
from workflow.bridge import Host
from workflow.channels import Channel, Feed
from workflow.errors import WorkflowError
from workflow.events import InterruptEvent
from workflow.observing import Observer
from workflow.outbox import Outbox
from workflow.output import Outlet, Output
from workflow.state import WorkflowState
from workflow.store import RunStore

__all__ = ["Delivery", "Route"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Route:
    """Which way the items of a workflow go: what makes its adapter and its channel, called once a segment has its run."""

    adapter: Callable[[], StreamAdapter | None] | None = None
    channel: Callable[[], Channel | None] | None = None

    def deliver(self, outlet: Outlet, store: RunStore, observer: Observer) -> "Delivery":
        """The delivery of one segment that has just claimed its run."""
        return Delivery(self, outlet, store, observer)


class Delivery:
    """The way out of one segment: `begin`, then the items put to `output`, then `settled` or `failed`."""

    def __init__(self, route: Route, outlet: Outlet, store: RunStore, observer: Observer) -> None:
        self._route = route
        self._outlet = outlet
        self._store = store
        self._observer = observer
        self._frames: _Frames | None = None
        self._outbox: Outbox | None = None
        self._settled = False
        self._told = False
        self.output: Output = outlet

    async def begin(self, host: Host) -> None:
        """Make the adapter and hand over its first frames. What it raises fails the run; what the channel raises does not."""
        if self._route.channel is not None:
            self._outbox = Outbox(partial(self._open, self._route.channel), self._report)
            self._outbox.begin()
        if self._route.adapter is not None:
            adapter = await host.blocking(self._route.adapter)
            if adapter is not None:
                self.output = self._frames = _Frames(adapter, self._outlet, self._outbox)
                await host.blocking(self._frames.begin)

    async def settled(self, host: Host, state: WorkflowState, tell: Callable[[], object]) -> None:
        """The run waits, or is completed: ``tell`` the listeners, then the reader and the channel. Alters nothing."""
        await self._end(host, tell, partial(self._show_settled, state), partial(_tell_settled, state))

    async def failed(self, host: Host, error: BaseException, tell: Callable[[], object]) -> None:
        """The segment has failed: as for `settled`."""
        await self._end(host, tell, partial(self._show_failed, error), lambda feed: feed.failed(error))

    async def _end(
        self, host: Host, tell: Callable[[], object], show: Callable[[], None], last: Callable[[Feed], object]
    ) -> None:
        """All of it even if the caller is cancelled meanwhile, and in a thread only where that may take its time."""
        end = partial(self._end_all, tell, show, last)
        if self._frames is None and self._outbox is None:
            end()
        else:
            await host.finishing(end)

    def _end_all(self, tell: Callable[[], object], show: Callable[[], None], last: Callable[[Feed], object]) -> None:
        """Trouble with the channel is told before listeners hear of the end, which comes last; then it is only logged."""
        if self._outbox is not None:
            self._outbox.drain()
        self._settled = True
        try:
            tell()
            show()
        finally:
            if self._outbox is not None:
                self._outbox.close(last)

    def _show_settled(self, state: WorkflowState) -> None:
        request = state.interrupt_request
        if self._frames is not None:
            self._frames.finish(partial(_last_frames, self._frames.adapter, state))
        elif request is not None:
            _offer(self._outlet, InterruptEvent(request))

    def _show_failed(self, error: BaseException) -> None:
        if self._frames is not None:
            self._frames.finish(partial(self._frames.adapter.error, error))

    def _open(self, channel: Callable[[], Channel | None]) -> Feed | None:
        made = channel()
        control = self._store.control
        return None if made is None else made.open(self._store.workflow_id, control.run_id, control.attempt)

    def _report(self, error: BaseException) -> None:
        """Trouble with the channel: one line for a segment, and an observation each time while the segment lasts."""
        if not self._told:
            self._told = True
            _log.warning("the channel of workflow %r fails, and its run goes on: %r", self._store.workflow_id, error)
        if not self._settled:
            self._observer.channel_failed(error)


class _Frames:
    """An output whose items go through an adapter. Reader and channel get the same frames in the same order."""

    def __init__(self, adapter: StreamAdapter, outlet: Outlet, outbox: Outbox | None) -> None:
        self.adapter = adapter
        self._outlet = outlet
        self._outbox = outbox
        # Held while the adapter works and its frames are queued, never while anybody waits for room.
        self._turn = threading.Lock()
        self._holder: int | None = None

    def put(self, item: Any) -> None:
        """See `Output.put`."""
        self._outlet.wait_for_room()
        if self._outbox is not None:
            self._outbox.wait_for_room()
        self.put_at_once(item)

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""
        await self._outlet.wait_for_room_async()
        if self._outbox is not None:
            await self._outbox.wait_for_room_async()
        self.put_at_once(item)

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""
        self._pass_on(lambda: self.adapter.transform(item), self._outlet.put_at_once)

    def begin(self) -> None:
        """Hand over the frames before the first item."""
        self._pass_on(self.adapter.start, self._outlet.put_at_once)

    def finish(self, make: Callable[[], Iterable[Any]]) -> None:
        """Hand over the last frames. The run is settled: an adapter that fails here, or a reader who has gone, is no matter."""
        try:
            self._pass_on(make, partial(_offer, self._outlet))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - whatever an adapter raises
            _log.exception("a stream adapter failed at its last frames")

    def _pass_on(self, make: Callable[[], Iterable[Any]], hand_over: Callable[[Any], None]) -> None:
        if self._holder == threading.get_ident():
            raise WorkflowError("a stream adapter must not emit: let it return all frames of its item")
        with self._turn:
            self._holder = threading.get_ident()
            try:
                for frame in frames_of(make()):
                    hand_over(frame)
                    if self._outbox is not None:
                        self._outbox.add(frame)
            finally:
                self._holder = None


def _offer(outlet: Outlet, item: Any) -> None:
    """Hand over one of the last items without waiting for room: nobody may read any more."""
    with suppress(WorkflowError):
        outlet.put_at_once(item)


def _last_frames(adapter: StreamAdapter, state: WorkflowState) -> Iterable[Any]:
    request = state.interrupt_request
    return adapter.end(state.model_copy(deep=True)) if request is None else adapter.interrupt(request)


def _tell_settled(state: WorkflowState, feed: Feed) -> None:
    """On a copy, so that whatever a channel does to it changes nothing that the run returns."""
    (feed.completed if state.interrupt_request is None else feed.interrupted)(state.model_copy(deep=True))
