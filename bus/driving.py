"""How the consumer's coroutine meets the world: straight through in a thread, or on an event loop.

The coroutine awaits nothing but its driver. With plain handlers the thread driver never suspends, so the coroutine runs to
its end without any event loop.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from bus.errors import BusError

__all__ = ["Driver", "LoopDriver", "ThreadDriver", "run_blocking", "straight_through"]

P = ParamSpec("P")
T = TypeVar("T")


class Driver(Protocol):
    """The only things that the coroutine waits for."""

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """A blocking call to the bus."""
        ...

    async def handle(self, handler: Callable[..., Any], value: object) -> None:
        """A plain or async handler; what it raises is raised."""
        ...

    async def together(self, works: Sequence[Callable[[], Coroutine[Any, Any, T]]], most: int) -> list[T]:
        """Do all of these, at most so many at a time. When some raise, the first error is raised once all have ended."""
        ...


class ThreadDriver:
    """Blocks the calling thread. For plain handlers only."""

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Driver.call`."""
        return function(*args, **kwargs)

    async def handle(self, handler: Callable[..., Any], value: object) -> None:
        """See `Driver.handle`."""
        handler(value)

    async def together(self, works: Sequence[Callable[[], Coroutine[Any, Any, T]]], most: int) -> list[T]:
        """See `Driver.together`: each in a thread of its own, or here where there is nothing to gain."""
        if most == 1 or len(works) < 2:
            return [await work() for work in works]
        with ThreadPoolExecutor(min(most, len(works)), "handler") as pool:
            ends = [pool.submit(_done_straight_through, work) for work in works]
        return [end.result() for end in ends]


class LoopDriver:
    """Keeps the running loop free: blocking calls and plain handlers go to threads."""

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Driver.call`."""
        return await asyncio.to_thread(function, *args, **kwargs)

    async def handle(self, handler: Callable[..., Any], value: object) -> None:
        """See `Driver.handle`."""
        if _is_async(handler):
            await handler(value)
        else:
            await asyncio.to_thread(handler, value)

    async def together(self, works: Sequence[Callable[[], Coroutine[Any, Any, T]]], most: int) -> list[T]:
        """See `Driver.together`. Plain handlers share the threads of the loop's default executor."""
        if most == 1 or len(works) < 2:
            return [await work() for work in works]
        slots = asyncio.Semaphore(most)

        async def in_slot(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
            async with slots:
                return await work()

        ends = await asyncio.gather(*(in_slot(work) for work in works), return_exceptions=True)
        return [_value(end) for end in ends]


def run_blocking(main: Callable[[Driver], Coroutine[Any, Any, T]], handler: Callable[..., Any]) -> T:
    """Run the coroutine to its end in this thread; with an async handler on a loop of its own, which lives as long.

    Raises `BusError` on a thread that runs an event loop, which it would block.
    """
    _refuse_on_a_loop()
    if _is_async(handler):
        return asyncio.run(main(LoopDriver()))
    return straight_through(main(ThreadDriver()))


def straight_through(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends to its end, without any event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("the thread driver never suspends")


def _done_straight_through(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return straight_through(work())


def _value(end: T | BaseException) -> T:
    if isinstance(end, BaseException):
        raise end
    return end


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BusError("this call would block the running event loop: await the form under .aio instead")


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004
