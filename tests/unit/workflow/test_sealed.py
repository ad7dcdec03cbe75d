"""Sealed records: nobody without a key reads or makes one, none can be moved, and the engine runs on them as on any other."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence import InMemoryPersistence, PersistenceError
from workflow import (
    Event,
    ExecutionRequest,
    JsonSerializer,
    ParallelEvent,
    PickleSerializer,
    SealedSerializer,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    Workflow,
    WorkflowEngine,
    WorkflowState,
    await_event,
    branch_id,
    interrupt,
    memoize,
)
from workflow.history import HISTORY_LOG, read_line
from workflow.records import CONTROL
from workflow.store import IGNITIONS_LOG

OLD, NEW, OTHER = bytes(range(32)), bytes(range(1, 33)), bytes(32)
PLACE = b"w\x00key"
SECRET = "flour-for-mill-lane"
ROUNDS = 12
FOLD_AFTER = 4
LEASE = 60


def sealing(**keys: bytes) -> SealedSerializer:
    """A codec with these keys, the first of which seals."""
    return SealedSerializer(JsonSerializer(), keys or {"old": OLD})


# --- one record -------------------------------------------------------------------------------------------------------------


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.binary(), st.lists))
def test_a_value_comes_back_and_is_not_to_be_read(value):
    codec = sealing()
    sealed = codec.dumps([SECRET, value], context=PLACE)
    assert codec.loads(sealed, context=PLACE) == [SECRET, value]
    assert SECRET.encode() not in sealed


def test_each_record_has_a_nonce_of_its_own():
    codec = sealing()
    assert len({codec.dumps(None, context=PLACE) for _ in range(100)}) == 100


def test_the_nonce_is_96_random_bits():
    asked = []

    def noted(count: int) -> bytes:
        asked.append(count)
        return b"n" * count

    codec = SealedSerializer(JsonSerializer(), {"old": OLD}, random_bytes=noted)
    assert codec.dumps(None, context=PLACE).startswith(b"sealed:1:old:" + b"n" * 12)
    assert asked == [12]


def test_without_a_place_equal_values_are_sealed_alike_so_that_they_can_be_compared():
    codec = sealing()
    assert codec.dumps([SECRET]) == codec.dumps([SECRET]) != codec.dumps([SECRET, 1])
    assert codec.dumps([SECRET]) != sealing(new=NEW).dumps([SECRET])
    assert SECRET.encode() not in codec.dumps([SECRET])
    assert codec.loads(codec.dumps([SECRET])) == [SECRET]


def test_the_first_key_seals_and_all_open():
    before, after = sealing(old=OLD), sealing(new=NEW, old=OLD)
    assert after.loads(before.dumps(1, context=PLACE), context=PLACE) == 1
    assert after.dumps(1, context=PLACE).startswith(b"sealed:1:new:")
    with pytest.raises(PersistenceError, match="sealed with key 'new', which is not among the keys: add it"):
        before.loads(after.dumps(1, context=PLACE), context=PLACE)


def test_a_record_is_bound_to_its_place():
    codec = sealing()
    sealed = codec.dumps(1, context=PLACE)
    for elsewhere in (b"", b"w\x00other", b"v\x00key", PLACE + b"\x00", PLACE[1:]):
        with pytest.raises(PersistenceError, match="does not open with key 'old'"):
            codec.loads(sealed, context=elsewhere)


def test_every_changed_bit_and_every_cut_is_refused():
    codec = sealing(old=OLD, olD=NEW)
    sealed = codec.dumps(1, context=PLACE)
    flipped = [
        sealed[:place] + bytes([byte ^ (1 << bit)]) + sealed[place + 1 :]
        for place, byte in enumerate(sealed)
        for bit in range(8)
    ]
    cut = [sealed[:length] for length in range(len(sealed))]
    for forged in (*flipped, *cut, sealed + b"\x00", sealed[:20], b"\x00" * 100):
        with pytest.raises(PersistenceError, match=r"not sealed|not among the keys|does not open"):
            codec.loads(forged, context=PLACE)


def test_another_key_of_the_same_id_does_not_open():
    with pytest.raises(PersistenceError, match="another key has this id"):
        sealing(old=NEW).loads(sealing(old=OLD).dumps(1, context=PLACE), context=PLACE)


def test_a_record_that_was_never_sealed_is_refused_whatever_it_holds():
    for plain in (
        JsonSerializer().dumps({"v": 1}),
        b"",
        b"sealed:1:",
        b"sealed:2:old:" + bytes(40),
        PickleSerializer().dumps(1),
    ):
        with pytest.raises(PersistenceError, match="not sealed"):
            sealing().loads(plain, context=PLACE)


def test_an_error_of_the_inner_codec_passes_through():
    codec = SealedSerializer(PickleSerializer(), {"old": OLD})
    with pytest.raises(PersistenceError, match="cannot be decoded"):
        sealing().loads(codec.dumps(1, context=PLACE), context=PLACE)


WRONG_KEYS: dict[str, tuple[dict[str, bytes], str]] = {
    "none": ({}, "no key to seal with: give at least one"),
    "short": ({"old": b"hidden"}, "key 'old' has 6 bytes, not 32"),
    "second": ({"old": OLD, "new": b"hidden"}, "key 'new' has 6 bytes"),
    "empty id": ({"": OLD}, "is not a key id"),
    "colon": ({"a:b": OLD}, "is not a key id"),
    "long id": ({"a" * 65: OLD}, "is not a key id"),
    "line": ({"a\n": OLD}, "is not a key id"),
}


@pytest.mark.parametrize("keys", WRONG_KEYS)
def test_keys_that_are_none_are_refused_without_being_shown(keys):
    given, message = WRONG_KEYS[keys]
    with pytest.raises(ValueError, match=message) as caught:
        SealedSerializer(JsonSerializer(), given)
    assert "hidden" not in str(caught.value)


def test_what_the_inner_codec_can_do_beyond_the_protocol_is_there():
    inner = JsonSerializer()
    assert SealedSerializer(inner, {"old": OLD}).admit == inner.admit
    assert getattr(SealedSerializer(PickleSerializer(), {"old": OLD}), "admit", None) is None


def test_without_the_package_the_name_says_which_extra_is_missing():
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import workflow\n"
        "try: workflow.SealedSerializer\n"
        "except ImportError as missing: print(missing)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "SealedSerializer needs the package 'cryptography': pip install 'jarvis-mesh[sealed]'\n"


# --- the engine -------------------------------------------------------------------------------------------------------------


class Ordered(StartEvent):
    item: str = SECRET


class Round(Event):
    number: int = 0
    item: str = SECRET


class Sides(ParallelEvent):
    item: str = SECRET


class Side(Event):
    item: str = SECRET


class Asked(Event):
    item: str = SECRET


def begin(event: Ordered, state: WorkflowState) -> Round:
    state.set("stays", [SECRET] * 40)
    return Round()


def turn(event: Round, state: WorkflowState) -> Round | Sides:
    state.set("number", [event.number, memoize("paid", lambda: f"{SECRET} {event.number}")])
    if event.number < ROUNDS:
        return Round(number=event.number + 1)
    return Sides(branches={"quick": Side(), "asking": Side()})


def side(event: Side, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("side") if branch_id() == "asking" else memoize("paid", lambda: SECRET))


def join(event: Sides, state: WorkflowState) -> Asked:
    return Asked(item=f"{event.get_result('quick')} {event.get_result('asking')}")


def ask(event: Asked, state: WorkflowState) -> StopEvent:
    return StopEvent([event.item, await_event("end"), state.get("number")])


NODES = (begin, turn, side, join, ask)
RESULT = [f"{SECRET} {{'answer': '{SECRET}'}}", {"answer": SECRET}, [ROUNDS, f"{SECRET} {ROUNDS}"]]


@pytest.fixture(autouse=True)
def folding_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.path.FOLD_AFTER", FOLD_AFTER)


@pytest.fixture
def inner() -> InMemoryPersistence:
    return InMemoryPersistence()


@pytest.fixture
def process(recording, inner, clock):
    """Return what makes a workflow as a new process would, with its keys."""

    def make(workflow_id: str = "w", persistence: Any = None, serializer: Any = None, **keys: bytes) -> Workflow:
        return Workflow(
            workflow_id,
            nodes=NODES,
            start_event=Ordered(),
            persistence=persistence or recording(inner),
            serializer=serializer or sealing(**keys),
            clock=clock,
            lease_timeout=LEASE,
            lease_renewal=False,
            retain_completion=True,
            history=True,
        )

    return make


def everything(store: InMemoryPersistence) -> bytes:
    """All that a store holds of run `w` and in its logs."""
    entries = [entry.data for log in (HISTORY_LOG, IGNITIONS_LOG + "Workflow") for entry in store.read_log(log, limit=1000)]
    return b"\n".join([repr(store.entry("w")).encode(), *entries, *store.load("w").values()])


def answer(name: str) -> ExecutionRequest:
    return ExecutionRequest.signal(name, {"answer": SECRET})


def test_a_run_is_started_folded_taken_over_forked_answered_and_retained_while_its_keys_are_changed(
    process, recording, inner, clock, process_death
):
    seen = [b""]
    dying = recording(inner)
    dying.die_at(ROUNDS, "after")
    with pytest.raises(process_death):
        process(persistence=dying, old=OLD).run()
    seen.append(everything(inner))
    clock.advance(LEASE + 1)
    assert process(new=NEW, old=OLD).run(ExecutionRequest.resume()).is_interrupted()
    seen.append(everything(inner))
    assert any(key.endswith("__base") for key in inner.load("w"))
    assert process(third=OTHER, new=NEW, old=OLD).run(answer("side")).is_interrupted()
    seen.append(everything(inner))
    assert process(third=OTHER, new=NEW, old=OLD).run(answer("end")).execution.result == RESULT
    seen.append(everything(inner))
    assert process(third=OTHER, old=OLD).inspect().status.value == "completed"
    assert [SECRET.encode() in each for each in seen] == [False] * 5
    assert {b"sealed:1:%b:" % key in b"".join(seen) for key in (b"old", b"new", b"third")} == {True}


def test_its_result_is_that_of_a_run_in_clear(process, inner):
    clear = process("clear", serializer=JsonSerializer())
    for request in (ExecutionRequest.start(), answer("side"), answer("end")):
        state = clear.run(request)
    assert state.execution.result == RESULT
    assert SECRET.encode() in b"".join(inner.load("clear").values())


def test_a_step_writes_only_what_it_changed(process, inner):
    process().run()
    records = inner.load("w")
    steps = {
        key: sealing().loads(data, context=f"w\x00{key}".encode())
        for key, data in records.items()
        if key.rpartition("/")[2].startswith("turn-") and "::" not in key
    }
    assert steps
    assert all("stays" not in str(step) for step in steps.values())


def test_the_history_is_read_without_keys_and_tells_nothing_from_within_the_run(process, inner, define):
    class Asked(WaitForEventRequest):
        secret: str

        def metadata(self):
            return {"secret": self.secret}

    def ask(event: Ordered, state: WorkflowState) -> StopEvent:
        interrupt(Asked("end", secret=SECRET))
        raise ValueError(SECRET)

    asking = process().reconfigure(nodes=[ask])
    asking.run()
    with pytest.raises(ValueError, match=SECRET):
        asking.run(answer("end"))

    entries = inner.read_log(HISTORY_LOG, limit=1000)
    lines = [read_line(entry) for entry in entries]
    assert [line.kind.value for line in lines] == ["started", "suspended", "claimed", "failed"]
    assert (lines[-1].error, lines[-1].message) == ("ValueError", None)
    assert set(lines[1].waits_for) >= {"eventName", "secret"}
    assert not any(SECRET.encode() in entry.data for entry in entries)
    assert asking.inspect().failure.message == SECRET


def test_a_record_of_another_run_or_key_is_refused_and_is_never_absent(process, inner):
    for workflow_id in ("w", "v"):
        process(workflow_id).run(ExecutionRequest.start(run_id="r"))
    ours, theirs = inner.load("w"), inner.load("v")
    assert set(ours) == set(theirs)
    unread = set()
    for key in ours:
        for other in (theirs[key], next(data for place, data in ours.items() if place != key)):
            put(inner, "w", {**ours, key: other})
            refused = refusal(process)
            if refused is None:
                # Nobody asked for it: the run ends as if it had not been touched.
                assert process().run(ExecutionRequest.resume()).execution.result == RESULT
                unread.add(key)
            else:
                assert f"record {key!r} of workflow 'w': a record does not open" in str(refused)
    assert {key.partition("::")[1] or key for key in unread} == {"::", "r/__checkpoint"}


def refusal(process) -> PersistenceError | None:
    """Go to the end of the run, or to what is refused on the way."""
    try:
        process().run(answer("side"))
        process().run(answer("end"))
    except PersistenceError as refused:
        return refused
    return None


def put(store: InMemoryPersistence, partition: str, records: dict[str, bytes]) -> None:
    """Put records in the place of a partition's, as somebody might who can write to the store."""
    held = store.load(partition)
    assert store.write_if_unchanged(partition, CONTROL, held[CONTROL], records, held)


def test_an_engine_without_the_key_or_without_sealing_says_so(process, inner):
    process().run()
    before = inner.load("w")
    with pytest.raises(PersistenceError, match=r"record '__control' .*sealed with key 'old', which is not among the keys"):
        process(new=NEW).run()
    with pytest.raises(PersistenceError, match="key 'old'"):
        WorkflowEngine(inner, sealing(new=NEW)).inspect("w")
    with pytest.raises(PersistenceError, match="corrupt or of another codec"):
        WorkflowEngine(inner).inspect("w")
    assert inner.load("w") == before
