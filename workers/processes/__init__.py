"""The processes of one owner: started, watched, recorded in its data folder, and ended with it or after it.

Four things work together, so that no process is ever lost whenever the owner dies:

- `claim`: one owner per data folder, by a lock that the kernel gives back.
- `launch`: each child records itself in the `ledger`, then looks whether its owner lives, and only then becomes the
  program that was asked for.
- `guardian`: a small process that outlives the owner and ends what the ledger names.
- `supervisor`: the owner's side; it begins with what an earlier owner and its guardian may have left.

Names load at first use: `launch` runs before every child and imports only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.processes.child import ProcessSpec
    from workers.processes.claim import owner_of
    from workers.processes.ledger import Entry, Ledger
    from workers.processes.signals import StopRequested
    from workers.processes.supervisor import Supervisor

__all__ = ["Entry", "Ledger", "ProcessSpec", "StopRequested", "Supervisor", "owner_of"]

_HOMES = {
    "Entry": "ledger",
    "Ledger": "ledger",
    "ProcessSpec": "child",
    "StopRequested": "signals",
    "Supervisor": "supervisor",
    "owner_of": "claim",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
