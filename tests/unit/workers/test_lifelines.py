"""A parent learns of a child's death from its lifeline, with what the child had in hand."""

import os
import queue
import signal

import pytest

from workers.life.in_hand import HeldSegment
from workers.life.lifelines import Lifelines

ONE = HeldSegment("held", "w-1", "run_1", 1)
OTHER = HeldSegment("held", 'w "2"\n', "run_2", 3)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # what is forked here takes no lock
def test_a_killed_child_leaves_what_it_had_begun_and_not_ended() -> None:
    lifelines = Lifelines()
    lost: queue.Queue[tuple[int, set[HeldSegment]]] = queue.Queue()
    watching = lifelines.start(lambda pid, left: lost.put((pid, left)))

    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            lifelines.hold()
            for begins, segment in ((True, ONE), (True, OTHER), (False, ONE)):
                lifelines.tell(begins, segment)
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.read(told, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(told)
    os.close(tell)

    assert lost.get(timeout=10) == (child, {OTHER})
    assert lifelines.children() == {}
    lifelines.stop()
    watching.join(10)


def test_nothing_is_said_without_a_lifeline() -> None:
    lifelines = Lifelines()
    lifelines.tell(True, ONE)
    assert lifelines.children() == {}
    lifelines.stop()
    lifelines.watch(lambda *_: None)
