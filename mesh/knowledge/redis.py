"""Notes in Redis or Valkey.

key             type    what                  written by
<prefix><key>   string  one note, as UTF-8    put; no time to live
"""

from typing import cast

from mesh.knowledge.errors import KnowledgeStoreError
from mesh.knowledge.notes import check_key, check_note
from persistence.redis import Client, RedisLink

__all__ = ["DEFAULT_PREFIX", "RedisKnowledgeStore"]

DEFAULT_PREFIX = "jarvis:knowledge:"


class RedisKnowledgeStore:
    """`mesh.ports.JarvisKnowledgeStore` with one string for each note. ``client`` gives the address."""

    def __init__(self, client: Client, prefix: str = DEFAULT_PREFIX) -> None:
        self._link = RedisLink(client, error=KnowledgeStoreError)
        self._prefix = prefix

    def put(self, key: str, value: str) -> None:
        """See `JarvisKnowledgeStore.put`. Repeated when a reply is lost: it says the same again."""
        check_note(key, value)
        self._link.repeat(lambda client: client.set(self._prefix + key, value.encode()))

    def get(self, key: str) -> str | None:
        """See `JarvisKnowledgeStore.get`."""
        check_key(key)
        stored = cast(bytes | None, self._link.repeat(lambda client: client.get(self._prefix + key))[0])
        try:
            return None if stored is None else stored.decode()
        except UnicodeDecodeError as trouble:
            raise KnowledgeStoreError(f"the note at {self._prefix + key!r:.120} is not text: remove that key") from trouble
