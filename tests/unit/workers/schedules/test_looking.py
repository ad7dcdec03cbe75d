"""Looking at the schedules: one run for each slot, whoever looks, however often, and wherever a process ends."""

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from persistence import UnreachableError
from workers import register
from workers.composition import OCCURRENCE_RETAIN_FOR
from workers.definitions import SWEEP_RETAIN_FOR
from workflow import Workflow, WorkflowStatus

FOUND = Callable[..., Any]


def hourly(day: int, *hours: int) -> list[str]:
    """Workflow ids of the hourly schedule's slots (UTC)."""
    return [f"hourly-202611{day:02}T{hour:02}0000Z" for hour in hours]


def test_a_new_schedule_counts_from_the_first_look(town: Any) -> None:
    process = town.process()

    assert process.look() == 0
    town.advance(minutes=29)
    assert process.look() == 0
    town.advance(minutes=1)
    assert process.look() == 2, "the briefing is due as well"

    assert town.started() == hourly(30, 6)
    assert [workflow_id for _, workflow_id, _ in process.runtime.hints.sent] == ["jarvis-briefing-2026-11-30", *hourly(30, 6)]


def test_one_slot_is_one_run_however_often_and_by_whomever_it_is_looked_at(town: Any) -> None:
    processes = [town.process() for _ in range(3)]
    for _ in range(120):
        for process in processes:
            process.look()
        town.advance(minutes=1)

    assert town.started() == hourly(30, 6, 7)


def test_an_idle_schedule_costs_no_look_at_the_store(town: Any) -> None:
    process = town.process()
    process.look()
    before = process.runtime.entered.count
    for _ in range(29):
        town.advance(minutes=1)
        process.look()

    assert process.runtime.entered.count == before


def test_a_process_that_is_started_anew_goes_on_where_the_store_says(town: Any) -> None:
    for _ in range(90):
        town.process().look()
        town.advance(minutes=1)

    assert town.started() == hourly(30, 6)


# --- after downtime -----------------------------------------------------------------------------------------------------------


def after_a_night(town: Any) -> list[tuple[str, str]]:
    """What is started by the first look after ten hours without one, and its tags."""
    town.process().look()
    town.advance(hours=10, minutes=5)
    town.process().look()
    return [(workflow_id, town.kept.entry(workflow_id).tag) for workflow_id in town.started()]


def test_the_latest_slot_is_made_up_for_and_marked_late(town: Any) -> None:
    assert after_a_night(town) == [("hourly-20261130T150000Z", "schedule:hourly:late")]
    assert town.process().look() == 0


@pytest.mark.parametrize(("at_most", "hours"), [(3, (13, 14, 15)), (100, range(6, 16))])
def test_all_slots_are_made_up_for_up_to_a_cap_the_oldest_first(found_town: FOUND, at_most: int, hours: Any) -> None:
    table = {"name": "hourly", "workflow": "report", "cron": "0 * * * *", "after_downtime": "all", "at_most": at_most}
    town = found_town(table)

    assert after_a_night(town) == [(workflow_id, "schedule:hourly:late") for workflow_id in hourly(30, *hours)]
    assert town.process().look() == 0


def test_missed_slots_are_skipped_and_the_next_one_is_on_time(found_town: FOUND) -> None:
    town = found_town({"name": "hourly", "workflow": "report", "cron": "0 * * * *", "after_downtime": "skip"})

    assert after_a_night(town) == []
    town.advance(minutes=25)
    town.process().look()
    assert town.started() == hourly(30, 16)
    assert town.kept.entry(*hourly(30, 16)).tag == "schedule:hourly"


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
@pytest.mark.parametrize(("seconds", "late"), [(60, False), (61, True)])
def test_a_minute_is_not_late(found_town: FOUND, policy: str, seconds: int, late: bool) -> None:
    town = found_town({"name": "hourly", "workflow": "report", "cron": "0 * * * *", "after_downtime": policy})
    town.process().look()
    town.advance(minutes=30, seconds=seconds)
    town.process().look()

    expected = [] if late and policy == "skip" else ["schedule:hourly:late" if late else "schedule:hourly"]
    assert [town.kept.entry(workflow_id).tag for workflow_id in town.started()] == expected


def test_a_restart_after_the_run_repeats_nothing(town: Any) -> None:
    process = town.process()
    process.look()
    town.advance(minutes=30)
    process.look()
    process.work(*town.started())

    for minutes in (1, 29, 29):
        town.advance(minutes=minutes)
        town.process().look()

    assert town.started() == hourly(30, 6)


# --- two at once, and killed in mid-slot --------------------------------------------------------------------------------------


def operations_of_a_look(town: Any) -> int:
    """How many operations of the store the look at a due slot takes."""
    process = at_a_due_slot(town)
    process.look()
    return process.runtime.entered.count


def at_a_due_slot(town: Any) -> Any:
    """A process that has not looked yet, with one slot due."""
    town.process().look()
    town.advance(minutes=30)
    return town.process()


@pytest.mark.parametrize("policy", ["latest", "all", "skip"])
def test_two_looks_at_once_start_one_run_wherever_they_meet(found_town: FOUND, policy: str) -> None:
    table = {"name": "hourly", "workflow": "report", "cron": "0 * * * *", "after_downtime": policy}
    operations = operations_of_a_look(found_town(table))
    assert operations > 6

    for meeting in range(1, operations + 1):
        town = found_town(table)
        first = at_a_due_slot(town)
        second = town.process()
        first.runtime.entered.at, first.runtime.entered.happens = meeting, second.look

        first.look()

        assert town.started() == hourly(30, 6), f"they meet at operation {meeting}"
        assert town.process().look() == 0


@pytest.mark.parametrize("afterwards", [False, True])
@pytest.mark.parametrize("down_for", [1, 50, 3000])
def test_a_look_that_is_killed_anywhere_leaves_one_run(
    found_town: FOUND, killed: type[BaseException], down_for: int, afterwards: bool
) -> None:
    table = {"name": "hourly", "workflow": "report", "cron": "0 * * * *"}
    operations = operations_of_a_look(found_town(table))

    def die() -> None:
        raise killed

    for place in range(1, operations + 1):
        town = found_town(table)
        first = at_a_due_slot(town)
        first.runtime.entered.at, first.runtime.entered.afterwards = place, afterwards
        first.runtime.entered.happens = die
        with pytest.raises(killed):
            first.look()

        town.advance(seconds=down_for)
        second = town.process()
        second.look()
        second.work(*hourly(30, 6))
        town.process().look()

        assert town.started() == hourly(30, 6), f"killed at operation {place}"


def test_catching_up_with_several_slots_may_be_killed_anywhere(found_town: FOUND, killed: type[BaseException]) -> None:
    table = {"name": "hourly", "workflow": "report", "cron": "0 * * * *", "after_downtime": "all"}

    def missed_three() -> Any:
        town = found_town(table)
        town.process().look()
        town.advance(hours=2, minutes=35)
        return town

    def die() -> None:
        raise killed

    counting = missed_three().process()
    counting.look()
    for place in range(1, counting.runtime.entered.count + 1):
        town = missed_three()
        first = town.process()
        first.runtime.entered.at, first.runtime.entered.happens = place, die
        with pytest.raises(killed):
            first.look()
        town.process().look()
        town.process().look()

        assert town.started() == hourly(30, 6, 7, 8), f"killed at operation {place}"


def test_a_claim_that_a_dead_process_left_is_not_a_second_catch_up(town: Any, killed: type[BaseException]) -> None:
    """After the night one run is made up for: the latest, not the claimed one as well."""

    def die() -> None:
        raise killed

    first = at_a_due_slot(town)
    operations = operations_of_a_look_until_claimed(first)
    first.runtime.entered.at, first.runtime.entered.happens = operations, die
    with pytest.raises(killed):
        first.look()
    town.advance(hours=10)
    town.process().look()

    assert town.started() == hourly(30, 16)


def operations_of_a_look_until_claimed(process: Any) -> int:
    """The number of the operation after the claim: the daily schedules come first, and the hourly one reads, then claims."""
    daily, watchdog, read, claim = 3, 3, 1, 1
    return daily + watchdog + read + claim + 1


def test_a_run_that_was_started_by_hand_is_the_slots_run(town: Any) -> None:
    process = at_a_due_slot(town)
    process.client.start("report", *hourly(30, 6))

    process.look()

    assert town.started() == hourly(30, 6)


def test_a_wrong_clock_does_not_silence_a_schedule(town: Any) -> None:
    process = town.process()
    process.look()
    town.advance(days=300)
    process.look()
    town.clock.advance(-300 * 24 * 3600)

    for _ in range(31):
        town.process().look()
        town.advance(minutes=1)

    assert town.started()[-1] == hourly(30, 6)[0]


def test_a_changed_rule_begins_anew(found_town: FOUND) -> None:
    before = found_town({"name": "report", "workflow": "report", "at": "07:00"})
    after = found_town({"name": "report", "workflow": "report", "at": "06:45"})
    after.kept, after.clock = before.kept, before.clock
    before.process().look()
    before.advance(hours=1)
    before.process().look()

    after.process().look()

    assert after.started() == ["report-20261130T060000Z"]


# --- the mesh's own -----------------------------------------------------------------------------------------------------------


def test_the_briefing_is_the_edition_of_its_local_date(found_town: FOUND) -> None:
    town = found_town()
    process = town.process()
    process.look()
    town.advance(minutes=30)
    process.look()

    assert town.started("daily-briefing") == ["jarvis-briefing-2026-11-30"]
    assert town.kept.entry("jarvis-briefing-2026-11-30").tag == "schedule:daily-briefing"


def test_a_briefing_that_somebody_asked_for_before_is_not_written_again(found_town: FOUND) -> None:
    town = found_town()
    process = town.process()
    process.look()
    process.client.enqueue_briefing(process.client.today().replace(2026, 11, 30))
    town.advance(minutes=30)
    process.look()

    assert town.started("daily-briefing") == ["jarvis-briefing-2026-11-30"]


def test_after_weeks_there_is_one_late_briefing(found_town: FOUND) -> None:
    town = found_town()
    town.process().look()
    town.advance(days=21, hours=5)
    town.process().look()

    assert town.started("daily-briefing") == ["jarvis-briefing-2026-12-21"]
    assert town.kept.entry("jarvis-briefing-2026-12-21").tag == "schedule:daily-briefing:late"


def test_sweeps_are_made_by_whoever_looks_and_never_made_up_for(found_town: FOUND) -> None:
    town = found_town(schedule={"watchdog_every": 60})
    process = town.process()
    process.look()
    town.advance(seconds=120)
    process.look()
    made = town.started("watchdog")
    town.advance(hours=3, seconds=-5)
    process.look()

    assert made == ["watchdog-20261130T053200Z"]
    assert process.runtime.heartbeats.last_seen("watchdog") is not None
    assert town.kept.find(name="watchdog")[0].status == WorkflowStatus.COMPLETED.value
    assert len(town.started("watchdog")) == 2


def test_a_sweep_does_not_run_before_agents_have_had_an_interval_to_beat(found_town: FOUND) -> None:
    town = found_town(schedule={"watchdog_every": 60})
    process = town.process()
    for _ in range(59):
        process.look()
        town.advance(seconds=1)

    assert town.started("watchdog") == []


# --- what is kept, and what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ({}, OCCURRENCE_RETAIN_FOR),
        ({"retain_for": 60}, OCCURRENCE_RETAIN_FOR),
        ({"retain_for": 10 * OCCURRENCE_RETAIN_FOR}, 10 * OCCURRENCE_RETAIN_FOR),
        ({"retain_completion": True}, None),
    ],
)
def test_an_occurrence_is_kept_long_enough(town: Any, declared: dict[str, Any], kept: float | None) -> None:
    register("report", lambda workflow_id: Workflow(workflow_id, **declared))
    runtime = town.process().runtime

    assert runtime.definition("report", "hourly-20261130T060000Z").retain_for == kept
    assert runtime.definition("report", "hourly").retain_for == declared.get("retain_for")
    assert runtime.definition("watchdog", "watchdog-20261130T060000Z").retain_for == SWEEP_RETAIN_FOR


def test_where_nobody_can_know_whether_a_slot_ran_it_is_not_run_again(town: Any, killed: type[BaseException]) -> None:
    def die() -> None:
        raise killed

    first = at_a_due_slot(town)
    first.runtime.entered.at = operations_of_a_look_until_claimed(first)
    first.runtime.entered.happens = die
    with pytest.raises(killed):
        first.look()
    town.advance(days=8)
    with capture_logs() as logs:
        town.process().look()

    assert town.started() == ["hourly-20261208T060000Z"]
    assert [line["workflow_id"] for line in logs if "cannot be known" in line["event"]] == hourly(30, 6)


def test_a_schedule_that_cannot_be_followed_keeps_us_from_no_other_and_is_named_once(found_town: FOUND) -> None:
    def broken(workflow_id: str) -> Any:
        raise RuntimeError("no disk")

    register("wrecked", broken)
    tables = [{"name": name, "workflow": name, "cron": "0 * * * *"} for name in ("wrecked", "report")]
    town = found_town(*tables)
    process = at_a_due_slot(town)

    with capture_logs() as logs:
        process.look()
        process.look()

    assert town.started() == ["report-20261130T060000Z"]
    assert [line["schedule"] for line in logs if line["log_level"] == "error"] == ["wrecked"]


def test_a_damaged_cursor_is_named_with_the_remedy(town: Any) -> None:
    town.process().look()
    key = "cron 0 * * * * Europe/Vienna"
    held = town.kept.get("__schedule:hourly", key)
    assert town.kept.write_if_unchanged("__schedule:hourly", key, held, {key: b"[]"})

    with capture_logs() as logs:
        town.process().look()

    assert [line["trouble"] for line in logs] == [
        "the cursor of schedule 'hourly' is corrupt: delete partition '__schedule:hourly'"
    ]


def test_a_store_that_does_not_answer_is_said_once(town: Any) -> None:
    process = town.process()

    def refuse() -> None:
        process.runtime.entered.at = process.runtime.entered.count + 1
        raise UnreachableError("no answer")

    process.runtime.entered.at, process.runtime.entered.happens = 1, refuse
    with capture_logs() as logs:
        process.look_patiently()
        process.look_patiently()

    assert [line["event"] for line in logs] == ["cannot look at the schedules until the store answers"]
