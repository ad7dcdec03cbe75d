"""The archive: runs are found newest first and by what is indexed, lines are added once, and what is old is forgotten."""

import threading
from typing import Any

import pytest

from persistence import PersistenceError
from workers.history import PastRun, Query, RunArchive, archive
from workers.history.pruning import TIDY_EVERY, Pruner


def add(office: Any, *lines: Any) -> None:
    """Merge lines that are a page of the log, and be done with it."""
    page = office.archive.position()
    assert office.archive.merge(lines, page)
    assert office.archive.move(page, str(int(page or 0) + 1))


def test_a_run_is_told_in_short_and_line_by_line(office: Any) -> None:
    add(
        office,
        office.line("started", attempt=0, tag="t"),
        office.line("claimed"),
        office.line("step", step="pay-0", seconds=1.5),
        office.line("failed", step="ship", error="ValueError", message="no flour", retry_at=5.0),
    )
    [run] = office.runs()
    assert (run.workflow_id, run.run_id, run.name, run.tag, run.status) == ("order:1", "run_1", "orders", "t", "failed")
    assert (run.attempts, run.steps, run.step, run.error, run.message, run.retry_at) == (
        1,
        1,
        "ship",
        "ValueError",
        "no flour",
        5.0,
    )
    assert office.kinds(run) == ["started", "claimed", "step", "failed"]
    assert office.archive.lines(run)[2].seconds == 1.5


@pytest.mark.parametrize(
    ("kind", "known", "status", "over", "ended"),
    [
        ("started", {"attempt": 0}, "pending", False, False),
        ("started", {}, "running", False, False),
        ("claimed", {}, "running", False, False),
        ("step", {}, "running", False, False),
        ("suspended", {}, "suspended", False, False),
        ("failed", {"retry_at": 1.0}, "failed", False, False),
        ("failed", {}, "failed", False, True),
        ("stalled", {}, "failed", False, True),
        ("completed", {}, "completed", True, True),
        ("cancelled", {}, "cancelled", True, True),
        ("abandoned", {}, "abandoned", True, True),
    ],
)
def test_each_line_says_where_the_run_stands(
    office: Any, kind: str, known: dict[str, Any], status: str, over: bool, ended: bool
) -> None:
    add(office, office.line(kind, **known))
    [run] = office.runs(status=status)
    assert (run.is_over, run.ended is not None) == (over, ended)


def test_a_run_that_got_over_its_error_still_shows_it_but_waits_for_nothing(office: Any) -> None:
    add(office, office.line("suspended", waits_for={"interruptId": 1}))
    assert office.archive.runs_of("order:1")[0].waits_for == {"interruptId": 1}
    add(office, office.line("answered"))
    assert (office.runs()[0].status, office.archive.runs_of("order:1")[0].waits_for) == ("suspended", None)
    add(office, office.line("failed", error="E", message="m", retry_at=1.0), office.line("completed", attempt=2))
    [run] = office.runs()
    assert (run.status, run.error, run.message, run.retry_at, run.attempts) == ("completed", "E", "m", None, 2)


def test_runs_are_found_newest_first_in_pages(office: Any) -> None:
    for line in office.many(25):
        add(office, line)
    found, after = [], None
    while True:
        page = office.archive.find(Query(), limit=10, after=after)
        found += [run.workflow_id for run in page]
        after = page.after
        if after is None:
            break
    assert found == [f"order:{number}" for number in reversed(range(25))]


def test_runs_are_found_by_what_is_known_of_them(office: Any) -> None:
    start = office.now()
    add(office, office.line("completed", "a", "r1", name="orders", tag="x"))
    add(office, office.line("failed", "b", "r2", name="orders", started=start + 10, error="IllError", message="Ofen kalt"))
    add(office, office.line("failed", "c", "r3", name="bread", started=start + 20, tag="x"))

    def ids(**query: Any) -> str:
        return "".join(run.workflow_id for run in office.runs(**query))

    assert ids() == "cba"
    assert ids(name="orders") == "ba"
    assert ids(status="failed") == "cb"
    assert ids(tag="x") == "ca"
    assert ids(name="orders", status="failed") == "b"
    assert ids(since=start + 10) == "cb"
    assert ids(until=start + 20) == "ba"
    assert ids(since=start + 10, until=start + 20) == "b"
    assert ids(text="ofen KALT") == "b"
    assert ids(text="illerr") == "b"
    assert ids(text="nowhere") == ""
    assert ids(without=lambda run: run.status == "failed") == "a"


def test_a_search_through_everything_stops_and_says_where_to_go_on(office: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SCAN_LIMIT", 10)
    for line in office.many(25):
        add(office, line)
    pages, after = 0, None
    found: list[str] = []
    while True:
        page = office.archive.find(Query(text="ORDER:0"), after=after)
        pages, after = pages + 1, page.after
        found += [run.workflow_id for run in page]
        if after is None:
            break
    assert (found, pages) == (["order:0"], 3)


def test_the_runs_of_one_workflow_id_are_found_by_it(office: Any) -> None:
    for number in range(3):
        add(office, office.line("completed", run_id=f"r{number}", started=office.now() + number))
    add(office, office.line("completed", "order:10", "other"))
    assert [run.run_id for run in office.archive.runs_of("order:1")] == ["r2", "r1", "r0"]
    assert office.archive.runs_of("order:2") == []


def test_the_same_page_merged_again_changes_nothing(office: Any) -> None:
    lines = [office.line("started"), office.line("step", step="a-0"), office.line("completed")]
    office.archive.merge(lines[:2], None)
    office.archive.merge(lines, None)
    before = office.runs(), office.kinds(office.runs()[0])
    office.archive.merge(lines, None)
    office.archive.merge(lines[:1], None)
    assert (office.runs(), office.kinds(office.runs()[0])) == before
    assert before[1] == ["started", "step", "completed"]


def test_a_page_that_is_done_is_not_merged_any_more(office: Any) -> None:
    add(office, office.line("started"))
    assert not office.archive.move(None, "2")
    assert not office.archive.merge([office.line("claimed")], None)
    assert office.archive.merge([office.line("claimed")], "1")
    assert [office.kinds(run) for run in office.runs()] == [["started", "claimed"]]


def test_many_who_merge_the_same_page_add_each_line_once(office: Any) -> None:
    lines = [office.line("started"), *(office.line("step", step=f"s-{number}") for number in range(20))]
    parts = [threading.Thread(target=office.archive.merge, args=(lines[:cut], None)) for cut in (5, 10, 15, 21, 21)]
    for thread in parts:
        thread.start()
    for thread in parts:
        thread.join()
    [run] = office.runs()
    assert (run.lines, run.steps) == (21, 20)
    assert office.archive.lines(run) == lines


def test_of_a_long_run_the_first_and_the_last_lines_are_kept(office: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FIRST_LINES", 2)
    monkeypatch.setattr(archive, "LAST_LINES", 3)
    told = 0
    for size in (1, 4, 2, 1, 9, 1, 3):
        add(office, *(office.line("step", step=f"s-{told + place}") for place in range(size)))
        told += size
        [run] = office.runs()
        kept = [line.step for line in office.archive.lines(run)]
        wanted = [f"s-{place}" for place in range(told) if place < 2 or place >= told - 3]
        assert (run.lines, kept) == (told, wanted)


def test_what_a_request_shows_may_hold_more_than_json(office: Any) -> None:
    add(office, office.line("suspended", waits_for={"until": office.clock.now(), "broken": "\ud800"}))
    [run] = office.archive.runs_of("order:1")
    assert run.waits_for == {"until": str(office.clock.now()), "broken": "\ud800"}


def test_a_run_is_forgotten_when_nothing_has_happened_to_it_for_so_long(office: Any) -> None:
    office.archive = RunArchive(office.kept, keep_for=100)
    pruner = Pruner(office.archive, now=office.now)
    add(office, office.line("started"))
    office.clock.advance(99)
    add(office, office.line("completed"))
    office.clock.advance(99)
    assert pruner.tidy() == 0
    office.clock.advance(TIDY_EVERY)
    assert pruner.tidy() == 1
    assert (office.runs(), office.archive.runs_of("order:1")) == ([], [])


def test_nothing_of_a_forgotten_run_is_left(office: Any) -> None:
    add(office, office.line("started"), office.line("completed"))
    [entry] = office.archive.page(None, 10)
    assert office.archive.forget(entry)
    assert not office.archive.forget(entry)
    assert office.kept.load(entry.partition) == {}
    assert office.kept.load(archive._of("order:1")) == {}


def test_a_run_to_which_something_happens_meanwhile_is_not_forgotten(office: Any) -> None:
    add(office, office.line("failed"))
    [entry] = office.archive.page(None, 10)
    office.clock.advance(1)
    add(office, office.line("claimed", attempt=2))
    assert not office.archive.forget(entry)
    assert [run.attempts for run in office.archive.runs_of("order:1")] == [2]


def test_completed_runs_of_which_there_are_many_are_forgotten_sooner(office: Any) -> None:
    office.archive = RunArchive(office.kept, keep_for=1000, brief={"sweeps": 10})
    add(office, office.line("completed", "good", "r1", name="sweeps"))
    add(office, office.line("failed", "bad", "r2", name="sweeps"))
    add(office, office.line("completed", "order", "r3"))
    office.clock.advance(10)
    Pruner(office.archive, now=office.now).tidy()
    assert {run.workflow_id for run in office.runs()} == {"bad", "order"}


def test_beyond_their_number_the_oldest_are_forgotten(office: Any) -> None:
    office.archive = RunArchive(office.kept, max_runs=10)
    pruner = Pruner(office.archive, now=office.now)
    for line in office.many(25):
        add(office, line)
    for _ in range(6):
        pruner.tidy()
        office.clock.advance(TIDY_EVERY)
    assert [run.workflow_id for run in office.runs()] == [f"order:{number}" for number in range(24, 14, -1)]


def test_looks_that_come_at_once_forget_nothing(office: Any) -> None:
    office.archive = RunArchive(office.kept, keep_for=0)
    pruner = Pruner(office.archive, now=office.now)
    pruner.tidy()
    add(office, office.line("completed"))
    assert pruner.tidy() == 0


def test_a_damaged_record_is_named(office: Any) -> None:
    add(office, office.line("started"))
    [entry] = office.archive.page(None, 10)
    held = office.kept.get(entry.partition, "__run")
    assert office.kept.write_if_unchanged(entry.partition, "__run", held, {"__run": b"[]", "line/000000000": b"{}"})
    with pytest.raises(PersistenceError, match=entry.partition):
        add(office, office.line("claimed"))
    with pytest.raises(PersistenceError, match="line/000000000"):
        office.archive.lines(PastRun.of(entry))
