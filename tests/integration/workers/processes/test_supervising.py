"""What an owner does with its processes while it lives, and in which order it ends them."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from workers.errors import ProcessKeepsEndingError
from workers.processes import ProcessSpec, Supervisor

pytestmark = pytest.mark.processes


class Clock:
    """A clock that moves only when told; it sleeps for real, a little."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_process_that_ends_is_started_again_and_told_once(folder, tmp_path, wait_until):
    runs, said, clock = tmp_path / "runs", [], Clock()
    with Supervisor(folder, say=said.append, clock=clock) as supervisor:
        log = supervisor.log_path("worker")
        spec = ProcessSpec("worker", ["sh", "-c", f"echo run >> {runs}; echo it broke >&2; exit 3"], log=log)
        supervisor.start(spec)
        for number in range(1, 4):
            assert wait_until(lambda: supervisor.exit_code("worker") == 3)
            assert len(runs.read_text().splitlines()) == number
            supervisor.tend()
            clock.now += 40
            supervisor.tend()
    assert said == [f"worker ended unexpectedly (exit code 3); starting it again: it broke (all of it in {log})"]


def test_it_is_not_started_again_before_its_delay_is_over(folder, wait_until):
    clock = Clock()
    with Supervisor(folder, clock=clock) as supervisor:
        first = supervisor.start(ProcessSpec("worker", ["false"]))
        assert wait_until(lambda: supervisor.exit_code("worker") is not None)
        supervisor.tend()
        supervisor.tend()
        assert not psutil.pid_exists(first)
        clock.now += 0.49
        supervisor.tend()
        assert supervisor.exit_code("worker") == 1
        clock.now += 0.02
        supervisor.tend()
        assert wait_until(lambda: supervisor.exit_code("worker") == 1)


def test_a_process_that_keeps_ending_is_an_error_with_its_last_word(folder, wait_until):
    clock = Clock()
    with Supervisor(folder, clock=clock) as supervisor:
        log = supervisor.log_path("worker")
        supervisor.start(ProcessSpec("worker", ["sh", "-c", "echo no port; exit 1"], log=log))
        for _ in range(7):
            assert wait_until(lambda: supervisor.exit_code("worker") is not None)
            supervisor.tend()
            clock.now += 31
            supervisor.tend()
        assert wait_until(lambda: supervisor.exit_code("worker") is not None)
        with pytest.raises(ProcessKeepsEndingError) as error:
            supervisor.tend()
    assert str(error.value) == f"worker keeps ending (exit code 1): no port (all of it in {log})"


def test_the_children_of_a_dead_parent_end_before_it_is_started_again(folder, scripts, tmp_path, wait_until):
    pids = tmp_path / "pids"
    with Supervisor(folder) as supervisor:
        supervisor.start(ProcessSpec("worker", [sys.executable, str(scripts / "parent.py"), str(pids)]))
        assert wait_until(pids.exists)
        parent, *children = map(int, pids.read_text().split())
        os.kill(parent, signal.SIGKILL)
        assert wait_until(lambda: supervisor.exit_code("worker") == -signal.SIGKILL)
        supervisor.tend()
        assert not any(_runs(child) for child in children)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_program_that_cannot_be_run_says_so_in_its_log(folder, wait_until):
    with Supervisor(folder) as supervisor:
        log = supervisor.log_path("worker")
        supervisor.start(ProcessSpec("worker", ["no-such-program"], log=log))
        assert wait_until(lambda: supervisor.exit_code("worker") == 127)
        assert log.read_text() == "no-such-program cannot be run: No such file or directory\n"


def test_foundations_end_after_what_stands_on_them(folder, tmp_path, wait_until):
    order = tmp_path / "order"
    script = 'trap \'sleep {1}; echo {0} >> "$1"; exit\' TERM; touch "$1.{0}"; while :; do sleep 0.05; done'
    with Supervisor(folder) as supervisor:
        for name, foundation, seconds in (("server", True, 0), ("worker", False, 0.3)):
            argv = ["sh", "-c", script.format(name, seconds), "sh", str(order)]
            supervisor.start(ProcessSpec(name, argv, foundation=foundation))
        assert wait_until(lambda: len(list(tmp_path.glob("order.*"))) == 2)
    assert order.read_text().split() == ["worker", "server"]


def test_what_does_not_end_when_asked_is_ended_by_force(folder, scripts, tmp_path, wait_until):
    heard = tmp_path / "heard"
    with Supervisor(folder) as supervisor:
        argv = [sys.executable, str(scripts / "stubborn.py"), str(heard)]
        pid = supervisor.start(ProcessSpec("stubborn", argv, grace=0.3))
        assert wait_until(heard.exists)
    assert heard.read_text() == "SIGTERM\n"
    assert not psutil.pid_exists(pid)


def test_a_process_started_just_before_the_end_does_not_outlive_it(folder):
    for _ in range(5):
        with Supervisor(folder) as supervisor:
            pid = supervisor.start(ProcessSpec("worker", ["sleep", "600"]))
        assert not psutil.pid_exists(pid)
        assert list((folder / "processes").iterdir()) == []


def test_a_killed_guardian_is_replaced(start_owner, wait_until):
    owner = start_owner()
    owner.told("ready")
    (first,) = owner.guardians()
    first.kill()
    assert wait_until(lambda: [guardian.pid for guardian in owner.guardians()] not in ([], [first.pid]))


def test_a_fork_of_the_owner_does_not_end_its_processes(folder, tmp_path, scripts):
    program = (
        "import os, sys, pathlib\n"
        "from workers.processes import ProcessSpec, Supervisor\n"
        "with Supervisor(pathlib.Path(sys.argv[1])) as supervisor:\n"
        "    pid = supervisor.start(ProcessSpec('worker', ['sleep', '600']))\n"
        "    if os.fork() == 0:\n"
        "        sys.exit()\n"
        "    os.wait()\n"
        "    print(supervisor.exit_code('worker'))\n"
    )
    argv = [sys.executable, "-c", program, str(folder)]
    answer = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=scripts.parents[4], timeout=30)
    assert answer.stdout == "None\n"


def test_a_role_is_started_once(folder):
    with Supervisor(folder) as supervisor:
        supervisor.start(ProcessSpec("worker", ["sleep", "600"]))
        with pytest.raises(ValueError, match="'worker' was started already"):
            supervisor.start(ProcessSpec("worker", ["sleep", "600"]))


def test_children_get_their_own_environment_on_top_of_the_owners(folder, tmp_path, wait_until, monkeypatch):
    monkeypatch.setenv("OF_THE_OWNER", "1")
    with Supervisor(folder) as supervisor:
        log = supervisor.log_path("worker")
        spec = ProcessSpec("worker", ["sh", "-c", 'echo "$OF_THE_OWNER$OF_THE_CHILD"'], {"OF_THE_CHILD": "2"}, log)
        supervisor.start(spec)
        assert wait_until(lambda: supervisor.exit_code("worker") == 0)
        assert log.read_text() == "12\n"


def test_watching_ends_when_its_condition_is_met(folder):
    begun = time.monotonic()
    with Supervisor(folder) as supervisor:
        supervisor.watch(until=lambda: time.monotonic() - begun > 0.3)
        assert time.monotonic() - begun > 0.3
