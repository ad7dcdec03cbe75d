"""Loaded by the workers of these tests: the briefing with agents that follow what the test has put into the server.

key                      type    meaning
test:asked               list    a role, pushed each time its agent is asked
test:answer:<role>       string  what the agent says; without it, "<role> of <date>"
test:hold:<role>         string  while it exists the agent does not answer
test:fail:<role>         string  the number of times that the agent still fails
"""

import os
import time

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from bus import RedisSignalBus
from mesh.briefing import DailyBriefingWorkflow
from mesh.heartbeats import RedisHeartbeatStore
from mesh.knowledge import RedisKnowledgeStore
from mesh.resources import JarvisResources
from mesh.roles.assignment import Assignment
from workers import register

HOLD_LIMIT = 60


class FollowingAgent:
    def __init__(self, client: redis.Redis, role: str) -> None:
        self._client = client
        self._role = role

    def perform(self, assignment: Assignment) -> str:
        self._client.rpush("test:asked", self._role)
        deadline = time.monotonic() + HOLD_LIMIT
        while self._client.exists(f"test:hold:{self._role}") and time.monotonic() < deadline:
            time.sleep(0.02)
        if int(self._client.get(f"test:fail:{self._role}") or 0) > 0:
            self._client.decr(f"test:fail:{self._role}")
            raise RuntimeError(f"{self._role} is ill")
        answer = self._client.get(f"test:answer:{self._role}")
        return answer.decode() if answer else f"{self._role} of {assignment.date}"


class FollowingAgents:
    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def make(self, role: str, thread_id: str) -> FollowingAgent:
        return FollowingAgent(self._client, role)


def resources() -> JarvisResources:
    url = os.environ["JARVIS_REDIS_URL"]
    client = redis.Redis.from_url(url)
    # The agents outlast a server that is down for a while, as agents that need no server would.
    patient = redis.Redis.from_url(url, retry=Retry(ConstantBackoff(0.1), 300))
    return JarvisResources(
        RedisSignalBus(client),
        RedisKnowledgeStore(client),
        RedisHeartbeatStore(client),
        FollowingAgents(patient),
        closers=[client.close, patient.close],
    )


register("daily-briefing", lambda workflow_id: DailyBriefingWorkflow.from_id(workflow_id, resources=resources, lease_timeout=3))
