"""How each fact about a mesh is judged, and what it means for the runs: pure rules."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

from console.wording import age, moment

__all__ = ["Finding", "ServerFacts", "State", "judge_server", "judge_sweeps", "judge_workers"]

OLDEST_MAJOR = 7
CLOCK_NOTE_SECONDS = 1.0
CLOCK_LIMIT_SECONDS = 10.0
"""A difference from which on leases are judged wrongly by a good part of their length."""
SWEEPS_MISSED = 3
"""Sweeps that may fail to come before that means that nobody sweeps."""


class State(Enum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, and what it means."""

    check: str
    state: State
    fact: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says: its INFO, its appendfsync (None: not readable), and how far its clock is ahead of ours (s)."""

    address: str
    info: Mapping[str, Any]
    fsync: str | None
    ahead: float


def judge_server(facts: ServerFacts) -> Iterator[Finding]:
    """All that the server's own words mean."""
    yield _version(facts.info, facts.address)
    yield _append_only(facts.info)
    if facts.info.get("aof_enabled"):
        yield _fsync(facts.fsync)
    yield _eviction(facts.info)
    yield _clocks(facts.ahead)


def judge_workers(workers: int) -> Finding:
    """How many workers were heard lately."""
    if workers:
        return Finding("workers", State.OK, f"{workers} heard within the last minute")
    fact = "none heard within the last minute"
    return Finding("workers", State.WRONG, fact, "runs wait, and none is lost: start `jarvis up`")


def judge_sweeps(last: dt.datetime | None, every: float, now: dt.datetime, zone: ZoneInfo) -> Finding:
    """When the watchdog swept last; it should do so each ``every`` seconds."""
    meaning = "an agent that stops goes unnoticed: start `jarvis up`, or run `jarvis watchdog sweep` from cron"
    if last is None:
        return Finding("watchdog", State.WRONG, "has never swept", meaning)
    silent = (now - last).total_seconds()
    fact = f"swept last at {moment(last, zone)}, {age(silent)} ago"
    return (
        Finding("watchdog", State.WRONG, fact, meaning)
        if silent > SWEEPS_MISSED * every
        else Finding("watchdog", State.OK, fact)
    )


def _version(info: Mapping[str, Any], address: str) -> Finding:
    valkey = info.get("valkey_version")
    version = str(valkey or info.get("redis_version", "unknown"))
    fact = f"{'Valkey' if valkey else 'Redis'} {version} at {address}"
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_MAJOR:
        return Finding("server", State.WRONG, fact, f"too old: its scripts need version {OLDEST_MAJOR} or later")
    if info.get("role") == "slave":
        return Finding("server", State.WRONG, fact, "a read-only replica: point the URL at the primary")
    if info.get("connected_slaves"):
        return Finding("server", State.NOTE, fact, "a failover loses what the replica has not yet: those steps run again")
    return Finding("server", State.OK, fact)


def _append_only(info: Mapping[str, Any]) -> Finding:
    """Whether the server writes down what it is given."""
    if not info.get("aof_enabled"):
        return Finding(
            "append-only file",
            State.WRONG,
            "off",
            "a restart of the server loses every run since its last snapshot, or all of them: set appendonly yes",
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        return Finding(
            "append-only file", State.WRONG, "on, but the last write failed", "nothing new is kept: free space on its disk"
        )
    return Finding("append-only file", State.OK, "on", "runs outlive a restart of the server")


def _fsync(policy: str | None) -> Finding:
    """When the server's file reaches the disk: appendfsync, None where it may not be read."""
    match policy:
        case "always":
            return Finding("fsync", State.OK, policy, "a finished step is on the disk before its worker goes on")
        case "everysec":
            return Finding("fsync", State.OK, policy, "a power cut can lose the last second: those steps run again")
        case "no":
            return Finding("fsync", State.NOTE, policy, "a power cut can lose half a minute: those steps run again")
        case _:
            return Finding("fsync", State.NOTE, "unknown", "this user of the server may not read its configuration")


def _eviction(info: Mapping[str, Any]) -> Finding:
    """What the server does when its memory is full."""
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy == "noeviction":
        return Finding("memory", State.OK, policy, "a full server refuses writes, and forgets nothing")
    if not info.get("maxmemory"):
        return Finding("memory", State.NOTE, f"{policy}, without a limit", "harmless until maxmemory is set")
    return Finding("memory", State.WRONG, policy, "a full server silently drops runs and alerts: set noeviction")


def _clocks(ahead: float) -> Finding:
    """By how many seconds the server's clock is ahead of ours."""
    fact = f"the server's is {abs(ahead):.1f} s {'ahead of' if ahead >= 0 else 'behind'} ours"
    if abs(ahead) > CLOCK_LIMIT_SECONDS:
        return Finding("clocks", State.WRONG, fact, "runs may be taken over too early or too late: set both by NTP")
    state = State.NOTE if abs(ahead) > CLOCK_NOTE_SECONDS else State.OK
    return Finding("clocks", state, fact)
