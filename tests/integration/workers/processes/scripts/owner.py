"""An owner to be killed: `owner.py <data folder> <role>=<script>,<argument> …`; the role `server` is the private server.

Tells on its output, a JSON line each, when it begins and which processes it started.
"""

import json
import sys
import time
from pathlib import Path

from workers.embedded import start_server
from workers.processes import ProcessSpec, Supervisor


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main(folder: Path, *roles: str) -> None:
    tell(begins=time.time())
    with Supervisor(folder, say=lambda line: tell(said=line)) as supervisor:
        for role in roles:
            name, _, argv = role.partition("=")
            if name == "server":
                tell(server=start_server(supervisor).store_url)
            else:
                spec = ProcessSpec(name, [sys.executable, *argv.split(",")], log=supervisor.log_path(name), grace=60)
                tell(**{name: supervisor.start(spec)})
        tell(ready=True)
        supervisor.watch(until=lambda: False)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit(130)
