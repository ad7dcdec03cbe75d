"""The bus in streams of a Redis or Valkey server."""

from bus.redis.bus import RedisSignalBus

__all__ = ["RedisSignalBus"]
