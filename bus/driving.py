"""How the consumer's coroutine meets the world: straight through in a thread, or on an event loop.

The coroutine awaits nothing but its driver. With plain handlers the thread driver never suspends, so the coroutine runs to
its end without any event loop.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from bus.errors import BusError

__all__ = ["Driver", "LoopDriver", "ThreadDriver", "run_blocking"]

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


class ThreadDriver:
    """Blocks the calling thread. For plain handlers only."""

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Driver.call`."""
        return function(*args, **kwargs)

    async def handle(self, handler: Callable[..., Any], value: object) -> None:
        """See `Driver.handle`."""
        handler(value)


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


def run_blocking(main: Callable[[Driver], Coroutine[Any, Any, T]], handler: Callable[..., Any]) -> T:
    """Run the coroutine to its end in this thread; with an async handler on a loop of its own, which lives as long.

    Raises `BusError` on a thread that runs an event loop, which it would block.
    """
    _refuse_on_a_loop()
    if _is_async(handler):
        return asyncio.run(main(LoopDriver()))
    coroutine = main(ThreadDriver())
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("the thread driver never suspends")


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BusError("this call would block the running event loop: await the form under .aio instead")


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004
