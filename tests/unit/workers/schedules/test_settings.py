"""Schedules as they are written in jarvis.toml, and what is said of a mistake."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.errors import ConfigError
from workers import Settings, register
from workers.errors import SettingsError
from workers.schedules import AfterDowntime, Every, WallTimes
from workers.schedules.catalogue import scheduled
from workflow import Event, Workflow
from workflow.registry import register_type

Load = Callable[[str], Settings]


class Bought(Event):
    item: str
    pieces: int = 1


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load settings with this jarvis.toml."""
    register("shop", Workflow)

    def make(content: str) -> Settings:
        path = tmp_path / "jarvis.toml"
        path.write_text(content, encoding="utf-8")
        return Settings.load(config=path)

    return make


def test_a_mesh_has_two_schedules_of_its_own(load: Load) -> None:
    briefing, watchdog = (one.schedule for one in scheduled(load('[operator]\nzone = "Asia/Tokyo"')))

    assert (briefing.name, briefing.rule, briefing.zone.key) == ("daily-briefing", WallTimes.daily(dt.time(7)), "Asia/Tokyo")
    assert (watchdog.name, watchdog.rule, watchdog.after_downtime) == ("watchdog", Every(60), AfterDowntime.SKIP)


def test_a_schedule_of_ones_own_says_when_and_where_and_what_after_downtime(load: Load) -> None:
    settings = load(
        """
        [operator]
        zone = "Asia/Tokyo"
        [schedule]
        after_downtime = "all"
        at_most = 3
        [[schedules]]
        name = "stock"
        workflow = "shop"
        cron = "0 9 * * MON-fri"
        zone = "Europe/Vienna"
        after_downtime = "skip"
        [[schedules]]
        name = "till"
        workflow = "shop"
        at = 22:15:30
        [[schedules]]
        name = "pulse"
        workflow = "shop"
        every = 900
        """
    )
    briefing, _, stock, till, pulse = (one.schedule for one in scheduled(settings))

    assert (briefing.after_downtime, briefing.at_most) == (AfterDowntime.ALL, 3)
    assert (stock.key, stock.after_downtime) == ("cron 0 9 * * mon-fri Europe/Vienna", AfterDowntime.SKIP)
    assert (till.key, till.rule.words) == ("at 22:15:30 Asia/Tokyo", "every day at 22:15:30")
    assert (pulse.key, pulse.after_downtime, pulse.at_most) == ("every 900 s", AfterDowntime.LATEST, 10)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('name = "a"\nworkflow = "shop"', "schedules: [1]: schedule 'a': give one of at, every and cron"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\nevery = 60', "give one of at, every and cron"),
        ('name = "a"\nworkflow = "shop"\ncron = "0 7 * *"', "[1].cron: '0 7 * *' has 4 fields"),
        ('name = "a"\nworkflow = "shop"\ncron = "0 7 31 feb *"', "never happens"),
        ('name = "a"\nworkflow = "shop"\nevery = 1', "[1].every: Input should be greater than or equal to 5"),
        ('name = "a"\nworkflow = "shop"\nat = 7', "must be a time of day, such as"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00+02:00"', "must be a time of day without a zone"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\nzone = "Mars/Olympus"', "there is no time zone 'Mars/Olympus'"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\nafter_downtime = "some"', "'skip', 'latest' or 'all'"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\nat_most = 0', "[1].at_most"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\npayload = { item = "rye" }', "a payload needs event"),
        ('name = "a"\nworkflow = "shop"\nat = "07:00"\nwhen = 1', "there is no such key"),
        ('name = "A b"\nworkflow = "shop"\nat = "07:00"', "must be small letters, digits"),
        ('name = "watchdog"\nworkflow = "shop"\nat = "07:00"', "is one of the mesh's own schedules"),
        (
            'name = "a"\nworkflow = "shop"\nat = "07:00"\n[[schedules]]\nname = "a"\nworkflow = "shop"\nat = "08:00"',
            "two schedules are called 'a'",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_key(load: Load, content: str, complaint: str) -> None:
    with pytest.raises((ConfigError, SettingsError)) as refused:
        load(f"[[schedules]]\n{content}\n")

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('workflow = "shpo"', "schedule 'a' starts 'shpo', which nobody registers: use one of "),
        ('workflow = "shop"\nevent = "nowhere.Bought"', "schedule 'a': no module in JARVIS_MODULES defines an event"),
        ('workflow = "shop"\nevent = "{bought}"', "schedule 'a': payload item: Field required"),
        ('workflow = "shop"\nevent = "{bought}"\npayload = {{ item = "rye", colour = 1 }}', "schedule 'a': payload colour: "),
    ],
)
def test_what_the_program_does_not_know_is_said_before_anything_runs(load: Load, content: str, complaint: str) -> None:
    known = content.format(bought=f"{Bought.__module__}.Bought") if "{" in content else content
    settings = load(f'[[schedules]]\nname = "a"\nat = "07:00"\n{known}\n')

    with pytest.raises(SettingsError) as refused:
        scheduled(settings)

    assert str(refused.value).startswith(complaint)
    assert "\n" not in str(refused.value)


def test_the_payload_becomes_the_start_event(found_town: Callable[..., object]) -> None:
    event, payload = f"{Bought.__module__}.Bought", {"item": "rye", "pieces": 2}
    town = found_town({"name": "stock", "workflow": "report", "at": "07:00", "event": event, "payload": payload})
    process = town.process()
    process.look()
    town.advance(minutes=30)
    process.look()

    [workflow_id] = town.started()
    assert process.runtime.engine.inspect(workflow_id).start_event == Bought(item="rye", pieces=2)


def test_the_tables_of_the_how_to_are_schedules(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[4] / "docs/how-to/schedule.md").read_text()
    tables = "\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))
    register("order", Workflow)
    monkeypatch.setattr(Bought, "type_name", "orders.Ordered", raising=False)
    register_type(Bought)

    briefing, watchdog, stock = (one.schedule for one in scheduled(load(tables)))

    assert (briefing.key, watchdog.key) == ("at 07:00 Europe/Vienna", "every 60 s")
    assert stock.key == "cron 0 9 * * mon-fri America/New_York"
