"""Waiting for conditions, with a deadline."""

import time
from collections.abc import Callable

__all__ = ["until"]


def until(condition: Callable[[], object], what: object, patience: float = 30.0) -> None:
    """Poll a condition until it holds; fail saying what did not happen."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what() if callable(what) else what}"
        time.sleep(0.02)
