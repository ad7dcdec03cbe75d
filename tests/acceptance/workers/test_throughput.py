"""A worker takes the next message as soon as it has a place for it, whatever its pool is made of."""

import time
from typing import Any

import pytest

pytestmark = pytest.mark.processes

RUNS = 40
SECONDS = 12
"""A worker of two places that looked for messages once a second would take 20."""


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_backlog_is_worked_off_without_pauses(make_work: Any, make_server: Any, pool: str) -> None:
    work = make_work(make_server().url)
    handles = [work.start(f"backlog-{number}") for number in range(RUNS)]
    work.worker(pool)

    began = time.monotonic()
    assert {handle.wait(60).result for handle in handles} == {"done"}
    assert time.monotonic() - began < SECONDS
