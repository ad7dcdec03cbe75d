"""The field: one server, the processes of a mesh around it, the ledger outside, and what the test itself looks through."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.chaos.ledger import LEDGER, Ledger
from tests.chaos.proxy import Proxies
from tests.chaos.server import Server
from tests.chaos.troop import Troop
from workers import MeshClient, Settings
from workers.composition import Runtime

__all__ = ["LEASE", "Field", "open_field"]

ROOT = Path(__file__).parents[2]
LEASE = 3
"""Seconds of the lease of a run."""
GRACE = 2
"""Seconds that a worker which is told to go may use."""
TAKEOVER = 3
"""Seconds after which a consumer's deliveries go to another one."""
TICK = 5
"""Seconds between slots of the schedules, the shortest there is."""

CONFIG = f"""
[operator]
name = "Chaos"
zone = "UTC"

[schedule]
watchdog_every = {TICK}

[watchdog]
agents = []

[limits.workflows]
chaos-long = 2

[[schedules]]
name = "tick"
workflow = "chaos-tick"
every = {TICK}
"""


class Field:
    """What the clerk, the destroyer and the judge share. ``client`` comes by a proxy as everybody does; ``direct`` does not."""

    def __init__(self, folder: Path, roles: list[str], stack: ExitStack) -> None:
        self.ledger = Ledger(folder / "ledger")
        self.server = Server(folder / "server")
        stack.callback(lambda: self.server.end(9))
        self.server.start()
        self.proxies = Proxies(self.server.port)
        stack.callback(self.proxies.close)
        self.proxy = self.proxies.make()
        environment = _environment(folder)
        self.troop = Troop(folder, environment, self.proxies, roles)
        stack.callback(self.troop.kill)
        os.environ.update(environment)
        self.client = _client(f"redis://127.0.0.1:{self.proxy.port}/0")
        stack.callback(self.client.close)
        self.direct = _client(self.server.url)
        stack.callback(self.direct.close)
        self.redis = self.server.client()
        stack.callback(self.redis.close)
        self.broker = self.server.client(1)
        stack.callback(self.broker.close)


def _environment(folder: Path) -> dict[str, str]:
    config = folder / "jarvis.toml"
    config.write_text(CONFIG)
    return {
        LEDGER: str(folder / "ledger"),
        "JARVIS_CONFIG": str(config),
        "JARVIS_HOME": str(folder),
        "JARVIS_MODULES": "workers.definitions,tests.chaos.errands",
        "JARVIS_SWEEP_EVERY": "0.3",
        "JARVIS_HEARTBEAT_EVERY": "1",
        "JARVIS_PROBE_EVERY": "1",
        "JARVIS_LEASE_TIMEOUT": str(LEASE),
        "JARVIS_SHUTDOWN_GRACE": str(GRACE),
        "JARVIS_TAKEOVER_AFTER": str(TAKEOVER),
        # No run is given up here: each is to reach its end through any number of losses.
        "JARVIS_MAX_TAKEOVERS": "1000",
        "PYTHONPATH": str(ROOT),
    }


def _client(url: str) -> MeshClient:
    return MeshClient(runtime=Runtime(Settings.load(redis_url=url, broker_url=f"{url[:-1]}1")))


@contextmanager
def open_field(folder: Path, roles: list[str]) -> Iterator[Field]:
    """A field with all its processes ready. Everything ends with the block."""
    before = dict(os.environ)
    with ExitStack() as stack:
        stack.callback(lambda: (os.environ.clear(), os.environ.update(before)))
        field = Field(folder, roles, stack)
        field.troop.start()
        yield field
