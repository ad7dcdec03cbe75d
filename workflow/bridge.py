"""The one place where synchronous and asynchronous code meet.

The engine's core is a coroutine whose only real awaits go through a *host*. `DirectHost` drives it straight through in the
calling thread: no event loop, store calls inline, and async nodes on one long-lived loop thread of this process (never a loop
per call, which breaks asyncio clients). `LoopHost` runs it on the caller's event loop, with store calls and synchronous nodes
in threads.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workflow.errors import WorkflowError

__all__ = ["DirectHost", "Host", "LoopHost", "drive", "in_thread", "refuse_on_event_loop"]

T = TypeVar("T")
Core = Coroutine[Any, Any, None]
MAX_THREADS = 1000
"""Blocking calls at once. A node whose reader is slow keeps its thread, so this is also how many such nodes a process holds."""


class Host(Protocol):
    """Where a segment runs."""

    async def blocking(self, call: Callable[[], T]) -> T:
        """Run something that blocks: a store call, a synchronous node."""
        ...

    async def finishing(self, call: Callable[[], T]) -> T:
        """Run something that blocks and must not be left half done: a caller that is cancelled waits until it has ended."""
        ...

    async def asynchronous(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function on an event loop."""
        ...

    async def together(self, cores: Sequence[Core], limit: int | None, stop: Callable[[], None]) -> None:
        """Run core coroutines side by side, so many at a time at most, to the end of each. They raise nothing.

        When the wait for them is broken off those that have begun still come to their ends; ``stop`` tells them to hurry.
        """
        ...


class DirectHost:
    """Everything in the calling thread, but for async nodes, which run on the process's loop thread while this one waits."""

    async def blocking(self, call: Callable[[], T]) -> T:
        """See `Host.blocking`."""
        return call()

    async def finishing(self, call: Callable[[], T]) -> T:
        """See `Host.finishing`."""
        return call()

    async def asynchronous(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """See `Host.asynchronous`."""
        future = asyncio.run_coroutine_threadsafe(_outcome(call), _loop_thread.loop())
        try:
            returned = future.result()
        except BaseException:
            future.cancel()
            raise
        if isinstance(returned, _Leaving):
            raise returned.error
        return returned

    async def together(self, cores: Sequence[Core], limit: int | None, stop: Callable[[], None]) -> None:
        """See `Host.together`: a thread for each."""
        with ThreadPoolExecutor(limit or len(cores), thread_name_prefix="workflow-branch") as pool:
            try:
                for done in [pool.submit(contextvars.copy_context().run, drive, core) for core in cores]:
                    done.result()
            except BaseException:
                stop()  # Ctrl-C comes to this thread alone; leaving the block waits for the others
                raise


class LoopHost:
    """Everything on the caller's event loop, blocking calls in threads."""

    async def blocking(self, call: Callable[[], T]) -> T:
        """See `Host.blocking`."""
        return await in_thread(call)

    async def finishing(self, call: Callable[[], T]) -> T:
        """See `Host.finishing`."""
        running = asyncio.ensure_future(in_thread(call))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def asynchronous(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """See `Host.asynchronous`."""
        return await call()

    async def together(self, cores: Sequence[Core], limit: int | None, stop: Callable[[], None]) -> None:
        """See `Host.together`: a task for each, cancelled with this one."""
        room = asyncio.Semaphore(limit or len(cores))

        async def in_turn(core: Core) -> None:
            async with room:
                await core

        # Exceptions are returned, since one that is cancelled while it waits for room must not end the wait for the others.
        await asyncio.gather(*map(in_turn, cores), return_exceptions=True)


async def in_thread(call: Callable[[], T]) -> T:
    """Run something that blocks in a thread, in a copy of this context.

    Not in the loop's own pool: that one is small, and belongs to the application.
    """
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads.pool(), context.run, call)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Somebody wants to end the program."""

    error: BaseException


async def _outcome(call: Callable[[], Coroutine[Any, Any, T]]) -> "T | _Leaving":
    """What the call returns. What would end the loop is returned too, for other runs have their nodes on it."""
    try:
        return await call()
    except (KeyboardInterrupt, SystemExit) as error:
        return _Leaving(error)


def drive(core: Coroutine[Any, Any, T]) -> T:
    """Run a core coroutine on a `DirectHost` to its end: it never really suspends."""
    try:
        core.send(None)
    except StopIteration as end:
        return end.value
    core.close()
    raise WorkflowError("a synchronous run tried to suspend on an event loop: await engine calls only through their host")


def refuse_on_event_loop(blocking: str, instead: str) -> None:
    """Raise `WorkflowError` when a blocking call is made on a thread whose event loop it would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WorkflowError(f"{blocking} would block the event loop: use `await {instead}`")


class _LoopThread:
    """One event loop in one daemon thread, made when first needed and anew in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="workflow-loop", daemon=True).start()
            return self._loop

    def forget(self) -> None:
        """After a fork: the thread is the parent's; this process makes its own."""
        self._lock = threading.Lock()
        self._loop = None


class _Threads:
    """The threads of all event loops, each made when first needed, and all anew in a forked child."""

    def __init__(self) -> None:
        self.forget()

    def pool(self) -> ThreadPoolExecutor:
        return self._pool

    def forget(self) -> None:
        """After a fork: the threads are the parent's."""
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="workflow")


_loop_thread = _LoopThread()
_threads = _Threads()
os.register_at_fork(after_in_child=_loop_thread.forget)
os.register_at_fork(after_in_child=_threads.forget)
