"""Loaded by the workers of these tests: a workflow of two steps whose second one waits while the test says so.

key               type    meaning
test:began        list    "<workflow id> <pid>", pushed each time the second node begins
test:hold         string  while it exists the second node does not end
test:deafen       string  its worker asks its broker for nothing any more, until it reconnects; taken by the worker that does so
test:hang         string  its worker's loop stands still for ever; taken by the worker that does so
"""

import os
import threading
import time
from typing import Any

import redis
from celery import signals

from workers import register
from workflow import Event, Node, StopEvent, Workflow, WorkflowResources, WorkflowState

HOLD_LIMIT = 60


class Asked(Event):
    """Begin."""


class Prepared(Event):
    """The first step is done."""


def server() -> redis.Redis:
    return redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"])


class Prepare(Node):
    step_name = "prepare"

    def __call__(self, event: Asked, state: WorkflowState, resources: WorkflowResources) -> Prepared:
        return Prepared()


class Wait(Node):
    step_name = "wait"

    def __call__(self, event: Prepared, state: WorkflowState, resources: WorkflowResources) -> StopEvent:
        with server() as client:
            client.rpush("test:began", f"{os.getpid()}")
            deadline = time.monotonic() + HOLD_LIMIT
            while client.exists("test:hold") and time.monotonic() < deadline:
                time.sleep(0.02)
        return StopEvent("done")


class HeldWorkflow(Workflow[WorkflowState]):
    name = "held"
    lease_timeout = 30
    retain_for = 600

    def start_event(self) -> Asked:
        return Asked()

    def nodes(self) -> tuple[Node, ...]:
        return Prepare(), Wait()


register("held", HeldWorkflow)


def sabotage(sender: Any, **_: Any) -> None:
    def watch() -> None:
        client = server()
        while True:
            if client.delete("test:deafen"):
                sender.hub.call_soon(lambda: setattr(sender.task_consumer.channel.qos, "can_consume", lambda: False))
            if client.delete("test:hang"):
                sender.hub.call_soon(lambda: time.sleep(3600))
            time.sleep(0.05)

    if os.environ.get("TEST_SABOTAGE"):
        threading.Thread(target=watch, daemon=True).start()


signals.worker_ready.connect(sabotage, weak=False)
