"""The rule-based agents from end to end, on the example that ships with the project."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import mesh
from mesh.errors import UnknownRoleError
from mesh.roles.assignment import Assignment
from mesh.roles.rules import ROLES, RuleAgents
from mesh.settings import MeshConfig, load_config
from mesh.sources.mesh_state import MeshFacts

ROOT = Path(mesh.__file__).parents[1]
HOLDING = ROOT / "examples" / "holding" / "jarvis.toml"
Clock = Callable[[], dt.datetime]


def briefing(agents: RuleAgents, day: dt.date) -> str:
    research = agents.make("research", "t").perform(Assignment(role="research", date=day))
    operations = agents.make("operations", "t").perform(Assignment(role="operations", date=day))
    both = Assignment(role="briefing", date=day, research=research, operations=operations)
    return agents.make("briefing", "t").perform(both)


def section(text: str, heading: str) -> str:
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("ahead", range(0, 365 * 5, 173))
def test_the_example_shows_life_on_any_day(ahead: int) -> None:
    config = load_config(HOLDING)
    morning = dt.datetime(2026, 12, 1, 6, 0, tzinfo=dt.UTC) + dt.timedelta(days=ahead)
    text = briefing(RuleAgents(config, lambda: MeshFacts(at=morning), lambda: morning), morning.date())

    assert section(text, "Today's calendar").count("\n- ") >= 1
    assert section(text, "What is new").count("\n- ") >= 6
    assert "Overdue" in section(text, "Needs attention")
    assert "## Could not be read" not in text
    assert "## Read with care" not in text


def test_the_example_shows_the_calendar_in_the_operators_zone() -> None:
    morning = dt.datetime(2026, 12, 2, 6, 0, tzinfo=dt.UTC)
    text = briefing(RuleAgents(load_config(HOLDING), None, lambda: morning), morning.date())

    assert section(text, "Today's calendar").strip().split("\n") == [
        "- **07:30 to 07:45** Oven round with Joris, Bakehouse · *Company, Wed 2 Dec*",
        "- **08:30 to 09:00** Caretaker's round, Harbour House · *Houses, Wed 2 Dec*",
        "- **10:00 to 10:30** Call with the paper mill in Kotka · *Company, Wed 2 Dec*",
    ]


def test_the_template_of_init_is_a_working_configuration() -> None:
    assert load_config(ROOT / "mesh" / "templates" / "jarvis.toml") == MeshConfig()


def test_the_template_of_init_works_also_with_every_example_line_in_use(tmp_path: Path) -> None:
    template = (ROOT / "mesh" / "templates" / "jarvis.toml").read_text(encoding="utf-8")
    setting = ("# [", "# name", "# url", "# path", "# tcp", "# expect", "# timeout")
    lines = [line.removeprefix("# ") if line.startswith(setting) else line for line in template.splitlines()]
    (tmp_path / "jarvis.toml").write_text("\n".join(lines), encoding="utf-8")
    config = load_config(tmp_path / "jarvis.toml")

    assert [len(table) for table in (config.feeds, config.calendars, config.notes, config.checks)] == [2, 2, 1, 2]


def test_a_broken_source_of_each_kind_leaves_a_briefing_with_gaps(
    tmp_path: Path, config: Callable[..., MeshConfig], clock: Clock
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "bad").write_bytes(b"\x00\xff")
    bad = str(tmp_path / "bad")
    broken = config(
        feeds=[{"name": "Feed", "path": bad}, {"name": "Address", "url": f"http://127.0.0.1:{port}/"}],
        calendars=[{"name": "Calendar", "path": bad}],
        notes=[{"name": "Notes", "path": bad}],
        checks=[{"name": "Till", "tcp": f"127.0.0.1:{port}"}],
    )

    def state() -> MeshFacts:
        raise ConnectionError("no store")

    text = briefing(RuleAgents(broken, state, clock), clock().date())

    assert text.encode("utf-8")
    assert "1 thing needs attention" in text
    assert "5 sources could not be read" in text
    for name in ("Feed", "Address", "Calendar", "Notes", "mesh"):
        assert f"- **{name}**: " in section(text, "Could not be read")


def test_an_unknown_role_is_refused_with_the_known_ones(config: Callable[..., MeshConfig]) -> None:
    with pytest.raises(UnknownRoleError, match="no agent plays the role 'poet'; known roles: briefing, operations, research"):
        RuleAgents(config()).make("poet", "t")


def test_every_known_role_is_played(config: Callable[..., MeshConfig]) -> None:
    assert [type(RuleAgents(config()).make(role, "t")).__name__ for role in ROLES] == [
        "ResearchRole",
        "OperationsRole",
        "BriefingRole",
    ]
