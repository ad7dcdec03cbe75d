"""Whatever stands on a queue, workers go on, and what is no message of ours is kept for people."""

import base64
import json
import pickle
from collections.abc import Callable
from typing import Any

import kombu
import pytest

pytestmark = pytest.mark.processes

QUEUE = "segments"
PREFIX = "jarvis:broker:"
GOOD = [["held", "w", "run"], {}, {}]
HEADERS = {"task": "workers.run_segment", "id": "1", "lang": "py"}


def envelope(body: bytes, content_type: str = "application/json", encoding: str = "utf-8", **headers: Any) -> dict[str, Any]:
    return {
        "body": base64.b64encode(body).decode(),
        "content-type": content_type,
        "content-encoding": encoding,
        "headers": {**HEADERS, **headers},
        "properties": {
            "delivery_tag": "t",
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "body_encoding": "base64",
        },
    }


def task(body: Any, **headers: Any) -> bytes:
    return json.dumps(envelope(json.dumps(body).encode(), **headers)).encode()


def without(part: str) -> bytes:
    whole = envelope(json.dumps(GOOD).encode())
    del whole[part]
    return json.dumps(whole).encode()


RAW: dict[str, Callable[[], bytes]] = {
    "not JSON": lambda: b"{not json",
    "not text": lambda: b"\xff\xfe",
    "not an object": lambda: b"[1, 2]",
    "without properties": lambda: without("properties"),
    "without headers": lambda: without("headers"),
    "a body that is not encoded": lambda: json.dumps({**envelope(b""), "body": "%%%"}).encode(),
    "a body that is not JSON": lambda: json.dumps(envelope(b"{oops")).encode(),
    "a body of another shape": lambda: task({"args": []}),
    "arguments that are none": lambda: task(["a", "b", "c"]),
    "pickle": lambda: json.dumps(envelope(pickle.dumps(GOOD), "application/x-python-serialize", "binary")).encode(),
    "an unknown task": lambda: task(GOOD, task="os.system"),
    "without an id": lambda: task(GOOD, id=None),
    "an expiry that is none": lambda: task(GOOD, expires="soon"),
}


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_malformed_messages_are_set_aside_and_the_worker_goes_on(
    make_work: Any, make_server: Any, until: Any, pool: str
) -> None:
    broker = make_server()
    work = make_work(broker.url)
    for raw in RAW.values():
        broker.client().lpush(PREFIX + QUEUE, raw())
    broker.client().lpush(PREFIX + QUEUE, task([["too", "few"], {}, {}]))  # well formed: the task itself refuses it

    worker = work.worker(pool)

    work.done("after")
    aside = broker.client()
    until(lambda: aside.llen(f"{PREFIX}{QUEUE}.malformed") == len(RAW), worker.output)
    assert worker.popen.poll() is None
    worker.signal(15)
    assert worker.popen.wait(10) == 0
    assert aside.llen(PREFIX + QUEUE) == 0, "nothing comes back when the worker ends"


def test_malformed_messages_of_rabbitmq_are_set_aside(make_work: Any, rabbitmq_url: str, until: Any) -> None:
    work = make_work(rabbitmq_url)
    worker = work.worker("threads")
    bodies = [b"{oops", json.dumps({"args": []}).encode(), pickle.dumps(GOOD)]
    with kombu.Connection(rabbitmq_url) as connection:
        producer = kombu.Producer(connection.default_channel)
        for body in bodies:
            producer.publish(
                body, routing_key=QUEUE, content_type="application/json", content_encoding="utf-8", headers=HEADERS
            )
        producer.publish(b"plain", routing_key=QUEUE, content_type="text/plain", content_encoding="utf-8")

        work.done("after")

        def kept() -> int:
            return connection.default_channel.queue_declare(f"{QUEUE}.malformed", passive=True).message_count

        until(lambda: kept() == 4, worker.output)
    assert worker.popen.poll() is None
