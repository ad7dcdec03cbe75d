"""The bus in streams of a Redis or Valkey server, and the channel."""

from bus.redis.bus import RedisSignalBus
from bus.redis.channel import RedisChannel

__all__ = ["RedisChannel", "RedisSignalBus"]
