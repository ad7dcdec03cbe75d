"""What a ledger promises, and how a handler is made to keep to one.

A delivery may come twice: when a consumer dies between the effect of its handler and the acknowledgement, another one gets the
signal again. A ledger closes that gap for effects in its own store: it hands the handler a transaction, and commits what the
handler put into it and the record of the signal's id as one. A repeated delivery finds the record, and is over.

It closes no gap for effects elsewhere: a mail that was sent before the process died is sent again.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Protocol

from bus.contract import Signal

__all__ = ["KEEP", "Ledger", "once_only"]

KEEP = 45 * 24 * 3600
"""Seconds that a record is kept: longer than any stream keeps its signals (`bus.streams`)."""


class Ledger(Protocol):
    """Remembers ids by group. May be shared by any number of consumers, threads and processes."""

    def once(self, group: str, signal_id: str) -> AbstractContextManager[Any]:
        """Enter the handling of a signal: gives an open transaction of the store, or None when the signal has been handled.

        Leaving it commits the transaction and the record of the id as one; an error that passes through commits neither, and
        so does the commit of the same id by somebody else meanwhile, which raises. What the store itself raises is raised.
        """
        ...


def once_only(handler: Callable[..., Any], ledger: Ledger, group: str) -> Callable[[Signal], Any]:
    """A handler of signals from one of signals and transactions, called only for what the ledger does not know."""
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None)):  # noqa: B004
        return _once_on_a_loop(handler, ledger, group)

    @wraps(handler)
    def once(signal: Signal) -> None:
        with ledger.once(group, signal.id) as transaction:
            if transaction is not None:
                handler(signal, transaction)

    return once


def _once_on_a_loop(handler: Callable[..., Any], ledger: Ledger, group: str) -> Callable[[Signal], Any]:
    async def once(signal: Signal) -> None:
        """Opening and committing go to threads; the handler runs on the loop."""
        context = ledger.once(group, signal.id)
        transaction = await asyncio.to_thread(context.__enter__)
        try:
            if transaction is not None:
                await handler(signal, transaction)
        except BaseException:
            if not await asyncio.to_thread(context.__exit__, *sys.exc_info()):
                raise
        else:
            await asyncio.to_thread(context.__exit__, None, None, None)

    return once
