"""A process with children, as a prefork worker is: `parent.py <file>` writes the pids of its family once all are there.

Two children stay in its group; the third leaves for a session of its own.
"""

import os
import sys
import time
from pathlib import Path


def child(leaves: bool) -> int:
    pid = os.fork()
    if pid == 0:
        if leaves:
            os.setsid()
        time.sleep(600)
    return pid


pids = [os.getpid(), child(leaves=False), child(leaves=False), child(leaves=True)]
part = Path(f"{sys.argv[1]}.part")
part.write_text(" ".join(map(str, pids)))
part.replace(sys.argv[1])
time.sleep(600)
