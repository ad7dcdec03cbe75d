"""A workflow that waits for approval on every database, with fresh objects at each step, as separate processes would."""

import sqlalchemy as sa

from persistence.sql import SqlPersistence
from workflow import ApprovalRequest, Event, ExecutionRequest, StopEvent, Workflow, WorkflowState, WorkflowStatus, interrupt


class Ordered(Event):
    item: str


class Approved(Event):
    item: str


def ask(event: Ordered, state: WorkflowState) -> Approved:
    answer = interrupt(ApprovalRequest(f"buy {event.item}?"))
    state["answer"] = answer
    return Approved(item=event.item)


def buy(event: Approved, state: WorkflowState) -> StopEvent:
    return StopEvent(f"bought {event.item}")


def fresh(persistence, **options) -> Workflow:
    return Workflow("order", nodes=[ask, buy], start_event=Ordered(item="flour"), persistence=persistence, **options)


def test_a_run_waits_for_approval_and_goes_on_from_fresh_objects(any_url):
    def step(request=None):
        store = SqlPersistence(any_url)
        try:
            return fresh(store).run(*([request] if request else []))
        finally:
            store.close()

    waiting = step()
    assert waiting.execution.status is WorkflowStatus.SUSPENDED
    assert waiting.execution.interrupt.message == "buy flour?"
    done = step(ExecutionRequest.resume("yes"))
    assert done.execution.result == "bought flour"


def test_a_run_in_the_callers_transaction_is_undone_with_it(any_url):
    engine = sa.create_engine(any_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        waiting = fresh(SqlPersistence(connection), lease_renewal=False).run()
        assert waiting.execution.status is WorkflowStatus.SUSPENDED
        connection.rollback()
        assert SqlPersistence(connection).load("order") == {}
