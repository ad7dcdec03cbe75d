"""What a person sees of an error: one line, and the exit code."""

import errno

import typer

from console.errors import ConsoleError

__all__ = ["FAILED", "MISUSE", "explained"]

FAILED = 1
MISUSE = 2


def explained(error: Exception) -> tuple[str, int]:
    """The line for an error, and the exit code: 2 for misuse, 1 for all else. An error that nobody foresaw is called a bug."""
    if isinstance(error, typer.TyperException):
        return _usage(error), error.exit_code
    if isinstance(error, ConsoleError):
        return _one_line(error), error.exit_code
    if isinstance(error, _misuses()):
        return _one_line(error), MISUSE
    if isinstance(error, _foreseen()):
        return _one_line(error), FAILED
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk is full: {_one_line(error)}", FAILED
    kind = type(error).__qualname__
    return f"this is a bug ({kind}: {_one_line(error)}): set JARVIS_DEBUG=1 to see where, and please report it", FAILED


def _misuses() -> tuple[type[Exception], ...]:
    """Errors about what a person wrote into the settings. Rooms are imported here because most commands never fail."""
    from mesh.errors import ConfigError
    from workers.errors import SettingsError

    return (ConfigError, SettingsError)


def _foreseen() -> tuple[type[Exception], ...]:
    """The root errors of the rooms: each message says what is wrong and what to do."""
    from bus import BusError
    from mesh.errors import MeshError
    from persistence import PersistenceError
    from workers.errors import WorkersError
    from workflow import WorkflowError

    return (BusError, MeshError, PersistenceError, WorkersError, WorkflowError)


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    help_line = f" (see `{context.command_path} --help`)" if context is not None else ""
    return f"{' '.join(error.format_message().split()).rstrip('.')}{help_line}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
