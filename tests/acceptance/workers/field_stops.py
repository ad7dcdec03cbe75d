"""Loaded by the workers of `test_field_stops.py`: runs whose worker is killed, is stopped or lingers, and a sweeper that stops.

key                  type    meaning
field:began          list    "<workflow id> <pid>", pushed each time the node of a run begins
field:hold:<id>      string  while it exists the node of this run does not end
field:linger         string  while it exists a process whose node has ended does not end
field:freeze         string  a workflow id: the sweeper that is to decide on its run takes it, and stops before it writes
field:decided        list    "<pid> <whether the write held>", pushed by a sweeper when it was stopped and goes on
"""

import os
import signal
import threading
import time
from typing import Any

import redis

from persistence import RedisPersistence
from workers import register
from workflow import Event, Node, StopEvent, Workflow, WorkflowState

HOLD_LIMIT = 60
LEASE = int(os.environ.get("FIELD_LEASE", "2"))


def server() -> redis.Redis:
    return redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"])


def wait_while(client: redis.Redis, key: str) -> None:
    deadline = time.monotonic() + HOLD_LIMIT
    while client.exists(key) and time.monotonic() < deadline:
        time.sleep(0.02)


# --- runs that are held -----------------------------------------------------------------------------------------------------


class Held(Event):
    workflow_id: str


class Hold(Node):
    step_name = "hold"

    def __call__(self, event: Held, state: WorkflowState) -> StopEvent:
        with server() as client:
            client.rpush("field:began", f"{event.workflow_id} {os.getpid()}")
            wait_while(client, f"field:hold:{event.workflow_id}")
            if client.exists("field:linger"):
                threading.Thread(target=linger, daemon=False).start()
        return StopEvent(os.getpid())


def linger() -> None:
    with server() as client:
        wait_while(client, "field:linger")


class Running(Workflow[WorkflowState]):
    lease_timeout = LEASE
    retain_for = 600

    def nodes(self) -> tuple[Node, ...]:
        return (Hold(),)

    def start_event(self) -> Held:
        return Held(workflow_id=self.workflow_id)


register("field-held", Running)


# --- a sweeper that stops in the middle of a decision -----------------------------------------------------------------------


def freeze_in_decisions() -> None:
    """Between what it has read and what it writes the process stops itself, once, when it is told to."""
    write = RedisPersistence.write_if_unchanged

    def stopped(self: RedisPersistence, partition: str, *args: Any, **options: Any) -> bool:
        with server() as client:
            told = client.get("field:freeze") == partition.encode() and client.delete("field:freeze")
            if told:
                os.kill(os.getpid(), signal.SIGSTOP)
            held = write(self, partition, *args, **options)
            if told:
                client.rpush("field:decided", f"{os.getpid()} {held}")
        return held

    RedisPersistence.write_if_unchanged = stopped


if os.environ.get("FIELD_STOPS"):
    freeze_in_decisions()
