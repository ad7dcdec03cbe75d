"""``python -m workers sweeper|consumers``: the standing processes beside Celery's."""

import signal
import sys
from typing import Any

from workers.client import MeshClient
from workers.composition import Runtime
from workers.housekeeping import LOOK_EVERY, Housekeeping
from workers.life.beside import Beside
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook
from workers.settings import Settings
from workers.signals.consumers import run_consumers
from workers.signals.outcry import Outcry
from workers.startup import mistakes_explained
from workers.sweeper import Sweeper
from workers.telemetry import configure_logging

ROLES = ("sweeper", "consumers")


def main(arguments: list[str]) -> int:
    """Run one of the standing processes until SIGTERM. Exit code 2 for misuse."""
    if len(arguments) != 1 or arguments[0] not in ROLES:
        sys.stderr.write(f"usage: python -m workers {'|'.join(ROLES)}\n")
        return 2
    with mistakes_explained():
        runtime = Runtime(Settings.load())
        configure_logging(runtime.settings.log_format)
        if arguments[0] == "consumers":
            run_consumers(runtime)
        else:
            run_sweeper(runtime)
        runtime.close()
    return 0


def run_sweeper(runtime: Runtime) -> None:
    """Sweep, and beside it look at the schedules and the server, pass on history and tidy up, until SIGTERM or SIGINT."""
    look = ScheduleLook(MeshClient(runtime=runtime), scheduled(runtime.settings))
    every = runtime.settings.sweep_every
    beside = (
        Beside("schedules", look.look_patiently, every=every),
        Beside("history", runtime.relay.run_patiently, every=every),
        Beside("outcry", Outcry(runtime).look_patiently, every=runtime.settings.schedule.watchdog_every),
        Beside("housekeeping", Housekeeping(runtime).look_patiently, every=LOOK_EVERY),
    )
    sweeper = Sweeper(
        runtime.store,
        runtime.hints,
        every=every,
        engine_of=runtime.engine_of,
        attend=runtime.subscriptions.attend,
    )

    def stop(*_: Any) -> None:
        sweeper.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    for other in beside:
        other.start()
    sweeper.run()
    for other in beside:
        other.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
