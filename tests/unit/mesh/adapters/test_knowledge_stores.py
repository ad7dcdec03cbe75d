"""Knowledge stores where no server is needed."""

import fakeredis
import pytest

from mesh.knowledge import InMemoryKnowledgeStore, KnowledgeStoreError, RedisKnowledgeStore
from mesh.knowledge.testing import KnowledgeStoreContract


class TestInMemoryKnowledgeStore(KnowledgeStoreContract):
    @pytest.fixture
    def store(self):
        return InMemoryKnowledgeStore()


class TestRedisKnowledgeStoreOnFakeRedis(KnowledgeStoreContract):
    @pytest.fixture
    def store(self):
        return RedisKnowledgeStore(fakeredis.FakeRedis())


def test_two_prefixes_on_one_server_are_apart():
    client = fakeredis.FakeRedis()
    RedisKnowledgeStore(client, "one:").put("a", "note")
    assert RedisKnowledgeStore(client, "other:").get("a") is None
    assert [key.decode() for key in client.scan_iter()] == ["one:a"]


def test_a_note_that_is_not_text_is_an_error_that_names_its_key():
    client = fakeredis.FakeRedis()
    client.set("jarvis:knowledge:a", b"\xff")
    with pytest.raises(KnowledgeStoreError, match="'jarvis:knowledge:a' is not text"):
        RedisKnowledgeStore(client).get("a")


def test_a_key_of_another_kind_is_told():
    client = fakeredis.FakeRedis()
    client.lpush("jarvis:knowledge:a", "x")
    with pytest.raises(KnowledgeStoreError, match="another program"):
        RedisKnowledgeStore(client).get("a")
