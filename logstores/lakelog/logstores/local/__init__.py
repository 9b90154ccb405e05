"""A log on a local or mounted file system."""

from lakelog.logstores.local.store import LocalLogStore

__all__ = ["LocalLogStore"]
