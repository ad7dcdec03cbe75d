"""Calling one node: the middleware around it, the items it streams, and what it ends with.

A node is a function or a generator, plain or async. Whatever it is, its step's context is entered anew for each piece of it
that runs, so that two streams read in one thread never see each other's.
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from workflow.bridge import Host
from workflow.context import StepContext, entered
from workflow.errors import GraphError, WorkflowError
from workflow.events import Event
from workflow.graph import NodeSpec
from workflow.middleware import Middleware
from workflow.observing import Phase
from workflow.parallel import ParallelEvent
from workflow.resources import WorkflowResources
from workflow.state import WorkflowState
from workflow.suspension import is_suspension

__all__ = ["Call"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One execution of one node."""

    spec: NodeSpec
    step: StepContext
    state: WorkflowState
    resources: WorkflowResources
    middleware: Sequence[Middleware]
    host: Host

    async def run(self, event: Event) -> Event | None:
        """What the node returned, or None when it has reached a wait."""
        try:
            with entered(self.step):
                given = await self._before(event)
                returned = await self._node(given)
                self._check(returned)
                await self._after(returned)
                self._check_suspension()
        except BaseException as error:
            if not is_suspension(error):
                raise
            return None
        return returned

    async def _before(self, event: Event) -> Event:
        for one in self.middleware:
            with self.step.observer.middleware(one, Phase.BEFORE):
                event = await self._replaced(one, event)
        return event

    async def _replaced(self, one: Middleware, event: Event) -> Event:
        """What the node gets after this middleware."""
        replacement = await self._outside(partial(one.before, self.spec.call, event, self.state, self.resources))
        if replacement is not None and type(replacement) is not type(event):
            raise WorkflowError(f"{type(one).__qualname__}.before returned another kind of event: return one of the same class")
        if isinstance(replacement, ParallelEvent) and isinstance(event, ParallelEvent):
            replacement = replacement.joined(event.results)
        return event if replacement is None else replacement

    async def _after(self, returned: Event) -> None:
        for one in self.middleware:
            with self.step.observer.middleware(one, Phase.AFTER):
                await self._outside(partial(one.after, self.spec.call, returned, self.state, self.resources))

    async def _outside(self, hook: "partial[T | Awaitable[T]]") -> T:
        """A hook of middleware, plain or async."""
        if inspect.iscoroutinefunction(hook.func):
            return await self.host.asynchronous(cast(Any, hook))
        returned = await self.host.blocking(hook)
        if inspect.isawaitable(returned):
            return await self.host.asynchronous(partial(_awaited, returned))
        return returned

    async def _node(self, event: Event) -> Any:
        arguments = self.spec.arguments(event, self.state, self.resources)
        call = partial(self.spec.call, *arguments)
        if self.spec.shape.is_generator and self.spec.shape.is_async:
            return await self.host.asynchronous(lambda: self._drain_async(call()))
        if self.spec.shape.is_generator:
            return await self.host.blocking(lambda: self._drain(call()))
        if self.spec.shape.is_async:
            return await self.host.asynchronous(call)
        return await self.host.blocking(call)

    def _drain(self, generator: Generator[Any, None, Any]) -> Any:
        """Hand over what a generator yields; its return value is the result."""
        try:
            while True:
                with entered(self.step):
                    item = next(generator)
                self.step.output.put(item)
        except StopIteration as end:
            return end.value
        finally:
            generator.close()

    async def _drain_async(self, generator: AsyncGenerator[Any, None]) -> Any:
        """Hand over what an async generator yields; the last event among it is the result."""
        result: Event | None = None
        try:
            async for item in generator:
                if not isinstance(item, Event):
                    await self.step.output.put_async(item)
                    continue
                if result is not None:
                    await self.step.output.put_async(result)
                result = item
        finally:
            await generator.aclose()
        return result

    def _check_suspension(self) -> None:
        if self.step.suspended_on is not None:
            raise WorkflowError(
                f"node {self.spec.step_name!r} swallowed its own suspension: an `except:` around a wait must let it pass"
            )

    def _check(self, returned: Any) -> None:
        self._check_suspension()
        if not isinstance(returned, Event):
            raise GraphError(f"node {self.spec.step_name!r} returned {type(returned).__qualname__}: it must return an event")


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
