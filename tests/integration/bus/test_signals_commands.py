"""`jarvis signals` as it is typed: data on stdout, words on stderr, exit codes 0, 1 and 2."""

import io
import json
import sys

import pytest

from bus import Signal, SignalConsumer, open_bus
from console.main import run

pytestmark = pytest.mark.server


@pytest.fixture
def jarvis(redis_url, tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in this process and gives exit code, stdout and stderr."""
    monkeypatch.setenv("JARVIS_REDIS_URL", redis_url)
    monkeypatch.setenv("JARVIS_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def typed(*arguments, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(["signals", *arguments])
        return code, *capsys.readouterr()

    return typed


def test_a_fact_is_published_once_and_shown_by_its_age(jarvis):
    code, out, err = jarvis("publish", "day/1", "briefing.ready", "-", "--json", stdin='{"date": "2026-11-30"}')
    assert (code, err) == (0, "")
    first = json.loads(out)
    assert (first["id"], first["payload"]) == ("day/1", {"date": "2026-11-30"})
    code, out, err = jarvis("publish", "day/1", "briefing.ready", '{"date": "other"}', "--json")
    assert (code, json.loads(out)) == (0, first)
    assert err == "jarvis: 'day/1' was published before, and the first content stays: publish other content under another id\n"
    code, out, err = jarvis("publish", "day/1", "briefing.ready", '{"date": "other"}', "--strict")
    assert (code, out) == (1, "")
    assert "publish new content under a new id" in err
    assert json.loads(jarvis("tail", "--topic", "briefing.*", "--since", "1h", "--json")[1]) == first
    assert jarvis("publish", "x", "not a topic")[0] == 2


def test_dead_letters_are_listed_counted_replayed_and_discarded(jarvis, redis_url):
    bus = open_bus(redis_url)
    bus.publish_many([Signal(name, "alert.new", {}) for name in ("a", "b", "c")])

    def failing(signal):
        raise ConnectionError(f"refused {signal.id}")

    SignalConsumer(bus, "alerts", failing, topics=("alert.#",), max_deliveries=1).drain()
    code, out, err = jarvis("dead", "list", "alerts", "--json")
    assert (code, err) == (0, "")
    assert [(letter["id"], letter["attempts"], letter["error"]) for letter in json.loads(out)] == [
        (name, 1, f"ConnectionError: refused {name}") for name in ("a", "b", "c")
    ]
    assert jarvis("dead", "replay", "alerts", "a")[:2] == (0, "replayed 1 of 1\n")
    code, out, err = jarvis("dead", "discard", "alerts", "--error", "refused")
    assert (code, out) == (1, "")
    assert err == "jarvis: 2 dead letters of group 'alerts' would be discarded: add --yes to do it\n"
    code, out, err = jarvis("dead", "discard", "alerts", "--error", "refused", "--yes", "--json")
    assert (code, json.loads(out), err) == (0, {"group": "alerts", "chosen": 2, "discarded": 2}, "")
    code, out, err = jarvis("groups", "--json")
    (group,) = json.loads(out)
    assert (code, group["name"], group["retrying"], group["dead"], group["abandoned"]) == (0, "alerts", 1, 0, True)
    assert err == "jarvis: signals wait for group 'alerts', and no consumer of it is running\n"
    assert jarvis("dead", "replay", "alerts")[0] == 2
    assert jarvis("dead", "replay", "alerts", "a", "--all")[0] == 2
    assert jarvis("dead", "list", "alrets")[0] == 1
