"""`jarvis graph`: a registered workflow as a picture, and the progress of a run."""

import datetime as dt
import json
from pathlib import Path

import fakeredis
import pytest

from console import joining
from console.commands.graph import sample_id
from console.joining import Joined
from workers import registry
from workers.client import MeshClient
from workers.composition import Runtime
from workers.settings import Settings
from workflow import Event, Node, StartEvent, StopEvent, Workflow, WorkflowResources, WorkflowState

BRIEFING = """\
BriefingStarted → Research
└─ ResearchCompleted → Operations
   └─ OperationsCompleted → Compose
      └─ BriefingComposed → Publish
         └─ StopEvent
"""


class Sorted(Event):
    pass


class Sort(Node):
    step_name = "sort"

    def __call__(self, event: StartEvent, state: WorkflowState) -> Sorted:
        return Sorted()


class Send(Node):
    step_name = "send"

    def __call__(self, event: Sorted, state: WorkflowState) -> StopEvent:
        return StopEvent(self.await_event("sent"))


class Post(Workflow):
    def nodes(self):
        return [Sort(), Send()]

    def resources(self):
        return WorkflowResources()


@pytest.fixture
def registered(monkeypatch):
    """Return what makes a workflow known for the length of the test."""

    def register(name, factory):
        monkeypatch.setitem(registry._FACTORIES, name, factory)

    return register


@pytest.fixture
def mesh(monkeypatch) -> Joined:
    """Return a mesh on a server in memory, to which commands come."""
    settings = Settings.load()
    runtime = Runtime(settings)
    runtime.__dict__["client"] = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    mesh = Joined(settings, Path.cwd())
    mesh.__dict__["client"] = MeshClient(runtime=runtime)
    monkeypatch.setattr(joining, "visit", lambda settings, act: act(mesh))
    return mesh


@pytest.fixture
def waiting(registered, mesh) -> None:
    """A run of `post` that waits in its second step, and is not of another workflow."""
    registered("post", Post)
    mesh.client.runtime.definition("post", "post:1").run()


def test_the_tree_of_a_workflow_is_data_and_needs_no_server(jarvis, empty_folder):
    assert jarvis("graph", "daily-briefing") == (0, BRIEFING, "")
    assert list(empty_folder.iterdir()) == []


def test_the_picture_can_be_had_for_mermaid(jarvis):
    code, data, said = jarvis("graph", "watchdog", "--mermaid")
    assert (code, said) == (0, "")
    assert data.startswith('graph TD\n    WatchdogRequest["WatchdogRequest"]\n    Sweep[["Sweep"]]\n')


def test_the_picture_can_be_had_as_json(jarvis):
    code, data, _ = jarvis("graph", "watchdog", "--json")
    made = json.loads(data)

    assert (code, made["workflow"], made["roots"]) == (0, "watchdog", ["WatchdogRequest"])
    assert made["boxes"][1] == {"id": "Sweep", "kind": "node", "label": "Sweep", "step": "sweep", "mark": None}
    assert made["edges"][0] == {"source": "WatchdogRequest", "target": "Sweep", "label": ""}


def test_workflows_of_other_modules_are_known(jarvis, empty_folder, monkeypatch, registered):
    registered("letters", None)  # taken out again after the test
    (empty_folder / "letters_of_ours.py").write_text("from workers import register\nimport workflow\n\n" + LETTERS)
    monkeypatch.syspath_prepend(empty_folder)
    monkeypatch.setenv("JARVIS_MODULES", "workers.definitions,letters_of_ours")

    assert jarvis("graph", "letters") == (0, "StartEvent → write\n└─ StopEvent\n", "")


LETTERS = """\
def write(event: workflow.StartEvent, state: workflow.WorkflowState) -> workflow.StopEvent:
    return workflow.StopEvent()

register("letters", lambda workflow_id: workflow.Workflow(workflow_id, nodes=[write]))
"""


def test_an_unknown_name_is_misuse_and_the_known_ones_are_named(jarvis, monkeypatch):
    of_the_mesh = {name: registry._FACTORIES[name] for name in ("daily-briefing", "watchdog")}
    monkeypatch.setattr(registry, "_FACTORIES", of_the_mesh)
    code, data, said = jarvis("graph", "breifing")
    assert (code, data, said.count("\n")) == (2, "", 1)
    assert said.startswith("jarvis: there is no workflow 'breifing': known are daily-briefing, ")


def test_mermaid_and_json_together_are_misuse(jarvis):
    assert jarvis("graph", "watchdog", "--json", "--mermaid")[0] == 2


def test_a_factory_that_refuses_the_id_is_one_line(jarvis, registered):
    def choosy(workflow_id):
        raise LookupError(f"nothing is known\nof {workflow_id}")

    registered("choosy", choosy)
    code, data, said = jarvis("graph", "choosy")
    assert (code, data, said.count("\n")) == (1, "", 1)
    assert "cannot be made for the id 'choosy-sample' (nothing is known of choosy-sample): name one of its ids" in said


def test_an_error_in_a_definition_is_not_called_a_bug_of_ours(jarvis, registered):
    class Broken(Workflow):
        def nodes(self):
            raise KeyError("nodes")

    registered("broken", Broken)
    code, _, said = jarvis("graph", "broken")
    assert (code, said.count("\n")) == (1, 1)
    assert "the definition Broken has an error (KeyError: 'nodes')" in said


def test_a_graph_that_cannot_run_is_one_line(jarvis, registered):
    registered("mute", lambda workflow_id: Workflow(workflow_id, nodes=[print]))
    code, _, said = jarvis("graph", "mute")
    assert (code, said.count("\n")) == (1, 1)
    assert "node 'print'" in said


@pytest.mark.usefixtures("waiting")
def test_a_run_is_marked_as_far_as_it_has_come(jarvis):
    assert jarvis("graph", "post", "--run", "post:1") == (
        0,
        "StartEvent → ✓ Sort\n└─ Sorted → ▶ Send\n   └─ StopEvent\n",
        "",
    )


@pytest.mark.usefixtures("waiting")
def test_the_marks_are_in_the_json_and_in_the_colours(jarvis):
    boxes = json.loads(jarvis("graph", "post", "--run", "post:1", "--json")[1])["boxes"]
    assert {box["step"]: box["mark"] for box in boxes if box["kind"] == "node"} == {"sort": "done", "send": "current"}
    assert "class Send current" in jarvis("graph", "post", "--run", "post:1", "--mermaid")[1]


@pytest.mark.usefixtures("waiting")
def test_a_run_of_another_workflow_is_misuse(jarvis):
    code, data, said = jarvis("graph", "watchdog", "--run", "post:1")
    assert (code, data) == (2, "")
    assert "the run of 'post:1' is one of 'post': `jarvis graph post --run post:1`" in said


@pytest.mark.usefixtures("mesh")
def test_without_such_a_run_the_command_fails(jarvis):
    code, data, said = jarvis("graph", "watchdog", "--run", "nobody")
    assert (code, data) == (1, "")
    assert "there is no run of 'nobody'" in said


def test_the_sample_of_a_briefing_is_that_of_today():
    assert sample_id("daily-briefing", dt.date(2026, 11, 30)) == "jarvis-briefing-2026-11-30"
