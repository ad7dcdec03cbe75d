"""Whose a process is, over made-up tables."""

from workers.processes.family import ancestors, family, leader
from workers.processes.ledger import Entry
from workers.processes.table import Process

ENTRY = Entry(home="1:2", mark="feed", role="worker", pid=100, started="boot/1", foundation=False, grace=1.0)


def process(pid, *, parent=1, group=100, session=100, started="boot/2", ended=False, mark=""):
    return Process(pid, parent, group, session, started, ended, mark)


def table(*processes):
    return {one.pid: one for one in processes}


FIRST = process(100, started="boot/1", mark="feed")


def pids(*processes, spare=()):
    return [one.pid for one in family(ENTRY, table(*processes), spare)]


def test_the_process_and_its_group_are_its_family():
    assert pids(FIRST, process(101), process(102, group=7, session=7)) == [100, 101]


def test_a_member_that_cleared_its_environment_is_found_by_its_group_while_the_leader_lives():
    assert pids(FIRST, process(101, mark="")) == [100, 101]


def test_a_group_of_its_own_in_the_same_session_belongs_to_the_family():
    assert pids(FIRST, process(101, group=101)) == [100, 101]


def test_a_member_that_left_its_session_is_found_by_its_mark():
    assert pids(FIRST, process(101, group=101, session=101, mark="feed")) == [100, 101]


def test_a_leader_that_ended_and_was_not_waited_for_still_proves_its_group():
    assert pids(process(100, started="boot/1", ended=True), process(101)) == [101]


def test_members_of_a_dead_leader_must_bear_its_mark():
    assert pids(process(101, mark="feed"), process(102), process(103, mark="other")) == [101]


def test_a_process_that_took_the_pid_is_no_family_nor_is_its_group():
    assert pids(process(100, started="boot/9"), process(101)) == []


def test_the_same_ticks_after_another_boot_are_another_process():
    assert pids(process(100, started="later-boot/1"), process(101)) == []


def test_what_has_ended_and_what_is_spared_is_left_out():
    assert pids(FIRST, process(101, ended=True), process(102), spare={102}) == [100]


def test_the_leader_is_the_recorded_process_as_long_as_it_lives():
    assert leader(ENTRY, table(FIRST)) == FIRST
    assert leader(ENTRY, table(process(100, started="boot/1", ended=True))) is None
    assert leader(ENTRY, table(process(100, started="boot/9"))) is None
    assert leader(ENTRY, {}) is None


def test_ancestors_are_the_process_itself_and_all_above_it():
    rows = table(process(1, parent=0), process(5, parent=1), process(9, parent=5), process(10, parent=5))
    assert ancestors(9, rows) == {9, 5, 1}
