"""The clients of HDFS across a fork."""

from __future__ import annotations

from lakelog.logstores.hdfs import access as _hdfs_access
from lakelog.logstores.hdfs.access import Hdfs


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    hdfs = Hdfs({})
    _, web = hdfs.at("nn:8020")
    with hdfs._lock, web._lock:
        _hdfs_access._reset_after_fork()
        assert hdfs._lock.acquire(blocking=False)
        assert web._lock.acquire(blocking=False)
