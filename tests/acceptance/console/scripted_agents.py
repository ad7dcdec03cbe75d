"""Loaded by the processes of these tests: the briefing with agents that follow the files of a folder.

file           meaning
asked          one role a line, written each time its agent is asked
hold-<role>    as long as it exists the agent does not answer
fail-<role>    the agent fails once, and removes it
"""

import os
import time
from pathlib import Path

import redis

from bus import RedisSignalBus
from mesh.briefing import DailyBriefingWorkflow
from mesh.heartbeats import RedisHeartbeatStore
from mesh.knowledge import RedisKnowledgeStore
from mesh.resources import JarvisResources
from mesh.roles.assignment import Assignment
from workers import register

FOLDER = Path(os.environ["JARVIS_TEST_AGENTS"])
HOLD_LIMIT = 60


class FollowingAgent:
    def __init__(self, role: str) -> None:
        self._role = role

    def perform(self, assignment: Assignment) -> str:
        with (FOLDER / "asked").open("a") as file:
            file.write(f"{self._role}\n")
        deadline = time.monotonic() + HOLD_LIMIT
        while (FOLDER / f"hold-{self._role}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        failing = FOLDER / f"fail-{self._role}"
        if failing.exists():
            failing.unlink()
            raise RuntimeError(f"{self._role} is ill")
        return f"# {self._role} of {assignment.date}\n"


class FollowingAgents:
    def make(self, role: str, thread_id: str) -> FollowingAgent:
        return FollowingAgent(role)


def resources() -> JarvisResources:
    client = redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"])
    stores = (RedisSignalBus(client), RedisKnowledgeStore(client), RedisHeartbeatStore(client))
    return JarvisResources(*stores, FollowingAgents(), closers=[client.close])


register("daily-briefing", lambda workflow_id: DailyBriefingWorkflow.from_id(workflow_id, resources=resources, lease_timeout=3))
