"""What is wrong with a message: pure checks, so that nothing which anybody has put on a queue can end a worker.

A message is an envelope (on Redis: JSON that names properties, headers and body), and within it the body of a task, which is
JSON too: arguments, keyword arguments, and a map of Celery's own.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Collection, Mapping
from typing import Any, cast

__all__ = ["KEPT", "envelope_fault", "set_aside_queue", "task_fault"]

KEPT = 1000
"""Malformed messages that are kept for people, for each queue."""

_JSON = "application/json"
_UTF8 = ("utf-8", "utf8")


def set_aside_queue(queue: str) -> str:
    """Where the malformed messages of a queue are put."""
    return f"{queue}.malformed"


def envelope_fault(item: bytes) -> str | None:
    """Why the transport could not make a message of what was on the queue, or None."""
    try:
        envelope = json.loads(item.decode())
    except ValueError:
        return "it is not JSON"
    if not isinstance(envelope, dict):
        return "it is no envelope"
    parts = cast(dict[str, Any], envelope)
    properties = parts.get("properties")
    if not isinstance(properties, dict) or not isinstance(parts.get("headers"), dict):
        return "its envelope has no properties or no headers"
    return _properties_fault(cast(dict[str, Any], properties), parts.get("body"))


def _properties_fault(properties: Mapping[str, Any], body: Any) -> str | None:
    delivery = properties.get("delivery_info")
    if not isinstance(properties.get("delivery_tag"), str) or not isinstance(delivery, dict):
        return "its envelope says nothing of its delivery"
    if not {"exchange", "routing_key"} <= cast(dict[str, Any], delivery).keys():
        return "its envelope says nothing of its delivery"
    if not isinstance(body, str) or properties.get("body_encoding") != "base64":
        return "its body is not encoded"
    try:
        b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return "its body is not encoded"
    return None


def task_fault(message: Any, tasks: Collection[str]) -> str | None:
    """Why a message of the transport is none of our tasks, or None. ``tasks`` are the known names."""
    headers = message.headers
    if not isinstance(headers, dict):
        return "it has no headers"
    named = cast(dict[str, Any], headers)
    if message.content_type != _JSON or str(message.content_encoding).lower() not in _UTF8:
        return f"its content is {str(message.content_type)[:40]!r}, not JSON"
    if "compression" in named:
        return "it is compressed"
    if named.get("task") not in tasks:
        return f"there is no task {str(named.get('task'))[:40]!r}"
    if not isinstance(named.get("id"), str):
        return "it has no id"
    return _body_fault(message.body)


def _body_fault(body: Any) -> str | None:
    try:
        content = json.loads(bytes(body).decode() if not isinstance(body, str) else body)
    except (ValueError, TypeError):
        return "its body is not JSON"
    match content:
        case [list(), dict(), dict() | None]:
            return None
        case _:
            return "its body is not [arguments, keyword arguments, options]"
