"""`jarvis runs watch`: what happens to a run, wherever it is executed, until it is over."""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.commands.runs.showing import RunId, WorkflowId, answer_command, line_as_json, line_of, look_at, wait_of
from console.output import flush, say, show, show_json

if TYPE_CHECKING:
    from bus import ChannelFrame
    from console.joining import Joined
    from workers.history import PastRun
    from workflow.history import HistoryLine

__all__ = ["watch"]

LOOK_EVERY = 0.3
"""Seconds between looks at the history; in between, live frames are waited for."""
LAST_LOOK = 0.05
"""Seconds for which the frames of a run that is over are waited for."""
FAILED = 1


def watch(
    workflow_id: WorkflowId,
    run: RunId = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Follow a run until it is over: what happens to it, and what it streams, on whatever machine.

    The exit code is 0 when it completed, 1 when it failed for good or was ended from outside.
    """
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    zone = settings.mesh.operator.tzinfo

    def put(line: "HistoryLine") -> None:
        if as_json:
            show_json(line_as_json(line), indent=None)
        else:
            show(line_of(line, zone))

    def put_frame(frame: "ChannelFrame") -> None:
        if as_json:
            show_json(frame_as_json(frame), indent=None)
        else:
            show(frame_line(frame))

    watching = Watching(workflow_id, run, put, put_frame)
    end = visit(settings, watching.follow)
    if end is None:
        return
    say(f"{workflow_id} is {end.status}")
    if end.status != "completed":
        raise typer.Exit(FAILED)


def frame_line(frame: "ChannelFrame") -> str:
    """One frame of a stream for people."""
    return f"{frame.type:>19}  {json.dumps(frame.data, ensure_ascii=False)}"


def frame_as_json(frame: "ChannelFrame") -> dict[str, Any]:
    """One frame of a stream for programs."""
    known = {"attempt": frame.attempt, "sequence": frame.sequence}
    return {"kind": "frame", **known, "type": frame.type, "data": frame.data}


class Watching:
    """Follows a run, and goes on where it was when the server's owner changed meanwhile."""

    def __init__(
        self,
        workflow_id: str,
        run_id: str | None,
        put: Callable[["HistoryLine"], None],
        put_frame: Callable[["ChannelFrame"], None],
    ) -> None:
        self._workflow_id = workflow_id
        self._run_id = run_id
        self._put = put
        self._put_frame = put_frame
        self._cursor: str | None = None
        self._seen: set[str] = set()
        self._asked: int | None = None

    def follow(self, mesh: "Joined") -> "PastRun | None":
        """Put out what there is, then what comes. Returns the run when it is over; None where nothing can come."""
        view = look_at(mesh.client, self._workflow_id, self._run_id)
        self._run_id = view.row.run_id
        if not view.lines:
            say("this run keeps no history, so there is nothing to follow: `jarvis runs show` shows where it stands")
            return None
        while True:
            self._put_new(mesh)
            run = self._run(mesh)
            if run is None or run.ended is not None:
                self._put_frames(mesh, LAST_LOOK)
                return run
            self._tell_question(mesh)
            if mesh.supervisor is not None:
                say("no mesh runs here, so nothing more will come: `jarvis up` runs one")
                return None
            self._put_frames(mesh, LOOK_EVERY)

    def _put_frames(self, mesh: "Joined", seconds: float) -> None:
        """Put out what the run streams, for so many seconds or a little longer."""
        from bus import ChannelGap

        deadline = time.monotonic() + seconds
        for news in mesh.client.runtime.channel.watch(self._workflow_id, self._cursor, seconds):
            if isinstance(news, ChannelGap):
                say("some of what was streamed is missing here")
                continue
            self._cursor = news.cursor
            if news.run_id == self._run_id:
                self._put_frame(news)
                flush()
            if time.monotonic() > deadline:
                return

    def _put_new(self, mesh: "Joined") -> None:
        for line in mesh.client.history(self._workflow_id, run_id=self._run_id):
            key = json.dumps(line.to_record(), sort_keys=True, default=str)
            if key not in self._seen:
                self._seen.add(key)
                self._put(line)
        flush()

    def _run(self, mesh: "Joined") -> "PastRun | None":
        found = mesh.client.past_runs(workflow_id=self._workflow_id)
        return next((run for run in found if run.run_id == self._run_id), None)

    def _tell_question(self, mesh: "Joined") -> None:
        """Say once how to answer what the run waits for."""
        snapshot = mesh.client.inspect(self._workflow_id)
        if snapshot is None or snapshot.run_id != self._run_id or snapshot.input_accepted:
            return
        wait = wait_of(snapshot)
        if wait is not None and wait.get("type") == "wait_for_event" and wait["interruptId"] != self._asked:
            self._asked = wait["interruptId"]
            say(f"it waits: {answer_command(self._workflow_id, snapshot.run_id, wait)}")
