"""Loaded by the workers of these tests: the briefing with agents that follow what the test has put into the server.

key                      type    meaning
test:asked               list    a role, pushed each time its agent is asked
test:answer:<role>       string  what the agent says; without it, "<role> of <date>"
test:hold:<role>         string  while it exists the agent does not answer
test:fail:<role>         string  the number of times that the agent still fails
test:hold:delivery       string  while it exists the finished briefing is not published
test:delivering          list    pushed each time a finished briefing is about to be published
"""

import os
import time
from collections.abc import Mapping
from typing import Any

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from bus import RedisSignalBus, Signal
from mesh.briefing import DailyBriefingWorkflow
from mesh.heartbeats import RedisHeartbeatStore
from mesh.knowledge import RedisKnowledgeStore
from mesh.resources import JarvisResources
from mesh.roles.assignment import Assignment
from workers import register

HOLD_LIMIT = 60


def held(client: redis.Redis, what: str) -> None:
    """Wait while the test says so."""
    deadline = time.monotonic() + HOLD_LIMIT
    while client.exists(f"test:hold:{what}") and time.monotonic() < deadline:
        time.sleep(0.02)


class FollowingAgent:
    def __init__(self, client: redis.Redis, role: str) -> None:
        self._client = client
        self._role = role

    def perform(self, assignment: Assignment) -> str:
        self._client.rpush("test:asked", self._role)
        held(self._client, self._role)
        if int(self._client.get(f"test:fail:{self._role}") or 0) > 0:
            self._client.decr(f"test:fail:{self._role}")
            raise RuntimeError(f"{self._role} is ill")
        answer = self._client.get(f"test:answer:{self._role}")
        return answer.decode() if answer else f"{self._role} of {assignment.date}"


class HeldBus(RedisSignalBus):
    def publish(self, id: str, topic: str, payload: Mapping[str, Any], *, strict: bool = False) -> Signal:  # noqa: A002
        if topic == "briefing.ready":
            with redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"]) as client:
                client.rpush("test:delivering", id)
                held(client, "delivery")
        return super().publish(id, topic, payload, strict=strict)


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
        HeldBus(client),
        RedisKnowledgeStore(client),
        RedisHeartbeatStore(client),
        FollowingAgents(patient),
        closers=[client.close, patient.close],
    )


register("daily-briefing", lambda workflow_id: DailyBriefingWorkflow.from_id(workflow_id, resources=resources, lease_timeout=3))
