"""Cases from the field, as `jarvis doctor` and start-up see them: servers that evict, and leases longer than time-outs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis

from bus.testing import eventually
from console.health.examining import examine
from console.health.findings import Finding, State
from console.main import run
from workers import Settings
from workers.broker.celeryconfig import celery_settings

pytestmark = pytest.mark.server

EVICTING = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")
DROPS = "a full server silently drops runs and alerts: set noeviction"


@pytest.fixture
def place(server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder from which `jarvis` reaches the server of the test."""
    monkeypatch.setenv("JARVIS_REDIS_URL", server_url)
    monkeypatch.setenv("JARVIS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def doctor(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[int, dict[str, dict[str, Any]]]]:
    """Return `jarvis doctor`: its exit code, and what it found by check; of several by one name the worst."""

    def examined() -> tuple[int, dict[str, dict[str, Any]]]:
        capsys.readouterr()
        code = run(["doctor", "--json"])
        order = ["ok", "note", "wrong"]
        found = sorted(json.loads(capsys.readouterr().out)["findings"], key=lambda finding: order.index(finding["state"]))
        return code, {finding["check"]: finding for finding in found}

    return examined


@pytest.fixture
def small(server_url: str) -> Iterator[redis.Redis]:
    """Yield a client of the server, which has 3 MB until the end of the test."""
    client = redis.Redis.from_url(server_url)
    client.config_resetstat()
    client.config_set("maxmemory", "3mb")
    yield client
    client.config_set("maxmemory", 0)
    client.config_set("maxmemory-policy", "noeviction")
    client.config_resetstat()
    client.close()


def test_e7_doctor_calls_every_evicting_policy_wrong(doctor: Any, small: redis.Redis) -> None:
    for policy in EVICTING:
        small.config_set("maxmemory-policy", policy)
        code, found = doctor()
        assert code == 1
        assert found["memory"] == {"check": "memory", "state": "wrong", "fact": policy, "meaning": DROPS}
    small.config_set("maxmemory-policy", "noeviction")
    assert doctor()[1]["memory"]["state"] == "ok"


def test_e7_doctor_says_that_keys_were_evicted_also_when_the_policy_was_mended(doctor: Any, small: redis.Redis) -> None:
    small.config_set("maxmemory-policy", "allkeys-lru")
    numbers = count()

    def has_evicted() -> bool:
        small.set(f"cache:{next(numbers)}", b"." * 65536)
        return small.info("stats")["evicted_keys"] > 0

    eventually(has_evicted)
    small.config_set("maxmemory-policy", "noeviction")
    code, found = doctor()
    assert (code, found["evicted"]["state"]) == (1, "wrong")
    assert "ids by which signals are told apart, may be among them" in found["evicted"]["meaning"]


def test_e7_doctor_says_that_a_server_is_full(doctor: Any, small: redis.Redis) -> None:
    small.config_set("maxmemory", "100kb")  # less than a server takes that holds nothing
    code, found = doctor()
    assert (code, found["memory used"]["state"]) == (1, "wrong")
    assert "when it is full no run goes on, and none is lost: raise maxmemory" in found["memory used"]["meaning"]


def test_e7_start_up_says_loudly_that_its_server_evicts(place: Path, small: redis.Redis) -> None:
    small.config_set("maxmemory", "100mb")
    small.config_set("maxmemory-policy", "allkeys-lru")
    words = place / "words"
    with words.open("wb") as output:
        argv = [sys.executable, "-m", "console.main", "up"]
        started = subprocess.Popen(argv, stderr=output, stdout=output, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while f"server: memory: allkeys-lru; {DROPS}" not in words.read_text():
            assert time.monotonic() < deadline, words.read_text()
            time.sleep(0.02)
    finally:
        started.send_signal(signal.SIGINT)
        try:
            started.wait(30)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
    assert "stopped; what was under way goes on at the next start" in words.read_text()


def test_e1_a_lease_longer_than_the_visibility_timeout_is_sound_since_messages_are_acknowledged_early(server_url: str) -> None:
    settings = Settings.load(redis_url=server_url, lease_timeout=2 * 3600)
    celery = celery_settings(settings)
    assert settings.lease_timeout > celery["broker_transport_options"]["visibility_timeout"]
    assert (celery["task_acks_late"], celery["task_reject_on_worker_lost"]) == (False, False)
    found: list[Finding] = list(examine(settings))
    assert [finding for finding in found if finding.check in {"broker", "settings"} and finding.state is not State.OK] == []
