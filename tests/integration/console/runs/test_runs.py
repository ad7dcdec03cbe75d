"""`jarvis runs` as a person types it, on a real server."""

import io
import json
import shlex
import sys
import threading
from typing import Any

import pytest


def rows(shop: Any, *options: str) -> list[dict[str, Any]]:
    code, out, _ = shop.jarvis("runs", "list", "--json", *options)
    assert code == 0
    return json.loads(out)


def ids(shop: Any, *options: str) -> list[str]:
    return [row["workflow_id"] for row in rows(shop, *options)]


def test_runs_are_listed_newest_first_also_when_they_have_gone(shop: Any) -> None:
    shop.order("a:1", tag="t")
    shop.order("a:2", "gold")
    shop.break_down()
    shop.order("a:3")

    code, out, err = shop.jarvis("runs", "list")

    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert [line.split()[2:5] for line in lines] == [
        ["failed", "orders", "a:3"],
        ["suspended", "orders", "a:2"],
        ["completed", "orders", "a:1"],
    ]
    assert lines[0].endswith("ValueError: no van")


def test_filters_narrow_the_list(shop: Any) -> None:
    shop.order("a:1", tag="t")
    shop.order("b:1", name="kept-orders")
    shop.break_down()
    shop.order("c:1", tag="t")

    assert ids(shop, "--status", "failed") == ["c:1"]
    assert ids(shop, "--name", "kept-orders") == ["b:1"]
    assert ids(shop, "--tag", "t") == ["c:1", "a:1"]
    assert ids(shop, "--text", "NO VAN") == ["c:1"]
    assert ids(shop, "--since", "1h") == ["c:1", "b:1", "a:1"]
    assert ids(shop, "--until", "1h") == []
    assert ids(shop, "--limit", "1") == ["c:1"]


def test_a_list_that_goes_on_says_so(shop: Any) -> None:
    for number in range(3):
        shop.order(f"a:{number}")
    assert "more than 2" in shop.jarvis("runs", "list", "--limit", "2")[2]
    assert shop.jarvis("runs", "list", "--limit", "3")[2] == ""
    assert "no run fits" in shop.jarvis("runs", "list", "--name", "nothing")[2]


def test_a_run_without_a_history_is_listed_and_shown_too(shop: Any) -> None:
    shop.order("a:1")
    shop.without_history("plain:1")
    assert ids(shop) == ["plain:1", "a:1"]
    assert ids(shop, "--tag", "plain") == ["plain:1"]
    assert ids(shop, "--text", "PLAIN:") == ["plain:1"]
    code, out, _ = shop.jarvis("runs", "show", "plain:1")
    assert code == 0
    assert "keeps no history" in out
    assert "keeps no history" in shop.jarvis("runs", "watch", "plain:1")[2]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["list", "--status", "lost"], "there is no status 'lost'"),
        (["list", "--since", "yesterday"], "is no time"),
        (["answer", "a:1", "not json"], "is not JSON"),
        (["answer", "a:1", "1", "--run", "r"], "--run and --interrupt together"),
        (["cancel"], "either their workflow ids, or options"),
        (["cancel", "a:1", "--status", "failed"], "either their workflow ids, or options"),
        (["cancel", "a:1", "a:2", "--run", "r"], "--run goes with one workflow id"),
        (["retry", "--status", "completed"], "a run that is completed cannot be retried"),
    ],
)
def test_what_cannot_be_meant_is_misuse(shop: Any, command: list[str], said: str) -> None:
    code, out, err = shop.jarvis("runs", *command)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_run_is_shown_with_its_history_and_how_to_answer_it(shop: Any) -> None:
    run_id = shop.order("gold 1", "gold")
    code, out, _ = shop.jarvis("runs", "show", "gold 1")
    assert code == 0
    assert "status    suspended" in out
    assert "pay for gold?" in out
    assert f"jarvis runs approve 'gold 1' --run {run_id} --interrupt 1" in out
    shown = json.loads(shop.jarvis("runs", "show", "gold 1", "--json")[1])
    assert [line["kind"] for line in shown["history"]] == ["started", "claimed", "suspended"]
    assert (shown["waits_for"]["interruptId"], shown["answered"]) == (1, False)


def test_nothing_is_shown_of_what_never_was(shop: Any) -> None:
    code, out, err = shop.jarvis("runs", "show", "nowhere")
    assert (code, out) == (1, "")
    assert "nothing is known of 'nowhere'" in err


def test_the_command_that_is_shown_approves_and_a_second_time_changes_nothing(shop: Any) -> None:
    shop.order("gold:1", "gold")
    shown = shop.jarvis("runs", "show", "gold:1")[1]
    command = next(line for line in shown.splitlines() if line.startswith("answer it: "))
    typed = shlex.split(command.removeprefix("answer it: jarvis "))

    assert shop.jarvis(*typed)[0] == 0
    assert "its answer is recorded" in shop.jarvis("runs", "show", "gold:1")[1]
    code, _, err = shop.jarvis(*typed)
    assert (code, "had been given before" in err) == (0, True)
    code, _, err = shop.jarvis(*typed, "--reject-all")
    assert (code, "cannot be changed" in err) == (1, True)

    shop.work("gold:1")
    assert ids(shop, "--status", "completed") == ["gold:1"]


def test_single_actions_are_rejected_with_a_reason(shop: Any) -> None:
    run_id = shop.order("gold:1", "gold")
    fence = ("--run", run_id, "--interrupt", "1")
    code, _, err = shop.jarvis("runs", "approve", "gold:1", *fence, "--reject", "burn")
    assert (code, "there is no action 'burn': it asks for pay, ship" in err) == (2, True)
    assert shop.jarvis("runs", "approve", "gold:1", *fence, "--reject", "ship", "--reason", "snow")[0] == 0
    control = json.loads(shop.client.runtime.store.get("gold:1", "__control"))
    assert '"reject", "snow"' in json.dumps(control)


def test_an_answer_names_its_question_unless_a_person_sees_it(shop: Any) -> None:
    run_id = shop.order("any:1", "any")
    code, _, err = shop.jarvis("runs", "answer", "any:1", '"red"')
    assert code == 2
    assert f"jarvis runs answer any:1 --run {run_id} --interrupt 1" in err

    code, _, err = shop.jarvis("runs", "answer", "any:1", '"red"', "--run", run_id, "--interrupt", "2")
    assert (code, "does not wait for interruption #2" in err) == (1, True)
    assert shop.jarvis("runs", "answer", "any:1", '"red"', "--run", run_id, "--interrupt", "1")[0] == 0
    shop.work("any:1")
    code, _, err = shop.jarvis("runs", "answer", "any:1", '"red"')
    assert (code, "waits for no answer" in err) == (1, True)


def test_an_action_for_many_is_previewed_and_done_with_yes_only(shop: Any) -> None:
    shop.break_down()
    for number in range(12):
        shop.order(f"a:{number}")
    shop.order("other:1", tag="t")

    code, out, err = shop.jarvis("runs", "retry", "--text", "a:")
    assert (code, out) == (2, "")
    assert "12 runs would be retried, 2 of them not shown: nothing was done; add --yes to do it" in err
    assert len(err.splitlines()) == 11

    code, out, err = shop.jarvis("runs", "retry", "--text", "a:", "--yes")
    assert (code, len(out.splitlines()), err) == (0, 12, "")
    assert "no run fits" in shop.jarvis("runs", "retry", "--tag", "unknown", "--yes")[2]


def test_runs_are_ended_and_discarded_by_their_ids(shop: Any) -> None:
    shop.order("any:1", "any")
    shop.order("any:2", "any")
    code, out, _ = shop.jarvis("runs", "cancel", "any:1", "--json")
    assert (code, json.loads(out)[0]["cancelled"]) == (0, True)
    assert shop.jarvis("runs", "abandon", "any:2")[:2] == (0, "abandoned  any:2\n")
    assert [row["status"] for row in rows(shop)] == ["abandoned", "cancelled"]


def test_what_cannot_be_done_is_said_for_each_run(shop: Any) -> None:
    shop.order("done:1", name="kept-orders")
    shop.order("any:1", "any")
    code, out, err = shop.jarvis("runs", "cancel", "done:1", "any:1", "gone:1")
    assert code == 1
    assert out == "cancelled  any:1\n"
    assert "is completed and retained" in err
    assert err.splitlines()[-1] == "jarvis: 2 of 3 runs could not be cancelled"
    code, _, err = shop.jarvis("runs", "retry", "done:1")
    assert (code, "could be retried" in err) == (1, True)
    code, _, err = shop.jarvis("runs", "abandon", "done:1", "--run", "another")
    assert (code, "is not current" in err) == (1, True)


def test_a_kept_result_survives_a_resume(shop: Any) -> None:
    shop.order("done:1", name="kept-orders")
    assert shop.jarvis("runs", "resume", "done:1")[0] == 1
    assert shop.client.runtime.store.entry("done:1").due is None


def test_a_failed_run_that_is_tried_again_by_itself_says_when(shop: Any) -> None:
    shop.break_down()
    shop.order("a:1", name="patient-orders")
    assert "again at" in shop.jarvis("runs", "list")[1]
    assert rows(shop)[0]["retry_at"] is not None
    shop.mend()
    assert shop.jarvis("runs", "retry", "a:1")[0] == 0
    shop.work("a:1")
    assert ids(shop, "--status", "completed") == ["a:1"]


def test_watching_a_run_that_is_over_tells_its_story_and_how_it_ended(shop: Any) -> None:
    shop.order("a:1")
    code, out, err = shop.jarvis("runs", "watch", "a:1")
    assert (code, err) == (0, "jarvis: a:1 is completed\n")
    assert [line.split()[2] for line in out.splitlines()] == ["started", "claimed", "step", "completed"]
    shop.break_down()
    shop.order("a:2")
    code, out, err = shop.jarvis("runs", "watch", "a:2", "--json")
    assert (code, err) == (1, "jarvis: a:2 is failed\n")
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["started", "claimed", "step", "failed"]


def test_a_run_is_followed_while_somebody_else_executes_it(shop: Any) -> None:
    run_id = shop.order("any:1", "any")
    answering = threading.Timer(
        0.5, lambda: (shop.client.answer("any:1", "red", run_id=run_id, interrupt_id=1), shop.work("any:1"))
    )
    answering.start()
    code, out, err = shop.jarvis("runs", "watch", "any:1")
    answering.join()
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()][2:] == ["suspended", "answered", "claimed", "step", "completed"]
    assert err.splitlines()[0] == f"jarvis: it waits: jarvis runs answer any:1 --run {run_id} --interrupt 1 'JSON'"


def test_what_a_run_streams_is_watched_too(shop: Any) -> None:
    shop.order("a:1", name="streamed-orders")
    code, out, _ = shop.jarvis("runs", "watch", "a:1")
    assert code == 0
    frames = [line.split(maxsplit=1) for line in out.splitlines() if "frame" in line or "stream." in line]
    assert frames == [["frame", '{"packed": 1}'], ["stream.completed", '{"workflow_id": "a:1"}']]
    told = [json.loads(line) for line in shop.jarvis("runs", "watch", "a:1", "--json")[1].splitlines()]
    assert {"kind": "frame", "attempt": 1, "sequence": 0, "type": "frame", "data": {"packed": 1}} in told


def test_what_an_earlier_run_streamed_is_not_taken_for_that_of_this_one(shop: Any) -> None:
    first = shop.order("a:1", name="streamed-orders")
    shop.order("a:1")
    assert "packed" not in shop.jarvis("runs", "watch", "a:1")[1]
    assert "packed" in shop.jarvis("runs", "watch", "a:1", "--run", first)[1]


class Terminal(io.StringIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def test_a_person_in_front_sees_the_question_and_agrees_to_answer_it(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = shop.order("any:1", "any")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, _, err = shop.jarvis("runs", "answer", "any:1", '"red"')
    assert (code, '"eventName": "color"' in err) == (1, True)
    assert not shop.client.runtime.engine.inspect("any:1").input_accepted

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    code, out, _ = shop.jarvis("runs", "answer", "any:1", '"red"', "--json")
    assert (code, json.loads(out)) == (
        0,
        {"workflow_id": "any:1", "run_id": run_id, "interrupt_id": 1, "accepted": True},
    )


def test_a_person_in_front_is_asked_before_many_runs_are_ended(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.order("any:1", "any")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, _, err = shop.jarvis("runs", "cancel", "--status", "suspended")
    assert (code, "1 run would be cancelled" in err) == (1, True)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert shop.jarvis("runs", "cancel", "--status", "suspended")[:2] == (0, "cancelled  any:1\n")


def test_an_answer_is_read_from_stdin(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = shop.order("any:1", "any")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"long": "answer"}'))
    assert shop.jarvis("runs", "answer", "any:1", "-", "--run", run_id, "--interrupt", "1")[0] == 0


def test_a_run_with_a_codec_of_its_own_can_be_listed_and_answered(shop: Any) -> None:
    shop.order("secret:1", "any", name="secret-orders")
    assert ids(shop) == ["secret:1"]
    assert shop.client.signal("secret:1", "color", "red")
