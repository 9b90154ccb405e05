"""A log on HDFS."""

from lakelog.logstores.hdfs.store import HDFSLogStore

__all__ = ["HDFSLogStore"]
