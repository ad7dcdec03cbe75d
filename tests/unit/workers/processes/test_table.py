"""The processes of this machine, read from `/proc` and from `ps`."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from workers.processes.identity import alive, started, started_by_ps
from workers.processes.table import MARK, read_ps, read_table


@pytest.fixture
def marked_child():
    """Return the pid of a child in a session of its own that bears the mark `feed`."""
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    environ = {**os.environ, MARK: "feed"}
    with subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_a_process_is_read_with_its_group_its_start_and_its_mark(marked_child):
    found = read_table()[marked_child]
    assert (found.parent, found.group, found.session) == (os.getpid(), marked_child, marked_child)
    assert found.started == started(marked_child)
    assert found.mark == "feed"
    assert not found.ended


def test_ps_tells_the_same_but_for_sessions_and_the_form_of_the_start(marked_child):
    by_ps, found = read_ps()[marked_child], read_table()[marked_child]
    assert by_ps == replace(found, session=0, started=started_by_ps(marked_child))


def test_a_process_that_was_not_waited_for_has_ended():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_table()[process.pid].ended
    assert read_ps()[process.pid].ended
    assert started(process.pid) is None
    assert started_by_ps(process.pid) is None
    process.wait()


def test_a_pid_alone_is_not_a_process(marked_child):
    since = started(marked_child)
    assert since
    assert alive(marked_child, since)
    assert not alive(marked_child, f"{since}0")
    assert not alive(os.getpid(), since)


def test_a_pid_that_nobody_has_has_no_start():
    process = subprocess.Popen(["true"])
    process.wait()
    assert started(process.pid) is None
    assert started_by_ps(process.pid) is None
