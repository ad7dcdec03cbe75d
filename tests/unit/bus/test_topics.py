"""Topic patterns, against a second, slow way to say what they mean."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus import BusError
from bus.streams import FACTS, HEARTBEATS, STREAMS, stream_of, streams_for
from bus.topics import TOPIC_LIMIT, check_patterns, check_topic, matches

words = st.sampled_from(["a", "b", "agent", "heartbeat"])
topics = st.lists(words, min_size=1, max_size=5).map(".".join)
patterns = st.lists(words | st.sampled_from(["*", "#"]), min_size=1, max_size=5).map(".".join)


def by_definition(pattern: list[str], topic: list[str]) -> bool:
    if not pattern:
        return not topic
    if pattern[0] == "#":
        return any(by_definition(pattern[1:], topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and pattern[0] in ("*", topic[0]) and by_definition(pattern[1:], topic[1:])


@given(patterns, topics)
def test_matching_is_what_amqp_says(pattern, topic):
    assert matches(pattern, topic) == by_definition(pattern.split("."), topic.split("."))


@given(topics)
def test_a_topic_matches_itself_and_everything(topic):
    assert matches(topic, topic)
    assert matches("#", topic)
    assert matches(".".join("*" for _ in topic.split(".")), topic)


def test_many_wildcards_do_not_take_for_ever():
    assert not matches(".".join(["#", "*"] * 40 + ["b"]), ".".join(["a"] * 120))


@given(patterns, topics)
def test_the_streams_of_a_pattern_hold_every_topic_it_matches(pattern, topic):
    if matches(pattern, topic):
        assert stream_of(topic) in streams_for([pattern])


def test_only_beats_go_to_the_stream_of_heartbeats():
    assert stream_of("agent.heartbeat") is HEARTBEATS
    assert stream_of("agent.heartbeat.stale") is FACTS
    assert streams_for(["agent.heartbeat"]) == (HEARTBEATS,)
    assert streams_for(["agent.heartbeat.*"]) == (FACTS,)
    assert streams_for(["agent.heartbeat", "x"]) == STREAMS


def test_ids_are_remembered_for_longer_than_entries_are_kept():
    assert all(stream.window > stream.retention for stream in STREAMS)


@pytest.mark.parametrize(
    "topic", ["", ".", "a.", ".a", "a..b", "a b", "a.*", "#", "ä", "a\n", "x" * (TOPIC_LIMIT + 1), None, 7]
)
def test_what_is_no_topic_is_refused_in_one_line(topic):
    with pytest.raises(BusError, match="is not a topic") as refusal:
        check_topic(topic)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("pattern", ["", "a.", "a*", "##", "*#", "a b", 7])
def test_what_is_no_pattern_is_refused(pattern):
    with pytest.raises(BusError, match="pattern"):
        check_patterns([pattern])


def test_patterns_are_a_sequence_and_never_empty():
    assert check_patterns(["a.*", "#"]) == ("a.*", "#")
    with pytest.raises(BusError, match=re.escape("('alert.#',)")):
        check_patterns("alert.#")
    with pytest.raises(BusError, match="at least one"):
        check_patterns([])
