"""Runs that were written by the first release must load, go on and complete for ever.

Each file in `samples` is one partition of record version 1, as it lay in the store: its records as JSON, and its index entry.
They are frozen. A test that fails here means that a stored shape has changed: give it a new version and add samples of that
beside these.
"""

import datetime as dt
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field

from persistence import IndexEntry, InMemoryPersistence, PersistenceError
from workflow import (
    Action,
    ApprovalRequest,
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ManualClock,
    Node,
    ParallelEvent,
    RefusalReason,
    StopEvent,
    WaitForEventRequest,
    Workflow,
    WorkflowEngine,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
)
from workflow.index import RunSummary, make_due, postpone
from workflow.path import FOLD_AFTER

SAMPLES = Path(__file__).with_name("samples") / "v1"
NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


# --- the definitions that wrote them ----------------------------------------------------------------------------------------


class Item(BaseModel):
    type_name: ClassVar[str] = "samples.Item"

    article: str
    price: Decimal


class OrderPlaced(Event):
    type_name: ClassVar[str] = "samples.OrderPlaced"

    number: int
    placed: dt.date
    items: tuple[Item, ...]


class Priced(Event):
    type_name: ClassVar[str] = "samples.Priced"

    total: Decimal


class Approved(Event):
    type_name: ClassVar[str] = "samples.Approved"

    by: str


class Counted(Event):
    type_name: ClassVar[str] = "samples.Counted"

    number: int = 0


class Split(ParallelEvent):
    type_name: ClassVar[str] = "samples.Split"


class AskBuyer(Event):
    type_name: ClassVar[str] = "samples.AskBuyer"


class AskSeller(Event):
    type_name: ClassVar[str] = "samples.AskSeller"


class CarrierRequest(WaitForEventRequest):
    """A request of the application's own."""

    type_name: ClassVar[str] = "samples.CarrierRequest"

    region: str


class OrderState(WorkflowState):
    type_name: ClassVar[str] = "samples.OrderState"

    total: Decimal = Decimal(0)
    labels: set[str] = Field(default_factory=set[str])


class Price(Node):
    step_name = "price"

    def __call__(self, event: OrderPlaced, state: OrderState) -> Priced:
        rate = self.memoize("rate", lambda: Decimal("1.1"))
        state.total = sum((item.price for item in event.items), Decimal(0)) * rate
        state["seen"] = {"at": NOON, "tags": ["a", None, 1.5], 7: "number"}
        return Priced(total=state.total)


class Approve(Node):
    step_name = "approve"

    def __call__(self, event: Priced, state: OrderState) -> Approved:
        self.memoize("quote", lambda: {"offer": event.total, "$": "dollar"})
        deadline = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
        answer = self.interrupt(ApprovalRequest("Ship it?", [Action("ship", "Ship", "all of it")], deadline))
        carrier = self.interrupt(CarrierRequest("carrier", region="EU"))
        state.labels = {answer["by"], carrier["name"]}
        state.delete("seen")
        return Approved(by=answer["by"])


class Ship(Node):
    step_name = "ship"

    def __init__(self, broken: bool) -> None:
        self.broken = broken

    def __call__(self, event: Approved, state: OrderState) -> StopEvent:
        if self.broken:
            raise ConnectionError("the carrier does not answer")
        return StopEvent({"by": event.by, "total": state.total, "labels": sorted(state.labels)})


class Count(Node):
    step_name = "count"

    def __call__(self, event: Counted, state: OrderState) -> Counted | StopEvent:
        state["last"] = event.number
        state[f"key {event.number % 3}"] = event.number
        if event.number == FOLD_AFTER + 2:
            self.await_event("go on")
        return Counted(number=event.number + 1) if event.number < FOLD_AFTER + 4 else StopEvent(state["last"])


class Fork(Node):
    step_name = "fork"

    def __call__(self, event: OrderPlaced, state: OrderState) -> Split:
        state["forked"] = True
        return Split({"buyer": AskBuyer(), "seller": AskSeller()})


class Buyer(Node):
    step_name = "buyer"

    def __init__(self, hold: Callable[[], object]) -> None:
        self.hold = hold

    def __call__(self, event: AskBuyer, state: OrderState) -> StopEvent:
        self.hold()
        return StopEvent(self.await_event("buyer"))


class Seller(Node):
    step_name = "seller"

    def __init__(self, hold: Callable[[], object]) -> None:
        self.hold = hold

    def __call__(self, event: AskSeller, state: OrderState) -> StopEvent:
        self.hold()
        return StopEvent(self.await_event("seller"))


class Join(Node):
    step_name = "join"

    def __call__(self, event: Split, state: OrderState) -> StopEvent:
        return StopEvent(event.results)


ORDER = OrderPlaced(
    number=7,
    placed=dt.date(2026, 11, 30),
    items=(Item(article="tea", price=Decimal("2.50")), Item(article="mug ☕", price=Decimal("10"))),
)
START = ExecutionRequest.start(ORDER, run_id="sample", tag="tag")
APPROVAL = ExecutionRequest.signal("approval", {"by": "Ann"})
CARRIER = ExecutionRequest.signal("carrier", {"name": "Post"})
RESUME = ExecutionRequest.resume()
SHIPPED = {"by": "Ann", "total": Decimal("13.750"), "labels": ["Ann", "Post"]}


class Sampled:
    """The store, the clock and the definitions of one sample."""

    def __init__(self, records: Mapping[str, bytes] | None = None, entry: IndexEntry | None = None) -> None:
        self.clock = ManualClock(NOON)
        self.store = InMemoryPersistence()
        if records:
            assert self.store.initialize_if_absent("order:7", "__control", records["__control"], records, entry)

    def _define(self, *nodes: Node, **options: Any) -> Workflow[OrderState]:
        given: dict[str, Any] = {"persistence": self.store, "clock": self.clock, "version": "1", **options}
        return Workflow("order:7", nodes=nodes, state=OrderState(), **given).reconfigure(name="orders")

    def orders(self, broken: bool = False, **options: Any) -> Workflow[OrderState]:
        """The definition of orders."""
        return self._define(Price(), Approve(), Ship(broken), **options)

    def counting(self) -> Workflow[OrderState]:
        """The definition of long runs."""
        return self._define(Count())

    def forking(
        self, buyer: Callable[[], object] = lambda: None, seller: Callable[[], object] = lambda: None
    ) -> Workflow[OrderState]:
        """The definition of runs with two branches, and what each does before it asks."""
        return self._define(Fork(), Buyer(buyer), Seller(seller), Join(), branch_runner=ConcurrentBranchRunner())

    def engine(self) -> WorkflowEngine:
        """Whoever manages runs without knowing their definitions."""
        return WorkflowEngine(self.store, clock=self.clock)


# --- how they came about ----------------------------------------------------------------------------------------------------


def pending(run: Sampled) -> None:
    run.orders().ignite(ORDER, run_id="sample", tag="tag")


def running(run: Sampled) -> None:
    class Dying(InMemoryPersistence):
        """Lets nothing through once the node that waits has its memo."""

        dead = False

        def write_if_unchanged(self, *args: Any, **options: Any) -> bool:
            if self.dead:
                raise PersistenceError("dead")
            self.dead = any(key.endswith("::quote") for key in args[3])
            return super().write_if_unchanged(*args, **options)

    run.store = Dying()
    with pytest.raises(PersistenceError):
        run.orders(lease_timeout=60, lease_renewal=False).run(START)


def suspended(run: Sampled) -> None:
    run.orders().run(START)
    run.orders().run(APPROVAL)


def failed(run: Sampled) -> None:
    suspended(run)
    with pytest.raises(ConnectionError):
        run.orders(broken=True).run(CARRIER)


def answered(run: Sampled) -> None:
    """A run that failed while it held an accepted answer."""
    run.orders().run(START)
    with pytest.raises(ZeroDivisionError):
        run.orders(resources=lambda: 1 // 0).run(APPROVAL)


def retained(run: Sampled) -> None:
    suspended(run)
    run.orders(retain_for=3600).run(CARRIER)


def cancelled(run: Sampled) -> None:
    suspended(run)
    run.orders(retain_completion=True).cancel()


def folded(run: Sampled) -> None:
    run.counting().run(ExecutionRequest.start(Counted(), run_id="sample"))


def forked(run: Sampled) -> None:
    """The buyer is asked first; what the seller is asked waits behind it."""

    both_run = threading.Barrier(2, timeout=10)

    def until_the_buyer_is_asked() -> None:
        both_run.wait()
        deadline = time.monotonic() + 10
        while b'"buyer"' not in run.store.load("order:7")["__control"]:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    run.forking(both_run.wait, until_the_buyer_is_asked).run(START)


MAKERS: dict[str, Callable[[Sampled], None]] = {
    maker.__name__: maker for maker in (pending, running, suspended, failed, answered, retained, cancelled, folded, forked)
}


def taken(run: Sampled) -> dict[str, Any]:
    """The partition as a sample holds it."""
    records = {key: json.loads(data) for key, data in run.store.load("order:7").items()}
    entry = run.store.entry("order:7")
    assert entry is not None
    return {"records": records, "index": asdict(entry)}


def sample(name: str) -> dict[str, Any]:
    """A frozen partition."""
    return json.loads((SAMPLES / f"{name}.json").read_text())


@pytest.fixture
def of() -> Callable[[str], Sampled]:
    """Return what puts a sample into a store."""

    def make(name: str) -> Sampled:
        frozen = sample(name)
        records = {key: json.dumps(record, separators=(",", ":")).encode() for key, record in frozen["records"].items()}
        return Sampled(records, IndexEntry(**frozen["index"]))

    return make


# --- the frozen ones --------------------------------------------------------------------------------------------------------


def test_there_is_a_sample_of_every_kind() -> None:
    assert sorted(path.stem for path in SAMPLES.glob("*.json")) == sorted(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_a_sample_can_be_looked_at_listed_and_hinted_by_who_knows_no_definition(of, name) -> None:
    run = of(name)
    seen = run.engine().inspect("order:7")
    assert (seen.run_id, seen.status.value) == ("sample", run.store.entry("order:7").status)
    assert [entry.partition for entry in run.store.find(name="orders")] == ["order:7"]
    assert RunSummary.of(run.store.entry("order:7")).run_id == "sample"
    is_left_alone = name in ("retained", "cancelled", "suspended", "folded", "forked")
    assert (make_due(run.store, "order:7", "sample", 0.0) is None) is is_left_alone
    assert (postpone(run.store, "order:7", NOON.timestamp()) is None) is is_left_alone


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("retained", "running")])
def test_a_sample_can_be_abandoned_and_cancelled(of, name) -> None:
    for call in ("abandon", "cancel"):
        run = of(name)
        assert getattr(run.engine(), call)("order:7") is True
    assert run.store.load("order:7") == {} or name == "cancelled"


def test_a_pending_run_begins_with_its_own_event(of) -> None:
    run = of("pending")
    assert run.engine().inspect("order:7").start_event == ORDER
    assert run.engine().inspect("order:7").tag == "tag"
    run.orders().run(RESUME)
    run.orders().run(APPROVAL)
    assert run.orders().run(CARRIER).execution.result == SHIPPED


def test_a_running_run_is_taken_over_with_its_steps_and_memos(of) -> None:
    run = of("running")
    with pytest.raises(WorkflowRefusedError) as refused:
        run.orders().run(RESUME)
    assert refused.value.reason is RefusalReason.EXECUTING
    run.clock.advance(60)
    state = run.orders().run(RESUME)
    assert (state.execution.attempt, state.total) == (2, Decimal("13.750"))
    assert state["seen"] == {"at": NOON, "tags": ["a", None, 1.5], 7: "number"}
    run.orders().run(APPROVAL)
    assert run.orders().run(CARRIER).execution.result == SHIPPED


def test_a_suspended_run_shows_what_it_waits_for_and_takes_the_answer(of) -> None:
    run = of("suspended")
    polled = run.orders().run(RESUME)
    assert polled.interrupt_request.to_json() == {
        "interruptId": 2,
        "type": "wait_for_event",
        "eventName": "carrier",
        "expiresAt": None,
    }
    assert (polled.interrupt_request.region, polled.total) == ("EU", Decimal("13.750"))
    state = run.orders().run(CARRIER)
    assert (state.execution.result, state.has("seen")) == (SHIPPED, False)


def test_a_failed_run_says_why_and_is_recovered(of) -> None:
    run = of("failed")
    failure = run.engine().inspect("order:7").failure
    assert (str(failure), failure.at) == ("ConnectionError: the carrier does not answer", NOON)
    assert run.orders().run().execution.result == SHIPPED


def test_a_failed_run_that_holds_an_answer_delivers_it(of) -> None:
    run = of("answered")
    seen = run.engine().inspect("order:7")
    assert (seen.input_accepted, seen.interrupt.message) == (True, "Ship it?")
    assert seen.interrupt.actions == (Action("ship", "Ship", "all of it"),)
    run.orders().run()
    assert run.orders().run(CARRIER).execution.result == SHIPPED


def test_a_retained_run_serves_its_outcome_and_is_acknowledged(of) -> None:
    run = of("retained")
    state = run.orders().run(RESUME)
    assert (state.execution.result, state.labels, state.total) == (SHIPPED, {"Ann", "Post"}, Decimal("13.750"))
    assert run.store.due(NOON.timestamp() + 3600) == [run.store.entry("order:7")]
    run.engine().acknowledge("order:7", "sample")
    assert run.store.load("order:7") == {}


def test_a_cancelled_run_stays_cancelled_until_it_is_acknowledged(of) -> None:
    run = of("cancelled")
    with pytest.raises(WorkflowRefusedError) as refused:
        run.orders().run(CARRIER)
    assert refused.value.reason is RefusalReason.CANCELLED
    run.engine().acknowledge("order:7", "sample")


def test_a_folded_run_goes_on_behind_its_base(of) -> None:
    run = of("folded")
    state = run.counting().run(ExecutionRequest.signal("go on"))
    last = FOLD_AFTER + 4
    assert state.all() == {
        "total": Decimal(0),
        "labels": set(),
        "last": last,
        **{f"key {number % 3}": number for number in range(last - 2, last + 1)},
    }
    assert state.execution.result == last


def test_a_forked_run_answers_its_branches_in_the_order_of_their_waits(of) -> None:
    run = of("forked")
    assert run.engine().inspect("order:7").deferred_interrupts == 1
    state = run.forking().run(ExecutionRequest.signal("buyer", "yes"))
    assert (state.interrupt_request.id, state["forked"]) == (2, True)
    assert run.forking().run(ExecutionRequest.signal("seller", "no")).execution.result == {"buyer": "yes", "seller": "no"}


# --- and today's program ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_written_today_is_what_the_samples_hold(name) -> None:
    """But for the random token of the writer."""
    run = Sampled()
    MAKERS[name](run)
    written, frozen = taken(run), sample(name)
    for partition in (written, frozen):
        del partition["records"]["__control"]["writer"]
    assert written == frozen


@pytest.mark.parametrize("name", MAKERS)
def test_the_statuses_of_the_samples(of, name) -> None:
    statuses = {"answered": WorkflowStatus.FAILED, "folded": WorkflowStatus.SUSPENDED, "forked": WorkflowStatus.SUSPENDED}
    expected = statuses.get(name) or WorkflowStatus("completed" if name == "retained" else name)
    assert of(name).engine().inspect("order:7").status is expected


@pytest.mark.parametrize("key", ["__control", "__ignition", "sample/price-0", "sample/__failure"])
def test_a_record_of_a_version_that_is_not_known_is_refused_by_name(of, key) -> None:
    run = of("failed")
    records = run.store.load("order:7")
    newer = {key: records[key].replace(b'"v":1', b'"v":9', 1)}
    assert run.store.write_if_unchanged("order:7", "__control", records["__control"], newer)
    with pytest.raises(Exception, match="version 9"):
        run.orders().run() if key != "sample/__failure" else run.engine().inspect("order:7")
