"""A process that looks at the schedules at a moment that it is told, and is stopped when it has read that a slot is due.

It goes on with what it has read when it is continued.
"""

import datetime as dt
import os
import signal
import sys
from typing import Any

import redis

from workers import MeshClient, Settings
from workers.composition import Runtime
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook


class StoppingStore:
    """The store, before whose first write the process stops."""

    def __init__(self, store: Any) -> None:
        self._store, self._stopped = store, False

    def __getattr__(self, name: str) -> Any:
        if name in ("write_if_unchanged", "initialize_if_absent") and not self._stopped:
            self._stopped = True
            with redis.Redis.from_url(os.environ["JARVIS_REDIS_URL"]) as client:
                client.set("test:stopped", 1)
            os.kill(os.getpid(), signal.SIGSTOP)
        return getattr(self._store, name)


at = dt.datetime.fromisoformat(sys.argv[1])
runtime = Runtime(Settings.load())
store: Any = StoppingStore(runtime.store)
runtime.store = store  # in place of the cached property
found = [one for one in scheduled(runtime.settings) if one.schedule.name == "daily-briefing"]
ScheduleLook(MeshClient(runtime=runtime), found, now=lambda: at).look()
