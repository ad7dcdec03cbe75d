"""All that one write touches shares a slot of a Cluster, and the stored format does not move."""

import pytest
from redis.crc import key_slot

from persistence.redis.keys import SHARDS, Keys, shard_of


@pytest.mark.parametrize("prefix", ["jarvis:workflow:", "", "app{1}:"])
def test_the_keys_of_one_write_share_a_slot(prefix):
    keys = Keys(prefix, 17)
    touched = [keys.partition("a{b}"), keys.partition(""), keys.due, keys.entries, keys.lookup, keys.log("x{y}")]
    assert len({key_slot(key.encode()) for key in touched}) == 1


def test_the_keys_of_two_tags_differ():
    one, other = Keys("p:", 1), Keys("p:", 2)
    assert {one.due, one.entries, one.lookup}.isdisjoint({other.due, other.entries, other.lookup})
    assert key_slot(one.due.encode()) != key_slot(other.due.encode())


def test_the_tag_of_a_partition_is_part_of_the_stored_format():
    stored = {"": 0, "jarvis-briefing-2026-11-30": 48, "watchdog": 56, "caf\u00e9": 53}
    assert {name: shard_of(name) for name in stored} == stored


def test_partitions_spread_over_all_tags():
    assert {shard_of(f"partition {place}") for place in range(2000)} == set(range(SHARDS))
