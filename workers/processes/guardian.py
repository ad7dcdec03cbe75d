"""Outlives the owner and ends what it started: for an owner that died with no chance to do so.

Called as `guardian.py <owner's pid> <data folder>`, with the owner's lock on the folder open: as long as this process is at
work, no other owner can take the folder.

A signal from the kernel at the parent's death would be shorter, but it fires already when the *thread* that started the
child ends, does not reach a child's children, knows no order, and exists on Linux only.
"""

import os
import sys
import time
from pathlib import Path

LOOK_SECONDS = 0.25
"""How often it looks for its parent. (The end of a pipe would be missed as long as a fork of the owner holds it open.)"""

PATIENCE_SECONDS = 3.0
"""The longest grace it gives: nobody waits for the results of these processes any more."""


def main(owner: int, folder: Path) -> None:
    """Wait for the end of the owner, then end what its ledger names."""
    from workers.processes.ending import Ending
    from workers.processes.ledger import Ledger

    while os.getppid() == owner:
        time.sleep(LOOK_SECONDS)
    ledger = Ledger(folder)
    Ending(ledger, patience=PATIENCE_SECONDS).end(ledger.entries())


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    main(int(sys.argv[1]), Path(sys.argv[2]))
