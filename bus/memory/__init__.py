"""The bus in the memory of one process."""

from bus.memory.bus import InMemorySignalBus

__all__ = ["InMemorySignalBus"]
