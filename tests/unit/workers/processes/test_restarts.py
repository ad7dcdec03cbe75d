"""When a process is started again."""

from itertools import accumulate

from workers.processes import restarts


def test_the_delay_doubles_up_to_its_limit():
    assert [restarts.delay_after(failures) for failures in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_failures_add_up_until_a_process_lived_long_enough():
    lives = [1.0, 59.9, 60.0, 2.0]
    assert list(accumulate(lives, restarts.failures_after, initial=0)) == [0, 1, 2, 1, 2]


def test_trying_ends_at_the_limit():
    assert not restarts.hopeless(7)
    assert restarts.hopeless(8)
