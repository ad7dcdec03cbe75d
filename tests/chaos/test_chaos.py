"""A mesh of real processes under every fault at once: each run ends as it should, and nothing is lost, doubled or left behind.

In order of reading: `errands` (what runs), `ledger` (the outside), `field` (server, processes, proxies), `faults` and
`destroyer` (what happens to it), `clerk` (who starts and answers), `judge` and `probing` (what must be true in the end).
`effort` says how to ask for the long form, and how to play one seed again.
"""

import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.clerk import Clerk, errands
from tests.chaos.destroyer import Destroyer
from tests.chaos.effort import Effort, effort
from tests.chaos.field import LEASE, Field, open_field
from tests.chaos.judge import Judge
from tests.chaos.probing import BeatCount, probe_workers
from tests.chaos.waiting import until

EFFORT = effort()
STRIKING = 300
"""Seconds after which the faults are over, whatever the clerk has started."""

pytestmark = [pytest.mark.processes, pytest.mark.timeout(len(EFFORT.seeds) * 600)]


def test_whatever_happens_every_run_ends_as_it_should(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in EFFORT.seeds:
        with capsys.disabled():
            print(f"\nchaos: seed {seed}", flush=True)
        told = play(seed, EFFORT, tmp_path / str(seed))
        with capsys.disabled():
            print(told, flush=True)


def play(seed: int, effort: Effort, folder: Path) -> str:
    """One round. Returns what there is to tell of it."""
    folder.mkdir()
    chance = random.Random(seed)
    wanted = errands(effort.errands, chance)
    with ExitStack() as stack:
        field = stack.enter_context(open_field(folder, list(effort.roles)))
        clerk = Clerk(field, wanted, effort.pace)
        destroyer = Destroyer(field, effort.faults, chance)
        judge = Judge(field, wanted)
        stack.callback(lambda: print(f"seed {seed}:", *destroyer.trace, sep="\n"))  # shown when the test fails
        clerk.begin()
        destroy(destroyer, clerk)
        beats = BeatCount(field)
        settle(field, clerk, judge, effort.settle)
        settled = time.time()
        clerk.end()
        judge.wanted += probe_workers(field, effort.errands)
        beats.wait()
        settle(field, clerk, judge, effort.settle)
        judge.look(destroyer.struck, destroyer.returns)
        leave(field, judge)
        judge.look_at_remains(destroyer.last)
        assert not judge.faults, f"seed {seed}: {judge.text()}"
        return told(destroyer, judge, settled - destroyer.last)


def destroy(destroyer: Destroyer, clerk: Clerk) -> None:
    """Strike until everything was started, and every kind of fault has happened."""
    end = time.monotonic() + STRIKING
    while not (clerk.has_started_all and destroyer.has_done_all):
        clerk.check()
        assert time.monotonic() < end, f"{clerk.started} errands are started in {STRIKING} s"
        destroyer.work()
        time.sleep(0.02)
    destroyer.rest()


def settle(field: Field, clerk: Clerk, judge: Judge, patience: float) -> None:
    """Wait until every run has ended, every signal is heard, and whoever was told to go was replaced."""

    def settled() -> bool:
        clerk.check()
        field.troop.keep()
        return not judge.unsettled() and judge.is_heard() and not field.troop.going()

    until(settled, lambda: f"it settles: {judge.unsettled()}, going: {field.troop.going()}", patience)


def leave(field: Field, judge: Judge) -> None:
    """Tell all to go: first whoever makes work, and the workers when they have done it."""
    assert field.troop.stop(workers=False) == [], "every process goes when it is told to"
    until(lambda: judge.queues_are_empty() and not judge.unsettled(), judge.unsettled)
    assert field.troop.stop(workers=True) == [], "every worker goes when it is told to"
    assert field.troop.living() == [], "none has left a child behind"


def told(destroyer: Destroyer, judge: Judge, took: float) -> str:
    """What there is to tell of a round."""
    slowest = max(judge.recoveries, default=0)
    kinds = ", ".join(f"{times} {kind}" for kind, times in sorted(destroyer.faults.items()))
    return (
        f"{len(judge.wanted)} runs; {destroyer.faults.total()} faults: {kinds};"
        f" {judge.effects} effects, {judge.repeats} repeated;"
        f" settled {took:.1f} s after the last fault; slowest of {len(judge.recoveries)} recoveries"
        f" {slowest:.1f} s (lease {LEASE} s); workers ended by Celery itself: {judge.field.troop.ended_by_celery}"
    )
