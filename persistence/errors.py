"""What can go wrong below the workflow engine.

PersistenceError             the store could not answer, or what it holds is not what was written
└── UnreachableError         no server answered in time; whether a write took effect is unknown
"""

__all__ = ["PersistenceError", "UnreachableError"]


class PersistenceError(Exception):
    """The store failed or holds corrupt data.

    Never raised for a lost condition: that is the return value ``False``. The message says what to do.
    """


class UnreachableError(PersistenceError):
    """The server did not answer. Start it, or correct its address; nothing committed before is lost."""
