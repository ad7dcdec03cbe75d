"""A worker that lives and asks its broker for nothing is found out by its own probe, and brought back."""

from typing import Any

import pytest

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_deaf_worker_hears_again(make_work: Any, make_server: Any, until: Any, pool: str) -> None:
    work = make_work(make_server().url, JARVIS_PROBE_EVERY="0.3")
    worker = work.worker(pool, TEST_SABOTAGE="1")
    work.done("before")

    work.store.set("test:deafen", 1)
    until(lambda: not work.store.exists("test:deafen"), worker.output)
    handle = work.start("unheard")

    until(lambda: "this worker takes no messages: its consumer is started anew" in worker.output(), worker.output)
    assert handle.wait(10).result == "done"
    until(lambda: "this worker takes messages again" in worker.output(), worker.output)
    assert worker.popen.poll() is None


def test_a_busy_worker_is_not_deaf_and_beats(make_work: Any, make_server: Any, until: Any) -> None:
    work = make_work(make_server().url, JARVIS_PROBE_EVERY="0.5", JARVIS_HEARTBEAT_EVERY="0.5")
    worker = work.worker("solo")
    work.hold()
    handles = [work.start(f"busy-{number}") for number in range(2)]
    until(work.began, worker.output)

    before = beats(work)
    until(lambda: beats(work) >= before + 5, "more rounds of the probe than it has patience for")
    work.release()

    assert [handle.wait(10).result for handle in handles] == ["done", "done"]
    assert "takes no messages" not in worker.output()


def beats(work: Any) -> int:
    """How often workers have beaten."""
    heard = work.client.runtime.signals.read(("agent.heartbeat",))
    return sum(signal.payload["agent"].startswith("worker:") for signal in heard)
