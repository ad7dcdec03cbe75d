"""The stop signals of an owner."""

import signal
import threading

import pytest

from workers.processes import StopRequested
from workers.processes.signals import StopSignals


@pytest.fixture
def signals():
    signals = StopSignals()
    signals.install()
    yield signals
    signals.restore()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_raised_as_a_keyboard_interrupt_that_names_it(signals, number):
    with pytest.raises(KeyboardInterrupt) as raised:
        signal.raise_signal(number)
    assert isinstance(raised.value, StopRequested)
    assert raised.value.number is number
    assert not signals.hurry()


def test_the_second_signal_only_says_that_there_is_a_hurry(signals):
    with pytest.raises(StopRequested):
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    assert signals.hurry()


class Finalized:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_came_within_a_finalizer_is_raised_again_once_somebody_looks(signals):
    Finalized()  # goes at once, and what its finalizer raises is dropped
    with pytest.raises(StopRequested) as raised:
        signals.repeat_lost()
    assert raised.value.number is signal.SIGTERM
    signals.settle()
    signals.repeat_lost()
    assert not signals.hurry()


def test_nothing_is_raised_again_where_no_signal_came(signals):
    signals.repeat_lost()
    assert not signals.hurry()


def test_nothing_is_raised_once_the_end_has_begun(signals):
    signals.settle()
    signal.raise_signal(signal.SIGTERM)
    assert signals.hurry()


def test_a_held_signal_is_raised_at_the_end_of_the_block(signals):
    reached: list[bool] = []

    def block() -> None:
        with signals.held():
            signal.raise_signal(signal.SIGINT)
            reached.append(True)

    with pytest.raises(StopRequested):
        block()
    assert reached


def test_a_block_without_a_signal_raises_nothing(signals):
    with signals.held():
        pass
    assert not signals.hurry()


def test_restoring_gives_the_signals_back():
    before = signal.getsignal(signal.SIGTERM)
    signals = StopSignals()
    signals.install()
    assert signal.getsignal(signal.SIGTERM) != before
    signals.restore()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_that_was_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        signals = StopSignals()
        signals.install()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signals.restore()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_nothing_is_taken_over():
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=StopSignals().install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
