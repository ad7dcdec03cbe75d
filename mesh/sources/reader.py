"""All sources at once: a few threads, a time limit, and one reading in the order of the list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from mesh.sources.item import Reading
from mesh.sources.source import Source
from mesh.sources.text import clean
from mesh.sources.window import Window

SOURCES_AT_ONCE = 8
SOURCE_SECONDS = 30.0
"""For one source. Its own time-outs are shorter; this is for the one whose time-outs did not help."""


def read_all(
    sources: Sequence[Source], window: Window, *, at_once: int = SOURCES_AT_ONCE, seconds: float = SOURCE_SECONDS
) -> Reading:
    """Return what all `sources` gave. A source that fails or does not come back in time is a gap, never an error."""
    if not sources:
        return Reading()
    pool = ThreadPoolExecutor(min(at_once, len(sources)), thread_name_prefix="source")
    futures = [pool.submit(source.read, window) for source in sources]
    wait(futures, timeout=seconds * math.ceil(len(sources) / at_once))
    together = Reading.sum(_outcome(source.name, future, seconds) for source, future in zip(sources, futures, strict=True))
    # Not waited for: a thread that hangs ends when its connection is closed.
    pool.shutdown(wait=False, cancel_futures=True)
    return together


def _outcome(name: str, future: Future[Reading], seconds: float) -> Reading:
    if not future.done():
        return Reading.gap(name, f"not read within {seconds:g} s")
    error = future.exception()
    if error is not None:
        return Reading.gap(name, f"failed with {type(error).__name__}: {clean(str(error), 120)}")
    return future.result()
