"""A log in the memory of this process, for tests."""

from lakelog.logstores.memory.store import MemoryLogStore

__all__ = ["MemoryLogStore"]
