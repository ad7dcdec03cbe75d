"""When a process that ended unexpectedly is started again: pure rules over the number of its failures in a row."""

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A process that lived this long counts as well again."""

FAILURE_LIMIT = 8
"""So many failures in a row, about one and a half minutes, are the end of trying."""


def failures_after(before: int, lived: float) -> int:
    """Return the failures in a row, given those before and how long (s) the process lived this time."""
    return 1 if lived >= STEADY_SECONDS else before + 1


def delay_after(failures: int) -> float:
    """Return how long (s) to wait before the next start: doubled each time, up to a limit."""
    return min(FIRST_DELAY_SECONDS * 2 ** (failures - 1), LONGEST_DELAY_SECONDS)


def hopeless(failures: int) -> bool:
    """Tell whether it makes no sense to start it again."""
    return failures >= FAILURE_LIMIT
