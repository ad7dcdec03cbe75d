"""An owner is killed at any moment: what it started ends, by its guardian or by the next owner, and the data stays."""

import os
import random
import signal
import time

import psutil
import pytest
import redis

from workers.embedded import start_server
from workers.processes import Supervisor

pytestmark = [pytest.mark.processes, pytest.mark.server]


def test_a_killed_owner_takes_all_its_processes_along(start_owner, parent_role, living_of, wait_until):
    owner = start_owner("server", parent_role("one"), parent_role("two"))
    owner.told("ready")
    owner.kill()
    assert wait_until(lambda: not living_of()), living_of()


def test_the_next_owner_ends_what_is_left_when_the_guardian_was_killed_too(
    start_owner, parent_role, pids_of, living_of, folder
):
    owner = start_owner("server", parent_role("one"))
    owner.told("ready")
    family = pids_of("one")
    owner.kill(guardian=True)
    assert all(psutil.pid_exists(pid) for pid in family)

    said: list[str] = []
    with Supervisor(folder, say=said.append):
        assert [line for line in living_of() if "guardian.py" not in line] == []
    assert living_of() == []
    assert len(said) == 1
    assert "server" in said[0]
    assert f"one (pid {family[0]})" in said[0]


def test_children_whose_parent_was_killed_first_are_found_as_well(start_owner, parent_role, pids_of, living_of, folder):
    owner = start_owner(parent_role("one"))
    owner.told("ready")
    parent, *children = pids_of("one")
    os.kill(owner.process.pid, signal.SIGSTOP)  # so that it does not tend to the death of the parent
    os.kill(parent, signal.SIGKILL)
    owner.kill(guardian=True)
    assert all(psutil.pid_exists(child) for child in children)

    with Supervisor(folder):
        pass
    assert living_of() == []


def test_the_next_owner_goes_on_with_the_data_of_a_killed_one(start_owner, folder):
    owner = start_owner("server")
    with redis.Redis.from_url(owner.told("server")) as client:
        client.set("told", "once")
    owner.kill(guardian=True)

    with Supervisor(folder) as supervisor, redis.Redis.from_url(start_server(supervisor).store_url) as client:
        assert client.get("told") == b"once"


def test_the_next_owner_waits_for_the_guardian_of_the_last_one(start_owner, parent_role, pids_of, living_of, folder):
    owner = start_owner("server", parent_role("one"))
    owner.told("ready")
    pids_of("one")
    owner.kill()
    with Supervisor(folder):
        assert [line for line in living_of() if "guardian.py" not in line] == []


def test_an_owner_killed_at_any_moment_of_its_start_leaves_nothing_to_the_next(
    start_owner, parent_role, living_of, wait_until, folder
):
    chance = random.Random(1)
    for number in range(16):
        owner = start_owner(parent_role(f"early-{number}"), "server", parent_role(f"late-{number}"))
        owner.told("begins")
        time.sleep(chance.uniform(0, 0.4))  # the moment is what is tried, not waited for
        owner.kill(guardian=chance.random() < 0.5)
        with Supervisor(folder):
            pass
        # What had not yet become its program sees its owner dead and ends by itself.
        assert wait_until(lambda: not living_of(), 5), (number, living_of())
        assert wait_until(lambda: list((folder / "processes").glob("*.json")) == [], 5)
