"""A tag, or the name of an event, that no store could keep is refused where it is handed in, in words."""

import json

import pytest

from persistence import InMemoryPersistence
from workflow import (
    ExecutionRequest,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowState,
    WorkflowStatus,
    await_event,
)

BAD = {"a\ud800": "half of a surrogate pair", "a\x00b": "NUL character"}


def work(event: StartEvent, state: WorkflowState) -> StopEvent:
    return StopEvent(1)


@pytest.mark.parametrize("tag", BAD)
def test_a_start_refuses_it_in_words(tag):
    with pytest.raises(WorkflowError, match=rf"invalid tag .*: it holds .*{BAD[tag]}, remove that"):
        ExecutionRequest.start(tag=tag)


@pytest.mark.parametrize("tag", BAD)
def test_a_request_off_a_queue_refuses_it_too(tag):
    text = ExecutionRequest.start(tag="good").to_json()
    assert ExecutionRequest.from_json(text).tag == "good"
    with pytest.raises(WorkflowError):
        ExecutionRequest.from_json(json.dumps({**json.loads(text), "tag": tag}))


@pytest.mark.parametrize("tag", BAD)
def test_an_ignition_with_it_writes_nothing_and_spoils_no_later_one(tag):
    store = InMemoryPersistence()
    definition = Workflow("w", nodes=[work], persistence=store)
    with pytest.raises(WorkflowError, match="invalid tag"):
        definition.ignite(tag=tag)
    assert store.load("w") == {}
    assert definition.ignite(tag="good")
    assert store.find(tag="good")


@pytest.mark.parametrize("tag", [None, "", "a b", "\u00e9", "\U0001f600", "a\n"])
def test_any_other_text_is_a_tag(tag):
    assert ExecutionRequest.start(tag=tag).tag == tag


@pytest.mark.parametrize("name", ["", *BAD])
def test_an_event_of_such_a_name_cannot_be_waited_for_and_the_run_says_so(name):
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event(name))

    store = InMemoryPersistence()
    workflow = Workflow("w", nodes=[ask], persistence=store)
    with pytest.raises(WorkflowError, match="cannot name an event"):
        workflow.run()
    assert workflow.inspect().status is WorkflowStatus.FAILED
