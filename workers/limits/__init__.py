"""How many segments of a kind may run at once, over all workers: leased slots."""

from workers.limits.contract import Slots
from workers.limits.gate import Gate
from workers.limits.memory import InMemorySlots
from workers.limits.redis import RedisSlots

__all__ = ["Gate", "InMemorySlots", "RedisSlots", "Slots"]
