"""An event loop in the thread of its task: what the engine gives to threads is done there, after a drawn number of turns.

So the branches of a run on a loop overtake each other at every store operation and every plain node, and one seed says how.
"""

import asyncio
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar
from unittest.mock import patch

import workflow.bridge
import workflow.context

__all__ = ["staggered"]

T = TypeVar("T")
MOST_TURNS = 4
"""Turns of the loop that one call may take."""


@contextmanager
def staggered(dice: random.Random) -> Generator[None]:
    """The engine on loops without threads, for a block."""

    async def in_turns(call: Callable[[], T]) -> T:
        for _ in range(dice.randrange(MOST_TURNS)):
            await asyncio.sleep(0)
        return _off_the_loop(call)

    with patch.object(workflow.bridge, "in_thread", in_turns), patch.object(workflow.context, "in_thread", in_turns):
        yield


def _off_the_loop(call: Callable[[], T]) -> T:
    """Let a call believe that no loop runs in its thread."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return call()
    finally:
        asyncio._set_running_loop(loop)
