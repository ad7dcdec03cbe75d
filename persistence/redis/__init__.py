"""The store in Redis or Valkey, and the link to the server that the bus and the mesh reuse."""

from persistence.redis.link import RedisLink, Script, connect, load_script
from persistence.redis.store import RedisPersistence

__all__ = ["RedisLink", "RedisPersistence", "Script", "connect", "load_script"]
