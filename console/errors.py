"""What can go wrong at the edge where people type.

ConsoleError                 exit code 1
├── MisuseError              what was typed cannot be meant: exit code 2
├── ForeignRoomError         another program's module stands in the place of one of ours
└── BriefingFailedError      a briefing was not finished
"""

__all__ = ["BriefingFailedError", "ConsoleError", "ForeignRoomError", "MisuseError"]


class ConsoleError(Exception):
    """The root of this room's errors. The message is one line that says what to do."""

    exit_code = 1


class MisuseError(ConsoleError):
    """An argument or option has a value that cannot be meant. Type another one."""

    exit_code = 2


class ForeignRoomError(ConsoleError):
    """A module of another program has the name of one of our rooms. Take it off the path."""


class BriefingFailedError(ConsoleError):
    """A briefing ended without a text. The message says why, and the command that takes it up again."""
