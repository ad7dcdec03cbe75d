"""Runs on every arrangement of servers: approved and resumed with fresh objects at each step, and through a failover."""

from collections import Counter
from collections.abc import Callable

import pytest

from persistence import open_persistence
from persistence.redis.keys import Keys, shard_of
from workers.embedded import installed_binaries
from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    WorkflowStatus,
    interrupt,
    memoize,
)

STEPS = 12


class Next(Event):
    number: int = 0


@pytest.fixture(params=["cluster", "sentinels", "tls"])
def url(request, cluster_of, sentinels_of) -> str:
    """Return the URL of an empty store on each arrangement of servers."""
    if request.param == "tls":
        return request.getfixturevalue("tls_server").url
    kind = cluster_of if request.param == "cluster" else sentinels_of
    return kind(installed_binaries()[0]).url


pytestmark = pytest.mark.server


def test_a_run_asks_is_approved_and_goes_on_with_fresh_objects_each_time(url):
    effects = Counter()

    def define() -> Workflow:
        def begin(event: StartEvent, state: WorkflowState) -> Next:
            state["paid"] = memoize("pay", lambda: effects.update(paid=1) or "paid")
            return Next()

        def ask(event: Next, state: WorkflowState) -> StopEvent:
            answer = interrupt(ApprovalRequest("Ship it?"))
            return StopEvent([state["paid"], answer, memoize("ship", lambda: effects.update(shipped=1) or "shipped")])

        return Workflow("order:17", nodes=[begin, ask], persistence=open_persistence(url), lease_timeout=60)

    state = define().run()
    assert state.is_interrupted()
    assert [(entry.partition, entry.status) for entry in open_persistence(url).find()] == [("order:17", "suspended")]
    assert define().run(ExecutionRequest.resume("approved")).execution.result == ["paid", "approved", "shipped"]
    assert effects == {"paid": 1, "shipped": 1}
    assert open_persistence(url).load("order:17") == {}


def steps(url: str, effects: Counter[int], between: Callable[[int], None]) -> Workflow:
    """A workflow of many steps, each with an effect; something happens between two of them."""

    def begin(event: StartEvent, state: WorkflowState) -> Next:
        return Next()

    def work(event: Next, state: WorkflowState) -> Next | StopEvent:
        number = event.number
        memoize("effect", lambda: effects.update([number]))
        between(number)
        return StopEvent(number) if number + 1 == STEPS else Next(number=number + 1)

    return Workflow("order:18", nodes=[begin, work], persistence=open_persistence(url), lease_timeout=60)


def test_a_run_goes_on_through_the_death_of_the_primary(own_sentinels):
    effects = Counter()

    def kill(number: int) -> None:
        if number == STEPS // 2:
            own_sentinels.primary.kill_in_step()

    state = steps(own_sentinels.url, effects, kill).run()
    assert state.execution.status is WorkflowStatus.COMPLETED
    assert effects == dict.fromkeys(range(STEPS), 1)


def test_a_run_goes_on_through_the_death_of_a_node_of_the_cluster(own_cluster):
    effects = Counter()
    owner = own_cluster.node_of(Keys("jarvis:workflow:", shard_of("order:18")).partition("order:18"))
    if owner is not own_cluster.nodes[0]:
        own_cluster.replicas[0].asks("CLUSTER", "REPLICATE", own_cluster.id_of(owner))
        own_cluster.await_replica(owner)

    def kill(number: int) -> None:
        if number == STEPS // 2:
            owner.kill_in_step()

    state = steps(own_cluster.url, effects, kill).run()
    assert state.execution.status is WorkflowStatus.COMPLETED
    assert effects == dict.fromkeys(range(STEPS), 1)
