"""Appends of a Spark driver commit as one with those of other processes of its host."""

import threading
from unittest import mock

from lakelog.core import DeltaLog
from lakelog.core.transaction import host_queue
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.spark import read, write

_PATIENCE = 60


def test_appends_of_spark_wait_for_their_turn_and_are_one_version(spark, tmp_path):
    path = str(tmp_path / "table")
    write(spark.range(1)).save(path)
    entered, has_turn, enter = (
        threading.Semaphore(0),
        HostCommits._has_turn,
        host_queue.HostQueue.enter,
    )
    is_free = threading.Event()

    def entering(queue, request):
        try:
            return enter(queue, request)
        finally:
            entered.release()

    def append(number):
        write(spark.range(number, number + 1)).mode("append").save(path)

    threads = [threading.Thread(target=append, args=(number,)) for number in (1, 2, 3)]
    spark.conf.set("spark.lakelog.commit.host", "true")
    try:
        with (
            mock.patch.object(host_queue.HostQueue, "enter", entering),
            mock.patch.object(
                HostCommits,
                "_has_turn",
                lambda commits, turn: is_free.is_set() and has_turn(commits, turn),
            ),
        ):
            for thread in threads:
                thread.start()
            for _ in threads:
                assert entered.acquire(timeout=_PATIENCE)
            is_free.set()
            for thread in threads:
                thread.join(_PATIENCE)
    finally:
        spark.conf.unset("spark.lakelog.commit.host")
    assert sorted(row.id for row in read(spark).load(path).collect()) == [
        0,
        1,
        2,
        3,
    ]
    assert DeltaLog.for_table(path).snapshot.version == 1
