"""From URLs to buses, and what a bare import loads."""

import subprocess
import sys

import pytest

import bus
from bus import BusError, InMemorySignalBus, open_bus


def test_the_scheme_chooses_the_bus():
    assert isinstance(open_bus("memory://"), InMemorySignalBus)
    for url in ("redis://localhost:1/0", "rediss://localhost:1/0", "unix:///nowhere/s?db=0"):
        assert isinstance(open_bus(url), bus.RedisSignalBus)


@pytest.mark.parametrize("url", ["", "localhost:6379", "amqp://x", "http://x"])
def test_an_unknown_scheme_is_told_with_the_known_ones(url):
    with pytest.raises(BusError, match=r"memory://, redis://, rediss://, unix://"):
        open_bus(url)


def test_a_broken_url_is_told_without_its_password():
    with pytest.raises(BusError, match="cannot read the URL") as refusal:
        open_bus("redis://user:secret@host:port/0")
    assert "secret" not in str(refusal.value)


def test_a_server_that_is_not_there_is_told_in_one_line():
    with pytest.raises(BusError, match="start it or correct its URL"):
        open_bus("unix:///nowhere/s?db=0").join("g", "c", takeover_after=1).take(1)


def test_every_exported_name_exists():
    assert len(set(bus.__all__)) == len(bus.__all__)
    assert all(getattr(bus, name) for name in bus.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = bus.nothing


def test_importing_the_room_loads_no_redis_client():
    program = "import bus, sys; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
