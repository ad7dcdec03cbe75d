"""The signal by which a node stops at a wait."""

__all__ = ["Suspension", "is_suspension"]


class Suspension(BaseException):
    """Unwinds a node that has reached a wait. No `Exception`, so that a node does not catch it by accident."""


def is_suspension(error: BaseException) -> bool:
    """Whether this is the signal, or a group of nothing else: a wait inside a task group. Whatever else went wrong counts."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(Suspension)[1] is None
    return isinstance(error, Suspension)
