"""Nothing is left of `jarvis`, at whatever moment it is stopped; what it left when it was killed is cleared away."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

DAY = ("--date", "2026-11-30")
TEXT = "# briefing of 2026-11-30\n"

MOMENTS: dict[str, Callable[[Any], object]] = {
    "it has the home folder": lambda place: (place.home / "owner.lock").exists(),
    "its server is starting": lambda place: place.log("server"),
    "its worker is starting": lambda place: (place.home / "logs" / "worker.log").exists(),
    "its worker is ready": lambda place: " ready." in place.log("worker"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_while_it_starts_leaves_nothing(place: Any, moment: str) -> None:
    place.hold("research")
    command = place.start("brief", *DAY)
    place.until(lambda: MOMENTS[moment](place), moment)
    place.release("research")
    command.send(signal.SIGINT)

    code, _, words = command.ended()
    assert (code, "Traceback" in words) == (130, False), words
    assert place.left() == []


def test_ctrl_c_while_an_agent_works_leaves_nothing_and_a_second_one_hurries(place: Any) -> None:
    place.hold("research")
    command = place.start("brief", *DAY)
    place.until(place.asked, "research is asked")
    command.send(signal.SIGINT)
    place.until(lambda: "Warm shutdown" in place.log("worker"), "the worker is asked to stop")
    command.send(signal.SIGINT)

    assert command.ended()[0] == 130
    assert place.left() == []

    place.release("research")
    assert place.run("brief", *DAY)[:2] == (0, TEXT)


def test_sigterm_ends_a_brief_like_ctrl_c(place: Any) -> None:
    place.hold("research")
    command = place.start("brief", *DAY)
    place.until(place.asked, "research is asked")
    place.release("research")
    command.send(signal.SIGTERM)

    assert command.ended()[0] == 128 + signal.SIGTERM
    assert place.left() == []


def test_after_kill_9_the_next_brief_finishes_the_run_and_nothing_is_left(place: Any) -> None:
    place.hold("operations")
    command = place.start("brief", *DAY)
    place.until(lambda: "operations" in place.asked(), "operations is asked")
    command.send(signal.SIGKILL)
    command.ended()
    place.release("operations")

    code, data, words = place.run("brief", *DAY)
    assert (code, data) == (0, TEXT), words
    assert place.asked().count("research") == 1
    assert place.left() == []
