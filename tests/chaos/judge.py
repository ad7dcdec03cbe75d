"""The judge: what was promised, held against what is there once everything has settled.

outcome     each run has ended as its kind ends, with the right result
steps       the history tells of each step of a run exactly once
effects     each is in the ledger; none twice within one execution; a second one only where the execution that made the first
            was lost before it recorded it (its process, or its store), and under the same key, so that it counts once outside
signals     each failure and each question is on the bus exactly once; no consumer has left or buried a signal
schedule    no slot has two runs, and no run of one two effects
workers     none has ended by itself, and each takes messages
remains     after acknowledgement there is no partition, no index entry, no slot, no unknown key
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.destroyer import Struck
from tests.chaos.errands import kind_of
from tests.chaos.faults import QUEUES
from tests.chaos.field import Field
from tests.chaos.ledger import Line
from workers.history.telling import FAILED_TOPIC, SUSPENDED_TOPIC
from workers.limits.gate import SLOT_LEASE
from workflow import ExecutionRequest, WorkflowEngine, WorkflowStatus
from workflow.history import Happened, HistoryLine
from workflow.index import RunSummary
from workflow.store import IGNITIONS_LOG

__all__ = ["Judge"]

ENDINGS: dict[str, WorkflowStatus] = {"refused": WorkflowStatus.FAILED, "cancelled": WorkflowStatus.CANCELLED}
"""How a kind ends that does not complete."""
EFFECTS: dict[str, tuple[str, ...]] = {
    "chain": ("first", "last", "next", "very last"),
    "long": ("long",),
    "timer": ("after", "before"),
    "signal": ("after", "before"),
    "fork": ("fork", "join", "late", "left", "right"),
    "retry": ("after", "before"),
    "approval": ("after", "before"),
    "refused": ("before",),
    "cancelled": ("before",),
    "tick": ("tick",),
}
"""The effects of each kind, in the order of the alphabet."""
STEPS = {"chain": 2, "fork": 4, "approval": 1}
"""The steps of each kind before the last one, which is recorded with the end of the run; the others have none."""
SETTLED = (Happened.SUSPENDED, Happened.FAILED, Happened.STALLED, Happened.COMPLETED)
"""The lines with which an execution ends that was not lost."""

ENDS = (Happened.COMPLETED, Happened.CANCELLED)
"""The lines after which nothing follows."""

KNOWN_KEYS = re.compile(
    rb"jarvis:workflow:\{\d+\}:(log:|p:__schedule:)|jarvis:history:|\{jarvis:signals\}|jarvis:heartbeats|jarvis:knowledge"
    rb"|\{jarvis:limits\}:|jarvis:settled|jarvis:alerts:\{\d+\}:p:\tserver$"
)
"""Keys that outlive runs: logs, cursors of schedules, the archive, the bus, heartbeats, notes, the stream of ends, and when
the server took a write; slots are looked at apart."""
KNOWN_BROKER_KEYS = re.compile(
    rb"jarvis:broker:(_kombu\.binding|unacked|probe\.|segments\.malformed|sweeps\.malformed)|.*\.malformed"
)
"""Keys of the broker that are no message."""


def expected(workflow_id: str) -> Any:
    """The result of an errand that completes."""
    match kind_of(workflow_id):
        case "chain":
            return ["last", "very last"]
        case "timer":
            return ["after", False]
        case "signal":
            return f"to {workflow_id}"
        case "fork":
            return {"late": "late", "left": "left", "right": "right"}
        case "approval":
            return [{"to": "the first question"}, {"to": "the second question"}]
        case "retry":
            return "after"
        case kind:
            return kind


@dataclass
class Judge:
    """Looks at one field. ``faults`` are what is wrong, one line each."""

    field: Field
    wanted: list[str]
    faults: list[str] = field(default_factory=list[str])
    repeats: int = 0
    effects: int = 0
    recoveries: list[float] = field(default_factory=list[float])

    # --- has everything settled ---------------------------------------------------------------------------------------------

    def unsettled(self) -> list[str]:
        """The runs that have not ended, as far as can be seen."""
        entries = {entry.partition: entry for entry in self._entries()}
        missing = [workflow_id for workflow_id in self.wanted if workflow_id not in entries]
        return [
            *(f"{workflow_id} is not there" for workflow_id in missing),
            *(f"{entry}" for entry in entries.values() if not self._has_ended(entry)),
        ]

    def _has_ended(self, entry: Any) -> bool:
        if entry.status == WorkflowStatus.FAILED.value:
            return entry.due is None
        return entry.status in (WorkflowStatus.COMPLETED.value, WorkflowStatus.CANCELLED.value)

    def _entries(self) -> Iterator[Any]:
        after = None
        while page := self.field.direct.runtime.store.find(limit=500, after=after):
            yield from page
            after = page[-1]

    # --- what has become of it ----------------------------------------------------------------------------------------------

    def look(self, struck: list[Struck], returns: list[float]) -> None:
        """Judge all that does not need the processes to be gone."""
        while not self.field.direct.runtime.relay.pass_on():
            pass
        ledger: dict[str, list[Line]] = defaultdict(list)
        for line in self.field.ledger.lines():
            ledger[line.workflow_id].append(line)
        ticks = [entry.partition for entry in self._entries() if entry.name == "chaos-tick"]
        for workflow_id in [*self.wanted, *ticks]:
            history = self.field.direct.history(workflow_id)
            self._outcome(workflow_id)
            self._steps(workflow_id, history)
            self._effects(workflow_id, history, ledger[workflow_id])
            if kind_of(workflow_id) != "long":
                self._measure(history, ledger[workflow_id], struck, returns)
        self._signals()
        self._schedule()
        self.faults += self.field.troop.surprises

    def _outcome(self, workflow_id: str) -> None:
        store, runtime = self.field.direct.runtime.store, self.field.direct.runtime
        entry = store.entry(workflow_id)
        wanted = ENDINGS.get(kind_of(workflow_id), WorkflowStatus.COMPLETED)
        if entry is None or entry.status != wanted.value:
            self.faults.append(f"{workflow_id} should be {wanted.value}: {entry}")
            return
        if wanted is WorkflowStatus.COMPLETED:
            definition = runtime.definition(entry.name, workflow_id)
            request = ExecutionRequest.resume(expected_run_id=RunSummary.of(entry).run_id)
            result = definition.run(request).execution.result
            if result != expected(workflow_id):
                self.faults.append(f"{workflow_id} has the result {result!r}")

    def _steps(self, workflow_id: str, history: list[HistoryLine]) -> None:
        steps = [line.step for line in history if line.kind is Happened.STEP]
        if len(steps) != STEPS.get(kind_of(workflow_id), 0) or len(set(steps)) != len(steps):
            self.faults.append(f"{workflow_id} has recorded the steps {steps}")
        ends = [line.kind.value for line in history if line.kind in ENDS]
        if len(ends) != (0 if kind_of(workflow_id) == "refused" else 1):
            self.faults.append(f"{workflow_id} has ended so often: {ends}")

    def _effects(self, workflow_id: str, history: list[HistoryLine], lines: list[Line]) -> None:
        made = [line for line in lines if line.kind == "effect"]
        names = {line.key: line.name for line in made}
        if tuple(sorted(names.values())) != EFFECTS[kind_of(workflow_id)]:
            self.faults.append(f"{workflow_id} has the effects {sorted(names.values())}")
        for (key, attempt), times in Counter((line.key, line.attempt) for line in made).items():
            if times > 1:
                self.faults.append(f"{workflow_id}: {names[key]!r} was made {times} times in execution {attempt}")
        settled = _settled(history)
        for key, name in names.items():
            attempts = sorted(line.attempt for line in made if line.key == key)
            self.effects += 1
            self.repeats += len(attempts) - 1
            kept = [attempt for attempt in attempts[:-1] if attempt in settled]
            if kept:
                self.faults.append(f"{workflow_id}: {name!r} was made again, though execution {kept} was not lost")

    def _measure(self, history: list[HistoryLine], lines: list[Line], struck: list[Struck], returns: list[float]) -> None:
        """How long it took until a run went on whose process was struck, from when anybody could go on.

        A run whose kind is limited waits for a slot besides, and is left out.
        """
        claims = {line.attempt: line.at for line in history if line.kind is Happened.CLAIMED}
        last = {line.attempt: line.at for line in history}
        settled = _settled(history)
        for segment in (line for line in lines if line.kind == "segment"):
            following = claims.get(segment.attempt + 1)
            if following is None or segment.attempt in settled:
                continue
            begun = max(segment.at, last.get(segment.attempt, 0))
            blows = [blow.at for blow in struck if segment.pid in blow.pids and begun <= blow.at <= following]
            if blows:
                could = max([blows[0], *(at for at in returns if blows[0] < at < following)])
                self.recoveries.append(following - could)

    def _signals(self) -> None:
        bus, kinds = self.field.direct.runtime.signals, Counter(kind_of(workflow_id) for workflow_id in self.wanted)
        for topic, wanted in ((FAILED_TOPIC, kinds["refused"]), (SUSPENDED_TOPIC, 2 * kinds["approval"])):
            told = self._told(topic)
            if len(told) != wanted:
                self.faults.append(f"{len(told)} signals of {topic}, not {wanted}: {sorted(told)}")
        for group in bus.groups():
            self.faults += [f"a dead letter of {group.name}: {letter}" for letter in bus.dead_letters(group.name)]

    def _told(self, topic: str) -> list[str]:
        bus, told, position = self.field.direct.runtime.signals, list[str](), None
        while page := bus.read((topic,), position):
            told += [signal.id for signal in page]
            position = page.position
        return told

    def is_heard(self) -> bool:
        """Whether the consumers of the bus are done with all that they took, or put off."""
        groups = self.field.direct.runtime.signals.groups()
        return all(group.pending + group.retrying == 0 for group in groups)

    def queues_are_empty(self) -> bool:
        """Whether the workers have taken all messages."""
        return not any(self.field.broker.llen(queue) for queue in QUEUES)

    def _schedule(self) -> None:
        for name in ("chaos-tick", "watchdog"):
            entries = self.field.direct.runtime.store.read_log(f"{IGNITIONS_LOG}{name}", limit=1000)
            twice = [one for one, times in Counter(entry.data for entry in entries).items() if times > 1]
            if twice or not entries:
                self.faults.append(f"of {len(entries)} slots of {name} these began twice: {twice}")

    # --- what is left -------------------------------------------------------------------------------------------------------

    def look_at_remains(self, rested: float) -> None:
        """Acknowledge everything, and look at what is left. Only when the processes have gone."""
        store = self.field.direct.runtime.store
        engine = WorkflowEngine(store)
        for entry in list(self._entries()):
            if entry.status == WorkflowStatus.FAILED.value:
                engine.abandon(entry.partition, RunSummary.of(entry).run_id)
            else:
                engine.acknowledge(entry.partition, RunSummary.of(entry).run_id)
        self.faults += [f"left behind: {key!r}" for key in self.field.redis.scan_iter(count=1000) if not KNOWN_KEYS.match(key)]
        messages = [key for key in self.field.broker.scan_iter(count=1000) if not KNOWN_BROKER_KEYS.match(key)]
        self.faults += [f"left on the broker: {key!r}" for key in messages]
        for key in self.field.redis.scan_iter(b"{jarvis:limits}:*"):
            for holder, end in self.field.redis.zrange(key, 0, -1, withscores=True):
                if end / 1000 > rested + SLOT_LEASE:
                    self.faults.append(f"slot of {holder!r} was taken after the last fault, and not given back")

    def text(self) -> str:
        """What is wrong, for people."""
        return json.dumps(self.faults, indent=1)


def _settled(history: list[HistoryLine]) -> set[int]:
    """The executions that were not lost. One that could not reach its store any more is lost, even if it could say so later."""
    return {line.attempt for line in history if line.kind in SETTLED and not (line.error or "").endswith("UnreachableError")}
