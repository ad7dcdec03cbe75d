"""Loaded by the workers of `test_field_workers.py`: runs that send a mail, wait for a moment or kill their process.

key                 type    meaning
field:began         list    "<workflow id> <pid>", pushed each time the node of a run begins
field:taken         list    "<workflow id>", pushed for each message that a worker has taken
field:poison:<id>   string  while it exists the node of this run kills its process

While there is a file `hold.<id>` in JARVIS_HOME the node of that run does not go on to its mail, with or without a server.
While there is a file `deaf` there, workers ask their broker for nothing, whatever connection they have.

FIELD_VISIBILITY is the visibility time-out of the broker (seconds), looked after ten times a second; with FIELD_LATE messages
are acknowledged only when their task has ended, which brings them back to the queue meanwhile.
"""

import datetime as dt
import os
import smtplib
import time
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import redis
from kombu.transport import virtual

from workers import register, segments
from workers.broker import celeryconfig, connection
from workflow import Event, Node, StopEvent, Workflow, WorkflowState, sleep_until

HOLD_LIMIT = 60
LEASE = int(os.environ.get("FIELD_LEASE", "4"))
"""Seconds: longer than the visibility time-out of these tests."""


def server() -> redis.Redis:
    return redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"])


def mail(subject: str) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "jarvis@example.com", "mara@example.com", subject
    with smtplib.SMTP("127.0.0.1", int(os.environ["FIELD_MAIL"])) as smtp:
        smtp.send_message(message)


class Named(Event):
    workflow_id: str


class Dated(Named):
    when: dt.datetime


class Work(Node):
    step_name = "work"

    def __call__(self, event: Named, state: WorkflowState) -> StopEvent:
        with server() as client:
            client.rpush("field:began", f"{event.workflow_id} {os.getpid()}")
            if client.exists(f"field:poison:{event.workflow_id}"):
                os._exit(9)
        held, deadline = Path(os.environ["JARVIS_HOME"], f"hold.{event.workflow_id}"), time.monotonic() + HOLD_LIMIT
        while held.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        if "FIELD_MAIL" in os.environ:
            mail(event.workflow_id)
        return StopEvent(os.getpid())


class Sleep(Node):
    step_name = "sleep"

    def __call__(self, event: Dated, state: WorkflowState) -> StopEvent:
        sleep_until(event.when)
        mail(event.workflow_id)
        return StopEvent(os.getpid())


class Mailing(Workflow[WorkflowState]):
    lease_timeout = LEASE
    retain_for = 600

    def nodes(self) -> tuple[Node, ...]:
        return (Work(), Sleep())

    def start_event(self) -> Named:
        return Named(workflow_id=self.workflow_id)


register("mailing", Mailing)


# --- the broker -------------------------------------------------------------------------------------------------------------


def shorten_visibility(seconds: float) -> None:
    options = connection._REDIS_TRANSPORT  # pyright: ignore[reportPrivateUsage]
    options |= {"visibility_timeout": seconds, "unacked_restore_interval": 0.1}


def acknowledge_late() -> None:
    made = celeryconfig.celery_settings
    celeryconfig.celery_settings = lambda settings: {**made(settings), "task_acks_late": True}


def deafen() -> None:
    hears, deaf = virtual.QoS.can_consume, Path(os.environ["JARVIS_HOME"], "deaf")
    virtual.QoS.can_consume = lambda self: not deaf.exists() and hears(self)


def count_messages() -> None:
    take = segments.run_segment

    def counted(runtime: Any, name: str, workflow_id: str, run_id: str) -> None:
        with server() as client:
            client.rpush("field:taken", workflow_id)
        take(runtime, name, workflow_id, run_id)

    segments.run_segment = counted


if "FIELD_VISIBILITY" in os.environ:
    shorten_visibility(float(os.environ["FIELD_VISIBILITY"]))
if "FIELD_LATE" in os.environ:
    acknowledge_late()
deafen()
count_messages()
