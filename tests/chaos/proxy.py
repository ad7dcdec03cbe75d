"""A TCP proxy before the server, one for each process, so that one may be cut off while the others go on.

What can be done to a proxy            as in the field
`cut`                                  a connection is reset
`freeze` until `thaw`                  the network is down; what was sent arrives later
`forget`                               a firewall forgets the connections that stand: they stay open and pass nothing
`lose_replies`                         the command arrived, and the connection ended before its reply
`slow`                                 a long way
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

__all__ = ["Proxies", "Proxy"]

CHUNK = 65536


class Proxy:
    """Passes on to a port. Its calls are for the loop's thread; `Proxies` makes them from any other."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._delay = 0.0
        self._losing = False
        self._links: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._forgotten: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def is_used(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._links)

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        for writer in [writer for writers in self._links.values() for writer in writers]:
            writer.transport.abort()

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def forget(self) -> None:
        self._forgotten.update(self._links)

    def lose_replies(self) -> None:
        self._losing = True

    def slow(self, delay: float) -> None:
        self._delay = delay

    def recover(self) -> None:
        """Pass everything on again. Forgotten connections stay forgotten."""
        self._losing = False
        self._delay = 0.0
        self._open.set()

    def close(self) -> None:
        """Let go of everybody, and listen no more."""
        if self._server is not None:
            self._server.close()
        self.recover()
        self.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links[task] = [writer]
        try:
            with suppress(OSError):
                answers, server = await asyncio.open_connection("127.0.0.1", self._target)
                self._links[task].append(server)
                there = asyncio.ensure_future(self._pass(task, reader, server, replies=False))
                await self._pass(task, answers, writer, replies=True)
                await there
        finally:
            for end in self._links.pop(task):
                end.transport.abort()
            self._forgotten.discard(task)

    async def _pass(
        self, link: asyncio.Task[None], source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, replies: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                await self._open.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)
                if link in self._forgotten:
                    continue
                if replies and self._losing:
                    break
                sink.write(data)
                await sink.drain()
        if link not in self._forgotten:
            for end in self._links[link]:
                end.transport.abort()


class Proxies:
    """All proxies before one server, on a loop in a thread of their own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._made: list[Proxy] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def make(self) -> Proxy:
        """A proxy that listens."""
        proxy = Proxy(self._target)
        self._made.append(proxy)
        self._wait(proxy.listen())
        return proxy

    def do(self, call: Callable[..., None], *args: Any) -> None:
        """Call a method of a proxy, and return when it is done."""

        async def called() -> None:
            call(*args)

        self._wait(called())

    def close(self) -> None:
        """End all connections, and the loop when nobody passes anything on."""
        self._wait(self._ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _ended(self) -> None:
        for proxy in self._made:
            proxy.close()
        while any(proxy.is_used for proxy in self._made):
            await asyncio.sleep(0.01)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)
