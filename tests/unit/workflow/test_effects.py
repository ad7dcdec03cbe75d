"""A node that acts on the world outside of a memo is warned of, by its line; the engine's own acts and memos are not."""

import asyncio
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from persistence import FilePersistence
from workflow import Event, StartEvent, StopEvent, Workflow, WorkflowState, amemoize, memoize
from workflow.testing import EffectOutsideMemoWarning, isolated, warn_of_effects


class Round(Event):
    number: int = 0


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    warn_of_effects()
    yield
    warn_of_effects(active=False)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def noticed(node: Callable[..., Any], store: Any = None) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True, action="always") as found:
        Workflow("w", nodes=[node], start_event=StartEvent(), persistence=store).run()
    return found


def acts(folder: Path, port: int) -> dict[str, Callable[[], object]]:
    return {
        "socket.connect": lambda: socket.create_connection(("127.0.0.1", port)).close(),
        "open": lambda: (folder / "report").write_text("done"),
        "subprocess.Popen": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "os.mkdir": lambda: (folder / "made").mkdir(exist_ok=True),
    }


@pytest.mark.parametrize("event", ["socket.connect", "open", "subprocess.Popen", "os.mkdir"])
def test_an_act_outside_of_a_memo_is_warned_of_and_one_inside_is_not(tmp_path, port, event) -> None:
    act = acts(tmp_path, port)[event]

    def careless(event: StartEvent, state: WorkflowState) -> StopEvent:
        act()
        return StopEvent()

    def careful(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("act", lambda: act() and None)
        return StopEvent()

    [warning] = noticed(careless)
    assert warning.category is EffectOutsideMemoWarning
    assert f"({event}) outside of a memo" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, careless.__code__.co_firstlineno + 1)
    assert noticed(careful) == []


def test_async_nodes_are_warned_of_as_well(port) -> None:
    async def speak() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    async def careless(event: StartEvent, state: WorkflowState) -> StopEvent:
        await speak()
        return StopEvent()

    async def careful(event: StartEvent, state: WorkflowState) -> StopEvent:
        await amemoize("speak", speak)
        return StopEvent()

    [warning] = noticed(careless)
    assert "socket.connect" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, careless.__code__.co_firstlineno + 1)
    assert noticed(careful) == []


def test_an_import_is_no_act(tmp_path, monkeypatch) -> None:
    (tmp_path / "lately_imported.py").write_text("number = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def importing(event: StartEvent, state: WorkflowState) -> StopEvent:
        from lately_imported import number

        return StopEvent(number)

    assert noticed(importing) == []


def test_a_place_that_many_steps_come_by_is_warned_of_once(tmp_path) -> None:
    def again(event: StartEvent, state: WorkflowState) -> Round:
        return Round()

    def act(event: Round, state: WorkflowState) -> Round | StopEvent:
        (tmp_path / "report").write_text("done")
        return StopEvent() if event.number > 5 else Round(number=event.number + 1)

    with warnings.catch_warnings(record=True, action="default") as found:
        Workflow("w", nodes=[again, act], start_event=StartEvent()).run()
    assert len(found) == 1


def test_reading_is_no_act(tmp_path) -> None:
    (tmp_path / "notes").write_text("flour")

    def read(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent((tmp_path / "notes").read_text())

    assert noticed(read) == []


def test_what_the_engine_writes_is_no_act_of_the_node(tmp_path) -> None:
    def remember(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(memoize("number", lambda: 7))

    assert noticed(remember, FilePersistence(tmp_path)) == []


def test_with_the_warning_as_an_error_the_act_itself_fails(tmp_path) -> None:
    def careless(event: StartEvent, state: WorkflowState) -> StopEvent:
        (tmp_path / "report").write_text("done")
        return StopEvent()

    with pytest.raises(EffectOutsideMemoWarning, match="put it in memoize"):
        Workflow("w", nodes=[careless], start_event=StartEvent()).run()
    assert not (tmp_path / "report").exists()


def test_a_node_that_is_called_by_hand_is_warned_of(tmp_path) -> None:
    with isolated(), pytest.raises(EffectOutsideMemoWarning, match="isolated"):
        (tmp_path / "report").write_text("done")


def test_outside_of_nodes_and_when_nobody_asks_nothing_is_said(tmp_path) -> None:
    (tmp_path / "report").write_text("done")
    warn_of_effects(active=False)

    def careless(event: StartEvent, state: WorkflowState) -> StopEvent:
        (tmp_path / "report").write_text("done")
        return StopEvent()

    assert noticed(careless) == []
