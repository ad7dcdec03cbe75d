"""What a process does beside its main thread."""

import threading

from workers.life.beside import Beside


def test_it_is_done_again_and_again_until_it_is_stopped() -> None:
    done, enough = [], threading.Event()

    def do() -> None:
        done.append(threading.current_thread().name)
        if len(done) == 3:
            enough.set()

    beside = Beside("history", do, every=0)
    beside.start()
    assert enough.wait(10)
    beside.stop()
    assert set(done) == {"history"}
    assert "history" not in {thread.name for thread in threading.enumerate()}
