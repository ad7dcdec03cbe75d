"""How each fact about a mesh is judged, and what it means for the runs: pure rules."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast
from zoneinfo import ZoneInfo

from console.wording import age, moment

__all__ = ["Finding", "ServerFacts", "State", "judge_server", "judge_sweeps", "judge_workers"]

OLDEST_MAJOR = 7
CLOCK_NOTE_SECONDS = 1.0
CLOCK_LIMIT_SECONDS = 10.0
"""A difference from which on leases are judged wrongly by a good part of their length."""
FULL = 0.9
"""The part of its memory from which on a server counts as full."""
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
    """What one server says. None stands for what its user may not see.

    ``info`` is its INFO, ``fsync`` its appendfsync, ``ahead`` how far its clock is ahead of ours (s), ``missing`` what its user
    may not do of all that runs need, and ``scripts`` why it runs no scripts.
    """

    address: str
    info: Mapping[str, Any] | None = None
    fsync: str | None = None
    ahead: float | None = None
    missing: Sequence[str] | None = None
    scripts: str | None = None


def judge_server(facts: ServerFacts) -> Iterator[Finding]:
    """All that the server's own words mean."""
    if facts.info is None:
        yield Finding("server", State.OK, f"answers at {facts.address}")
        yield _unseen("settings", "version, memory, append-only file and replicas", "+info")
    else:
        yield from _settings(facts.info, facts)
    yield _clocks(facts.ahead)
    yield _scripts(facts)
    yield _rights(facts.missing)


def _settings(info: Mapping[str, Any], facts: ServerFacts) -> Iterator[Finding]:
    yield _version(info, facts.address)
    yield _append_only(info)
    if info.get("aof_enabled"):
        yield _fsync(facts.fsync)
    yield _snapshots(info)
    yield _eviction(info)
    yield from _evicted(info)
    yield _fullness(info)
    yield _replicas(info)


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
    return Finding("server", State.OK, fact)


def _scripts(facts: ServerFacts) -> Finding:
    """Whether the server runs Lua: every write of a run is a script."""
    if facts.scripts is not None:
        return Finding("scripts", State.WRONG, facts.scripts, "no run can start or go on: allow EVAL and EVALSHA")
    return Finding("scripts", State.OK, "run", "each write of a run is one of them: all of it happens, or nothing")


def _rights(missing: Sequence[str] | None) -> Finding:
    """What the user of the server may not do."""
    if missing is None:
        return _unseen("rights", "the rights of this user", "+eval")
    if missing:
        meaning = "runs fail where these are needed: grant them with ACL SETUSER (docs/reference/redis.md)"
        return Finding("rights", State.WRONG, f"missing: {', '.join(missing)}", meaning)
    return Finding("rights", State.OK, "all that runs need")


def _unseen(check: str, what: str, right: str) -> Finding:
    return Finding(check, State.NOTE, f"could not see {what}", f"this user may not look: grant {right} to have it judged")


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


def _snapshots(info: Mapping[str, Any]) -> Finding:
    """Whether the last snapshot was written: where snapshots are on, a server that cannot save takes no writes."""
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        meaning = "it may refuse every write, so runs wait: free space or repair the disk"
        return Finding("snapshots", State.WRONG, "the last one failed", meaning)
    return Finding("snapshots", State.OK, "none has failed")


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
            return _unseen("fsync", "when writes reach the disk", "+config|get")


def _eviction(info: Mapping[str, Any]) -> Finding:
    """What the server does when its memory is full."""
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy == "noeviction":
        return Finding("memory", State.OK, policy, "a full server refuses writes, and forgets nothing")
    if not info.get("maxmemory"):
        return Finding("memory", State.NOTE, f"{policy}, without a limit", "harmless until maxmemory is set")
    return Finding("memory", State.WRONG, policy, "a full server silently drops runs and alerts: set noeviction")


def _evicted(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the server has thrown something away since it was started."""
    evicted = int(info.get("evicted_keys", 0))
    if evicted:
        meaning = "runs, or ids by which signals are told apart, may be among them: set noeviction and give it more memory"
        yield Finding("evicted", State.WRONG, f"{evicted} keys since the server was started", meaning)


def _fullness(info: Mapping[str, Any]) -> Finding:
    """How much of its memory the server has used."""
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not limit:
        return Finding("memory used", State.OK, f"{used / 2**20:.0f} MiB, without a limit")
    fact = f"{used / limit:.0%} of {limit / 2**20:.0f} MiB"
    if used > FULL * limit:
        return Finding("memory used", State.WRONG, fact, "when it is full no run goes on, and none is lost: raise maxmemory")
    return Finding("memory used", State.OK, fact)


def _replicas(info: Mapping[str, Any]) -> Finding:
    """Who would take over, and how far behind they are."""
    count = int(info.get("connected_slaves", 0))
    if not count:
        return Finding("replicas", State.OK, "none", "runs wait while this server is down")
    in_step = sum(_replica_state(info, place) == "online" for place in range(count))
    if in_step < count:
        meaning = "a failover to one of them loses runs: wait until they are in step"
        return Finding("replicas", State.WRONG, f"{count - in_step} of {count} not in step", meaning)
    return Finding("replicas", State.NOTE, f"{count} in step", "a failover loses what they have not yet: those steps run again")


def _replica_state(info: Mapping[str, Any], place: int) -> str:
    """INFO says of a replica: ``slave0:ip=…,port=…,state=online,offset=…,lag=…``; the client library makes a dict of it."""
    return str(cast("dict[str, Any]", info.get(f"slave{place}", {})).get("state", "unknown"))


def _clocks(ahead: float | None) -> Finding:
    """By how many seconds the server's clock is ahead of ours."""
    if ahead is None:
        return _unseen("clocks", "the server's clock", "+time")
    fact = f"the server's is {abs(ahead):.1f} s {'ahead of' if ahead >= 0 else 'behind'} ours"
    if abs(ahead) > CLOCK_LIMIT_SECONDS:
        return Finding("clocks", State.WRONG, fact, "runs may be taken over too early or too late: set both by NTP")
    state = State.NOTE if abs(ahead) > CLOCK_NOTE_SECONDS else State.OK
    return Finding("clocks", state, fact)
