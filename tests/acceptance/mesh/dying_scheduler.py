"""A process that looks at the schedules and is killed when a chosen operation of the store has taken effect.

It looks at a moment that it is told, so that the test need not wait for a slot.
"""

import datetime as dt
import os
import signal
import sys
from typing import Any

from workers import MeshClient, Settings
from workers.composition import Runtime
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook


class FatalStore:
    """The store, whose operation number ``fatal`` kills the process. 0 kills it nowhere."""

    def __init__(self, store: Any, fatal: int) -> None:
        self._store, self._fatal = store, fatal
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        def enter(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            result = getattr(self._store, name)(*arguments, **named)
            if self.count == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return enter


at, fatal = dt.datetime.fromisoformat(sys.argv[1]), int(sys.argv[2])
runtime = Runtime(Settings.load())
store: Any = FatalStore(runtime.store, fatal)
runtime.store = store  # in place of the cached property
found = [one for one in scheduled(runtime.settings) if one.schedule.name == "daily-briefing"]
ScheduleLook(MeshClient(runtime=runtime), found, now=lambda: at).look()
sys.stdout.write(f"{store.count}\n")
