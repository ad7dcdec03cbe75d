"""What can go wrong on the bus.

BusError                     what was asked cannot be done: bad id, topic, payload or place, or the server refused
└── BusUnreachableError      no server answered in time; a publication may have counted and is safe to repeat
"""

__all__ = ["BusError", "BusUnreachableError"]


class BusError(Exception):
    """The bus refused what was asked. The message says what to change, in one line."""


class BusUnreachableError(BusError):
    """The server did not answer. Start it, or correct its address; what was published before is kept."""
