"""`jarvis up`: the whole mesh in the foreground, until Ctrl-C."""

import datetime as dt
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from console.following import LogFollower
from console.log_lines import json_line, readable_line
from console.output import is_terminal, put_words, say
from console.wording import next_briefing_line, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.health.findings import Finding
    from persistence.redis import RedisLink
    from workers.processes import Supervisor
    from workers.settings import Settings

__all__ = ["up"]


def up() -> None:
    """Keep the mesh running: server (unless one is configured), worker, beat, sweeper and consumers. Ctrl-C ends it."""
    from workers.processes import StopRequested, Supervisor
    from workers.settings import Settings

    settings = Settings.load()
    logs = LogFollower()
    put = partial(_put_new, logs, settings)
    with Supervisor(settings.home, say=say) as supervisor:
        try:
            _start(_with_server(settings, supervisor, logs), supervisor, logs)
            supervisor.watch(put)
        except StopRequested:
            say("stopping; once more to hurry")
        finally:
            put()
    put()
    say("stopped; what was under way goes on at the next start")


def _with_server(settings: "Settings", supervisor: "Supervisor", logs: LogFollower) -> "Settings":
    """The settings with the server that the mesh stands on: the configured one, which must answer, or a private one."""
    if settings.redis_url is not None:
        from console.health.examining import server_link

        link = server_link(settings)
        link.run(lambda client: client.ping())
        say(f"server: {link.address}, as configured")
        for finding in _wrong_with(link):
            say(f"server: {finding.check}: {finding.fact}; {finding.meaning}")
        return settings
    from console.joining import at_address
    from workers.embedded import start_server

    address = start_server(supervisor)
    logs.add("server", supervisor.log_path("server"))
    say(f"server: private, at {address.socket}, data in {_short(supervisor.folder)}")
    return at_address(settings, address)


def _wrong_with(link: "RedisLink") -> "Iterator[Finding]":
    """What `jarvis doctor` would call wrong of the configured server."""
    from console.health.findings import State, judge_server
    from console.health.servers import read_servers

    for facts in read_servers(link):
        yield from (finding for finding in judge_server(facts) if finding.state is State.WRONG)


def _start(settings: "Settings", supervisor: "Supervisor", logs: LogFollower) -> None:
    from workers.mesh_processes import mesh_processes

    specs = mesh_processes(settings, supervisor.folder)
    for spec in specs:
        logs.add(spec.role, supervisor.log_path(spec.role))
        supervisor.start(spec)
    say(f"running: {', '.join(spec.role for spec in specs)}; logs in {_short(supervisor.folder / 'logs')}; Ctrl-C stops all")
    say(next_briefing_line(settings.schedule.briefing, settings.mesh.operator.tzinfo, dt.datetime.now(dt.UTC)))


def _put_new(logs: LogFollower, settings: "Settings") -> bool:
    """Put out what the processes have logged since the last time. Never a reason to stop watching them: False."""
    readable = settings.log_format == "console" or (settings.log_format == "auto" and is_terminal(sys.stderr))
    zone = settings.mesh.operator.tzinfo
    for role, line in logs.new_lines():
        put_words(readable_line(role, line, zone) if readable else json_line(role, line))
    return False


def _short(path: Path) -> str:
    return shown_path(path, Path.cwd())
