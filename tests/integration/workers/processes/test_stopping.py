"""Ctrl-C and its kin, at any moment: nothing is left, and whoever presses twice waits less."""

import os
import random
import signal
import time

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.server]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_everything(start_owner, parent_role, pids_of, living_of, number):
    owner = start_owner("server", parent_role("one"))
    owner.told("ready")
    pids_of("one")
    owner.send(number)
    assert owner.ended() == 130
    assert living_of() == []


def test_ctrl_c_at_any_moment_of_the_start_leaves_nothing(start_owner, parent_role, living_of):
    chance = random.Random(2)
    for number in range(10):
        owner = start_owner(parent_role(f"early-{number}"), "server", parent_role(f"late-{number}"))
        owner.told("begins")
        time.sleep(chance.uniform(0, 0.4))  # the moment is what is tried, not waited for
        owner.send(signal.SIGINT)
        assert owner.ended() == 130
        assert living_of() == [], number


def test_a_second_ctrl_c_takes_the_grace_away(start_owner, scripts, tmp_path, living_of, wait_until):
    heard = tmp_path / "heard"
    owner = start_owner(f"stubborn={scripts / 'stubborn.py'},{heard}")
    owner.told("ready")
    assert wait_until(heard.exists)
    owner.send(signal.SIGINT)
    assert wait_until(lambda: heard.read_text())
    assert owner.process.poll() is None
    owner.send(signal.SIGINT)
    assert owner.ended() == 130  # the grace would be a minute
    assert living_of() == []


def test_the_ctrl_c_of_the_terminal_reaches_only_the_owner(start_owner, scripts, tmp_path, wait_until):
    heard = tmp_path / "heard"
    owner = start_owner(f"stubborn={scripts / 'stubborn.py'},{heard}")
    owner.told("ready")
    assert wait_until(heard.exists)
    os.killpg(owner.process.pid, signal.SIGINT)
    assert wait_until(lambda: heard.read_text())
    os.killpg(owner.process.pid, signal.SIGINT)
    assert owner.ended() == 130
    assert heard.read_text() == "SIGTERM\n"
