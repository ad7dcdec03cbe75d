"""Topics and the patterns that choose among them, as in AMQP topic exchanges.

A topic is words joined by dots, ``agent.heartbeat.stale``. In a pattern the word ``*`` stands for exactly one word and ``#``
for any number of words, also none.
"""

import re
from collections.abc import Iterable, Sequence

from bus.errors import BusError

__all__ = ["TOPIC_LIMIT", "check_patterns", "check_topic", "matches", "matches_any"]

TOPIC_LIMIT = 255
"""Characters in a topic or pattern, as in AMQP."""

_TOPIC = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PATTERN = re.compile(r"([A-Za-z0-9_-]+|[*#])(\.([A-Za-z0-9_-]+|[*#]))*")


def check_topic(topic: str) -> str:
    """The topic itself; raises `BusError` when it is not one."""
    if not _fits(_TOPIC, topic):
        raise BusError(
            f"{topic!r:.80} is not a topic: use words of letters, digits, - and _ joined by dots, "
            f"at most {TOPIC_LIMIT} characters"
        )
    return topic


def check_patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns as a tuple; raises `BusError` when one is malformed or there is none."""
    if isinstance(patterns, str):
        raise BusError(f"topics must be a sequence of patterns, not one text: write ({patterns!r:.80},)")
    checked = tuple(patterns)
    for pattern in checked:
        if not _fits(_PATTERN, pattern):
            raise BusError(
                f"{pattern!r:.80} is not a topic pattern: use words joined by dots, with * for one word and # for any"
            )
    if not checked:
        raise BusError('no topics given: name at least one pattern; "#" means all')
    return checked


def matches(pattern: str, topic: str) -> bool:
    """Whether the topic is one of those that the pattern stands for."""
    words = topic.split(".")
    reached = {0}
    for part in pattern.split("."):
        if part == "#":
            reached = set(range(min(reached), len(words) + 1))
        else:
            reached = {place + 1 for place in reached if place < len(words) and part in ("*", words[place])}
        if not reached:
            return False
    return len(words) in reached


def matches_any(patterns: Sequence[str], topic: str) -> bool:
    """Whether one of the patterns stands for the topic."""
    return any(matches(pattern, topic) for pattern in patterns)


def _fits(form: re.Pattern[str], text: object) -> bool:
    return isinstance(text, str) and len(text) <= TOPIC_LIMIT and form.fullmatch(text) is not None
