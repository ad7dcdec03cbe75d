"""Backoff and the words of an error."""

import pytest

from bus import Backoff, BusError
from bus.failure import ERROR_LIMIT, is_last, told


def test_each_wait_is_longer_up_to_the_limit():
    assert [Backoff(first=1, factor=2, limit=5)(attempt) for attempt in (1, 2, 3, 4, 1_000_000)] == [1, 2, 4, 5, 5]


@pytest.mark.parametrize("values", [{"first": -1}, {"factor": 0.5}, {"first": 10, "limit": 5}])
def test_a_backoff_that_shrinks_is_refused(values):
    with pytest.raises(BusError, match="never waits longer"):
        Backoff(**values)


def test_the_last_delivery_is_the_one_at_the_limit():
    assert [is_last(attempt, 3) for attempt in (1, 2, 3, 4)] == [False, False, True, True]


def test_a_told_error_has_type_words_and_bounds():
    assert told(KeyError("x")) == "KeyError: 'x'"
    assert len(told(ValueError("y" * 5_000))) == ERROR_LIMIT
