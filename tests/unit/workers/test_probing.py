"""What the probe makes of tokens that come back, do not, or cannot be sent."""

import threading
from typing import Any

from workers.broker.probing import CONSUMER_SECONDS, PATIENCE, Hearing, Probe

EVERY = 10


class Trial:
    """A worker as the probe sees it."""

    def __init__(self) -> None:
        self.busy = False
        self.reachable = True
        self.comes_back = True
        self.done: list[str] = []
        self.probe = Probe(
            every=EVERY,
            send=lambda: self.reachable,
            is_busy=lambda: self.busy,
            reconnect=lambda: self.done.append("reconnected"),
            give_up=lambda: self.done.append("ended"),
        )

    def looks(self, rounds: int = 1) -> list[Hearing]:
        return [self.probe.look(lambda _: self.comes_back) for _ in range(rounds)]


def test_a_token_that_comes_back_is_heard_in_time() -> None:
    heard: list[Any] = []
    probe = Probe(every=5, send=lambda: not heard.append(1), is_busy=lambda: False, reconnect=heard.clear, give_up=heard.clear)
    waiting = threading.Timer(0.01, probe.hear)
    waiting.start()
    assert probe.look() is Hearing.WELL
    waiting.join()
    assert heard


def test_patience_ends_with_a_new_consumer_then_with_the_process() -> None:
    trial = Trial()
    trial.comes_back = False
    assert trial.looks(PATIENCE - 1) == [Hearing.WELL] * (PATIENCE - 1)
    assert not trial.done
    assert trial.looks() == [Hearing.DEAF]
    assert trial.done == ["reconnected"]
    trial.looks(CONSUMER_SECONDS // EVERY - 1)
    assert trial.done == ["reconnected"]
    trial.looks()
    assert trial.done == ["reconnected", "ended"]


def test_a_worker_that_hears_again_is_given_its_patience_back() -> None:
    trial = Trial()
    trial.comes_back = False
    trial.looks(PATIENCE)
    assert trial.probe.is_deaf
    trial.comes_back = True
    assert trial.looks() == [Hearing.WELL]
    trial.comes_back = False
    assert not any(hearing is Hearing.DEAF for hearing in trial.looks(PATIENCE - 1))


def test_a_busy_worker_and_one_that_is_cut_off_are_not_deaf() -> None:
    trial = Trial()
    trial.comes_back = False
    trial.busy = True
    assert trial.looks(2 * PATIENCE)[-1] is Hearing.BUSY
    trial.busy = False
    trial.reachable = False
    assert trial.looks(2 * PATIENCE)[-1] is Hearing.CUT_OFF
    assert not trial.done
