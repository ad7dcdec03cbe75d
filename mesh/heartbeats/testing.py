"""The contract of a heartbeat store as tests, for every adapter, also one of your own.

Subclass `HeartbeatStoreContract` in a test module and give it a fixture ``store`` that returns an empty store whose clock
is about right.
"""

import datetime as dt

import pytest

from mesh.errors import MeshError
from mesh.ports import JarvisHeartbeatStore

__all__ = ["HeartbeatStoreContract"]

_LONG_AGO = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)
_MINUTE = dt.timedelta(minutes=1)


class HeartbeatStoreContract:
    """What `mesh.ports.JarvisHeartbeatStore` promises. Each test gets a new, empty ``store``."""

    def test_an_agent_that_never_beat_was_never_seen(self, store: JarvisHeartbeatStore) -> None:
        assert store.last_seen("research") is None
        assert store.all() == {}

    def test_a_beat_without_a_time_counts_as_now(self, store: JarvisHeartbeatStore) -> None:
        store.beat("research")
        seen = store.last_seen("research")
        assert seen is not None
        assert abs(dt.datetime.now(dt.UTC) - seen) < _MINUTE

    def test_a_beat_keeps_its_time_to_the_microsecond(self, store: JarvisHeartbeatStore) -> None:
        store.beat("research", _LONG_AGO)
        assert store.last_seen("research") == _LONG_AGO
        assert store.all() == {"research": _LONG_AGO}

    def test_the_newest_beat_wins_in_whatever_order_they_come(self, store: JarvisHeartbeatStore) -> None:
        for seconds in (5, 9, 2):
            store.beat("research", _LONG_AGO + seconds * _SECOND)
        assert store.last_seen("research") == _LONG_AGO + 9 * _SECOND

    def test_a_beat_from_the_future_counts_as_now(self, store: JarvisHeartbeatStore) -> None:
        store.beat("research", dt.datetime.now(dt.UTC) + dt.timedelta(days=400))
        seen = store.last_seen("research")
        assert seen is not None
        assert seen < dt.datetime.now(dt.UTC) + _MINUTE

    def test_times_of_any_zone_come_back_in_utc(self, store: JarvisHeartbeatStore) -> None:
        store.beat("research", _LONG_AGO.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30))))
        seen = store.last_seen("research")
        assert seen is not None
        assert (seen, seen.utcoffset()) == (_LONG_AGO, dt.timedelta(0))

    def test_agents_are_kept_apart(self, store: JarvisHeartbeatStore) -> None:
        names = ["research", "worker:host:1", "Übersicht 𝄞", "research "]
        for place, name in enumerate(names):
            store.beat(name, _LONG_AGO + place * _SECOND)
        assert store.all() == {name: _LONG_AGO + place * _SECOND for place, name in enumerate(names)}

    def test_an_agent_is_forgotten_unless_it_has_beaten_since(self, store: JarvisHeartbeatStore) -> None:
        for seconds in (0, 5):
            store.beat("research", _LONG_AGO + seconds * _SECOND)
        store.beat("briefing", _LONG_AGO)
        assert not store.forget("research", _LONG_AGO)
        assert not store.forget("nobody", _LONG_AGO)
        assert store.forget("research", _LONG_AGO + 5 * _SECOND)
        assert store.all() == {"briefing": _LONG_AGO}
        store.beat("research", _LONG_AGO - _SECOND)
        assert store.last_seen("research") == _LONG_AGO - _SECOND

    def test_a_time_without_a_zone_is_refused(self, store: JarvisHeartbeatStore) -> None:
        with pytest.raises(MeshError, match="no time zone"):
            store.beat("research", _LONG_AGO.replace(tzinfo=None))
        assert store.all() == {}

    def test_a_name_that_is_no_line_of_text_is_refused(self, store: JarvisHeartbeatStore) -> None:
        for name in ("", "a\nb", "\ud800", "x" * 513):
            with pytest.raises(MeshError, match="name of an agent"):
                store.beat(name)
        assert store.all() == {}
