"""How whoever waits for a run hears that it is settled: wake-ups, which say "look", and nothing else."""

from workers.waking.contract import Wake, WakeUps
from workers.waking.memory import InMemoryWakeUps
from workers.waking.redis import RedisWakeUps

__all__ = ["InMemoryWakeUps", "RedisWakeUps", "Wake", "WakeUps"]
