"""The archive of runs: one partition for each, named so that listings begin with the newest.

partition                  key          what                                                    written
<inverted start>-<digest>  __run        the run in short, and what was last merged into it      with every merge; the condition
                           line/<n>     its n-th line; of many the first and the last are kept  with the merge that brings it
of-<digest>                __runs       the runs of one workflow id, oldest first               before a run's first merge
relay                      __position   up to where the log has been read                       when a page of it is done

The digests are of workflow id and run id, and of the workflow id, since stores bound the length of a partition's name.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from persistence import IndexEntry, Persistence, PersistenceError
from workers.history.past import PastRun
from workflow.history import HistoryLine

__all__ = ["FIRST_LINES", "KEEP_FOR", "LAST_LINES", "MAX_RUNS", "PastPage", "Query", "RunArchive"]

KEEP_FOR = 90 * 24 * 3600.0
"""Seconds for which a run is remembered after the last thing that happened to it."""
MAX_RUNS = 100_000
"""Runs that are remembered, about; the oldest go first."""
FIRST_LINES = 100
LAST_LINES = 400
"""Lines of one run that are kept: so many from its beginning, so many from its end."""
RUNS_OF_ONE = 100
"""Runs of one workflow id that can be found by it; the oldest go first."""
SCAN_LIMIT = 5000
"""Runs that one query looks at for what no index knows; its page says where to go on."""
PAGE = 200

RUN, RUNS, POSITION = "__run", "__runs", "__position"
RELAY = "relay"
_LATEST = 10**15
"""Milliseconds from which starts are counted down."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which runs are wanted. Moments are Unix seconds of the start; ``until`` is not within.

    ``text`` is looked for in workflow id, run id, name, tag, step and error, whatever its case. Runs whose ``without`` is
    true are left out.
    """

    name: str | None = None
    status: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None
    without: Callable[[PastRun], bool] | None = None

    def wants(self, run: PastRun) -> bool:
        """Whether a run is wanted."""
        if self.without is not None and self.without(run):
            return False
        known = (
            (self.name is None or run.name == self.name)
            and (self.status is None or run.status == self.status)
            and (self.tag is None or run.tag == self.tag)
            and (self.since is None or run.started >= self.since)
            and (self.until is None or run.started < self.until)
        )
        return known and (self.text is None or self.text.casefold() in _searched(run))


class PastPage(list[PastRun]):
    """Runs that were found, newest start first. ``after`` is where the next page begins; None when this was the last."""

    def __init__(self, runs: Sequence[PastRun] = (), after: IndexEntry | None = None) -> None:
        super().__init__(runs)
        self.after = after


@dataclass(frozen=True, slots=True)
class _Held:
    """What the archive holds of one run: its condition as bytes, and what they say."""

    data: bytes
    run: PastRun
    page: str
    last: str


class RunArchive:
    """The archive in a store of its own prefix. Blocking.

    ``brief`` names definitions whose completed runs are remembered for so many seconds only: there are many, and all alike.
    """

    def __init__(
        self,
        persistence: Persistence,
        *,
        keep_for: float = KEEP_FOR,
        max_runs: int = MAX_RUNS,
        brief: Mapping[str, float] | None = None,
    ) -> None:
        self._persistence = persistence
        self._keep_for = keep_for
        self._brief = dict(brief or {})
        self.max_runs = max_runs

    # --- what the relay does ------------------------------------------------------------------------------------------------

    def position(self) -> str | None:
        """Up to where the log has been merged; None before the first page."""
        held = self._persistence.get(RELAY, POSITION)
        return None if held is None else held.decode()

    def move(self, before: str | None, behind: str) -> bool:
        """A page of the log is done. False when somebody else has moved on from there."""
        data = behind.encode()
        if before is None:
            return self._persistence.initialize_if_absent(RELAY, POSITION, data)
        return self._persistence.write_if_unchanged(RELAY, POSITION, before.encode(), {POSITION: data})

    def merge(self, lines: Sequence[HistoryLine], page: str | None) -> bool:
        """Add the lines of one run, in the order of their writing, which stand in the page of the log behind ``page``.

        What was added before is passed over, so that a page may be merged again, also by several at once. False when the
        page was done meanwhile: then nothing of it is to be added any more.
        """
        partition = _partition(lines[0])
        while True:
            held = self._held(partition)
            # In this order: whoever is done with the page changes the run first, so that the write below fails.
            if self.position() != page:
                return False
            if held is None:
                self._note(lines[0].workflow_id, lines[0].run_id, lines[0].started)
            new = list(lines) if held is None else _unmerged(lines, held, _digest(page))
            if not new or self._add(partition, held, new, _digest(page)):
                return True

    def _add(self, partition: str, held: _Held | None, new: Sequence[HistoryLine], page: str) -> bool:
        before = 0 if held is None else held.run.lines
        run = PastRun.begun(new[0]) if held is None else held.run
        for line in new:
            run = run.moved_on(line)
        condition = _json({"run": run.to_record(), "page": page, "last": _identity(new[-1])})
        wanted = [(before + place, line) for place, line in enumerate(new) if _is_kept(before + place, run.lines)]
        records = {_line_key(number): _json(line.to_record()) for number, line in wanted}
        if held is None:
            return self._persistence.initialize_if_absent(partition, RUN, condition, records, self._entry(partition, run))
        behind_last = range(max(FIRST_LINES, before - LAST_LINES), min(before, run.lines - LAST_LINES))
        gone = [_line_key(number) for number in behind_last]
        changed = {**records, RUN: condition}
        return self._persistence.write_if_unchanged(partition, RUN, held.data, changed, gone, self._entry(partition, run))

    def _entry(self, partition: str, run: PastRun) -> IndexEntry:
        brief = self._brief.get(run.name) if run.status == "completed" else None
        keep_for = self._keep_for if brief is None else min(brief, self._keep_for)
        return IndexEntry(partition, run.at + keep_for, run.name, run.status, run.tag, run.to_summary())

    def _note(self, workflow_id: str, run_id: str, started: float) -> None:
        """Make a run known under its workflow id."""
        one = (started, run_id)
        self._change_runs(workflow_id, lambda runs: runs if one in runs else sorted([*runs, one])[-RUNS_OF_ONE:])

    # --- what readers ask ---------------------------------------------------------------------------------------------------

    def find(self, query: Query, *, limit: int = 100, after: IndexEntry | None = None) -> PastPage:
        """The runs that are wanted, newest start first. ``after`` is that of the page before.

        Name, status, tag and time are indexed; for what else is asked `SCAN_LIMIT` runs are looked at in one call.
        """
        found: list[PastRun] = []
        reached = after
        for seen, entry in enumerate(self._newest(query, after), 1):
            run = PastRun.of(entry)
            if query.since is not None and run.started < query.since:
                return PastPage(found)
            reached = entry
            if query.wants(run):
                found.append(run)
            if len(found) >= limit or seen >= SCAN_LIMIT:
                return PastPage(found, reached)
        return PastPage(found)

    def _newest(self, query: Query, after: IndexEntry | None) -> Iterator[IndexEntry]:
        if after is None and query.until is not None:
            after = IndexEntry(_place(query.until))
        while page := self._persistence.find(name=query.name, status=query.status, tag=query.tag, limit=PAGE, after=after):
            yield from page
            after = page[-1]

    def runs_of(self, workflow_id: str) -> list[PastRun]:
        """The remembered runs of one workflow id, newest first."""
        places = (_place_of(workflow_id, run_id, started) for started, run_id in reversed(self._runs(workflow_id)[1]))
        found = [self._held(partition) for partition in places]
        return [held.run for held in found if held is not None]

    def holds(self, workflow_id: str, run_id: str) -> bool:
        """Whether this run is remembered."""
        return any(run_id == noted for _, noted in self._runs(workflow_id)[1])

    def lines(self, run: PastRun) -> list[HistoryLine]:
        """What was told of a run, oldest first; of a long one the middle is missing. Empty when it is forgotten."""
        partition = _place_of(run.workflow_id, run.run_id, run.started)
        records = self._persistence.load(partition)
        return [_line(partition, key, records[key]) for key in sorted(records) if key.startswith("line/")]

    # --- forgetting ---------------------------------------------------------------------------------------------------------

    def due(self, now: float, limit: int) -> list[IndexEntry]:
        """Runs whose time is over."""
        return self._persistence.due(now, limit)

    def page(self, after: IndexEntry | None, limit: int) -> list[IndexEntry]:
        """All runs, newest start first, damaged ones too."""
        return self._persistence.find(limit=limit, after=after)

    def forget(self, entry: IndexEntry) -> bool:
        """Forget a run. False when something has just happened to it, or somebody else was faster."""
        condition = self._persistence.get(entry.partition, RUN)
        if condition is None or self._persistence.entry(entry.partition) != entry:
            return False
        # First from the list: what is noted there of a run that has gone would stay for ever.
        run = self._unnoted(entry)
        if self._persistence.delete_if_unchanged(entry.partition, RUN, condition):
            return True
        if run is not None and self._persistence.get(entry.partition, RUN) is not None:
            self._note(run.workflow_id, run.run_id, run.started)
        return False

    def _unnoted(self, entry: IndexEntry) -> PastRun | None:
        try:
            run = PastRun.of(entry)
        except PersistenceError:
            return None  # it is damaged, and nobody can say whose it was
        one = (run.started, run.run_id)
        self._change_runs(run.workflow_id, lambda runs: [other for other in runs if other != one])
        return run

    # --- records ------------------------------------------------------------------------------------------------------------

    def _held(self, partition: str) -> _Held | None:
        data = self._persistence.get(partition, RUN)
        if data is None:
            return None
        try:
            record = cast(dict[str, Any], json.loads(data))
            return _Held(data, PastRun.from_record(record["run"]), record["page"], record["last"])
        except (AttributeError, KeyError, TypeError, ValueError) as trouble:
            raise _corrupt(partition, RUN, trouble) from trouble

    def _runs(self, workflow_id: str) -> tuple[bytes | None, "_Runs"]:
        partition = _of(workflow_id)
        data = self._persistence.get(partition, RUNS)
        try:
            return data, [] if data is None else [(started, run_id) for started, run_id in json.loads(data)["runs"]]
        except (KeyError, TypeError, ValueError) as trouble:
            raise _corrupt(partition, RUNS, trouble) from trouble

    def _change_runs(self, workflow_id: str, change: Callable[["_Runs"], "_Runs"]) -> None:
        while True:
            data, runs = self._runs(workflow_id)
            changed = change(runs)
            if changed == runs or self._write_runs(_of(workflow_id), data, changed):
                return

    def _write_runs(self, partition: str, before: bytes | None, runs: "_Runs") -> bool:
        data = _json({"runs": runs})
        if before is None:
            return self._persistence.initialize_if_absent(partition, RUNS, data)
        if not runs:
            return self._persistence.delete_if_unchanged(partition, RUNS, before)
        return self._persistence.write_if_unchanged(partition, RUNS, before, {RUNS: data})


_Runs = list[tuple[float, str]]
"""The runs of one workflow id: when each started, and its run id."""


def _unmerged(lines: Sequence[HistoryLine], held: _Held, page: str) -> list[HistoryLine]:
    """Those of a page's lines that the archive does not hold yet."""
    for place in range(len(lines), 0, -1):
        if _identity(lines[place - 1]) == held.last:
            return list(lines[place:])
    # Somebody else has read the same page when it was longer, or no line of it is here.
    return [] if held.page == page else list(lines)


def _is_kept(number: int, lines: int) -> bool:
    return number < FIRST_LINES or number >= lines - LAST_LINES


def _partition(line: HistoryLine) -> str:
    return _place_of(line.workflow_id, line.run_id, line.started)


def _place_of(workflow_id: str, run_id: str, started: float) -> str:
    both = f"{workflow_id}\x00{run_id}"
    return f"{_place(started)}-{_digest(both)}"


def _place(started: float) -> str:
    """What the partitions of runs begin with that started then: the later, the smaller, and smaller than any that is longer."""
    return f"{_LATEST - 1 - int(started * 1000):015d}"


def _of(workflow_id: str) -> str:
    return f"of-{_digest(workflow_id)}"


def _line_key(number: int) -> str:
    return f"line/{number:09d}"


def _identity(line: HistoryLine) -> str:
    """What no two lines of one run have in common."""
    return _digest(_json(line.to_record()).decode())


def _digest(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()[:32]


def _json(value: Any) -> bytes:
    # What a request shows may hold more than JSON knows; here it is for people only.
    return json.dumps(value, default=str, separators=(",", ":")).encode()


def _line(partition: str, key: str, data: bytes) -> HistoryLine:
    try:
        return HistoryLine.from_record(json.loads(data))
    except (KeyError, TypeError, ValueError) as trouble:
        raise _corrupt(partition, key, trouble) from trouble


def _corrupt(partition: str, key: str, trouble: Exception) -> PersistenceError:
    return PersistenceError(f"record {key!r} of {partition!r} in the history is corrupt ({trouble}): delete its partition")


def _searched(run: PastRun) -> str:
    parts = (run.workflow_id, run.run_id, run.name, run.tag, run.step, run.error, run.message)
    return "\n".join(part for part in parts if part).casefold()
