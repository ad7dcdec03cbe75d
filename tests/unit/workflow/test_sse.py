"""Frames for HTTP edges, read back as the HTML standard tells browsers to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow import StreamFrame, WorkflowError, sse_comment, sse_event, sse_frame

TEXT = st.text(alphabet=st.one_of(st.sampled_from("\r\n: \0\ufeff"), st.characters(exclude_categories=["Cs"])))


def received(stream: str) -> list[dict[str, str]]:
    """What a browser makes of a stream: the events, each with its type, data and last id."""
    events: list[dict[str, str]] = []
    fields: dict[str, list[str]] = {}
    last_id = ""
    for line in stream.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if "data" in fields:
                kind = fields.get("event", [""])[-1] or "message"
                events.append({"type": kind, "data": "\n".join(fields["data"]), "id": last_id})
            fields = {}
            continue
        name, _, value = line.partition(":")
        if name == "id" and "\0" not in value:
            last_id = value.removeprefix(" ")
        elif name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
    return events


def plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_an_event_has_its_fields_in_lines_and_ends_with_an_empty_one() -> None:
    assert sse_event("a\nb", event="step", id="7-0", retry=1.5) == "event: step\nid: 7-0\nretry: 1500\ndata: a\ndata: b\n\n"
    assert sse_event("") == "data: \n\n"
    assert sse_comment() == ": keep-alive\n\n"


@given(TEXT, TEXT)
def test_any_text_arrives_as_it_was_but_for_the_kind_of_its_line_ends(one: str, other: str) -> None:
    stream = sse_comment(other) + sse_event(one) + sse_comment(one) + sse_event(other, event="e", id="1")
    assert received(stream) == [
        {"type": "message", "data": plain(one), "id": ""},
        {"type": "e", "data": plain(other), "id": "1"},
    ]


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))
)
def test_the_data_of_a_frame_arrives_as_json_of_one_line(data: object) -> None:
    sent = sse_frame(StreamFrame("step", data), id="5-1")
    assert [line for line in sent.split("\n") if line.startswith("data:")] == sent.split("\n")[2:3]
    (event,) = received(sent)
    assert (event["type"], event["id"], json.loads(event["data"])) == ("step", "5-1", data)


@pytest.mark.parametrize("field", ["event", "id"])
@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\r\ndata: forged", "\0"])
def test_a_field_cannot_carry_another_one(field, value) -> None:
    with pytest.raises(WorkflowError, match=f"cannot be the {field} of an event"):
        sse_event("x", **{field: value})
