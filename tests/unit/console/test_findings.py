"""How `jarvis doctor` judges."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from console.commands.doctor import lines_of
from console.health.findings import Finding, ServerFacts, State, judge_server, judge_sweeps, judge_workers

NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)
SOUND = {
    "redis_version": "7.0.15",
    "role": "master",
    "connected_slaves": 0,
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
}


def judged(*, fsync="everysec", ahead=0.0, missing=(), scripts=None, **info):
    findings = list(judge_server(ServerFacts("host:6379", {**SOUND, **info}, fsync, ahead, missing, scripts)))
    return {finding.check: finding for finding in findings}


def test_a_sound_server_has_nothing_wrong():
    found = judged()
    assert list(found) == [
        *("server", "append-only file", "fsync", "snapshots", "memory", "memory used", "replicas"),
        *("clocks", "scripts", "rights"),
    ]
    assert {finding.state for finding in found.values()} == {State.OK}
    assert found["server"].fact == "Redis 7.0.15 at host:6379"


def test_valkey_is_called_by_its_own_name_and_version():
    assert judged(valkey_version="9.1.2")["server"].fact == "Valkey 9.1.2 at host:6379"


@pytest.mark.parametrize(
    ("info", "check", "state"),
    [
        ({"redis_version": "6.2.14"}, "server", State.WRONG),
        ({"role": "slave"}, "server", State.WRONG),
        ({"connected_slaves": 1, "slave0": {"state": "online"}}, "replicas", State.NOTE),
        ({"connected_slaves": 1, "slave0": {"state": "wait_bgsave"}}, "replicas", State.WRONG),
        ({"rdb_last_bgsave_status": "err"}, "snapshots", State.WRONG),
        ({"maxmemory": 1000, "used_memory": 800}, "memory used", State.OK),
        ({"maxmemory": 1000, "used_memory": 901}, "memory used", State.WRONG),
        ({"missing": ["hget on jarvis:workflow:{0}:p:"]}, "rights", State.WRONG),
        ({"missing": None}, "rights", State.NOTE),
        ({"scripts": "refused (NOPERM)"}, "scripts", State.WRONG),
        ({"ahead": None}, "clocks", State.NOTE),
        ({"aof_enabled": 0}, "append-only file", State.WRONG),
        ({"aof_last_write_status": "err"}, "append-only file", State.WRONG),
        ({"maxmemory": 1000, "maxmemory_policy": "allkeys-lru"}, "memory", State.WRONG),
        ({"maxmemory_policy": "allkeys-lru"}, "memory", State.NOTE),
        ({"fsync": "always"}, "fsync", State.OK),
        ({"fsync": "no"}, "fsync", State.NOTE),
        ({"fsync": None}, "fsync", State.NOTE),
        ({"ahead": 0.9}, "clocks", State.OK),
        ({"ahead": -2.0}, "clocks", State.NOTE),
        ({"ahead": 11.0}, "clocks", State.WRONG),
    ],
)
def test_what_endangers_runs_is_said_and_what_it_means(info, check, state):
    finding = judged(**info)[check]
    assert finding.state is state
    assert finding.meaning or state is State.OK or check == "clocks"


def test_what_a_user_may_not_see_is_said_and_is_not_wrong():
    findings = list(judge_server(ServerFacts("host:6379", missing=())))
    assert {finding.state for finding in findings} == {State.OK, State.NOTE}
    assert [finding.check for finding in findings if finding.state is State.NOTE] == ["settings", "clocks"]
    assert all("grant +" in finding.meaning for finding in findings if finding.state is State.NOTE)


def test_without_an_append_only_file_nothing_is_said_of_its_fsync():
    assert "fsync" not in judged(aof_enabled=0)


def test_no_worker_is_wrong():
    assert judge_workers(0).state is State.WRONG
    assert judge_workers(2) == Finding("workers", State.OK, "2 heard within the last minute")


@pytest.mark.parametrize(("silent", "state"), [(0, State.OK), (180, State.OK), (181, State.WRONG)])
def test_a_watchdog_that_misses_three_sweeps_is_wrong(silent, state):
    last = NOW - dt.timedelta(seconds=silent)
    assert judge_sweeps(last, 60, NOW, ZoneInfo("UTC")).state is state


def test_a_watchdog_that_never_swept_is_wrong():
    assert judge_sweeps(None, 60, NOW, ZoneInfo("UTC")).fact == "has never swept"


def test_findings_are_aligned_lines_with_their_meaning():
    findings = [Finding("server", State.OK, "there"), Finding("fsync", State.NOTE, "no", "a power cut loses much")]
    assert lines_of(findings) == ["ok     server  there", "note   fsync   no; a power cut loses much"]


def test_where_no_server_runs_the_doctor_says_so_and_starts_none(jarvis, empty_folder):
    code, data, said = jarvis("doctor")

    assert (code, said) == (0, "")
    assert "private (" in data
    assert "not running" in data
    assert "next briefing: " in data
    assert not (empty_folder / ".jarvis").exists()


def test_an_unreachable_server_is_wrong_and_exit_code_1(jarvis, monkeypatch, tmp_path):
    monkeypatch.setenv("JARVIS_REDIS_URL", f"unix://{tmp_path}/none")
    code, data, _ = jarvis("doctor")

    assert code == 1
    wrong = [line.split()[1] for line in data.splitlines() if line.startswith("wrong")]
    assert wrong == ["server", "broker"]
