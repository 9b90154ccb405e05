"""A name service of two NameNodes: commits go on when the other one becomes active."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import HDFSLogStore
from support.servers._service import ServerUnavailableError
from support.servers.hdfs import run_hdfs_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.hdfs import HdfsPair

pytestmark = pytest.mark.needs("hdfs")

FOLDER = "hdfs://pair/t/_delta_log"


@pytest.fixture
def pair() -> Iterator[HdfsPair]:
    try:
        with run_hdfs_pair() as pair:
            yield pair
    except ServerUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.one_day_in(3, 2)
def test_a_standby_is_given_up_in_time_and_writers_go_on_over_a_failover(
    pair: HdfsPair, caplog: pytest.LogCaptureFixture
) -> None:
    """Two writers append to one log while the active NameNode becomes the standby."""
    caplog.set_level(logging.WARNING)
    alone = {**pair.second.conf, "spark.lakelog.store.retry.timeBudget": "0.3"}
    with pytest.raises(OSError, match=r"StandbyException.*given up after 0\.3 s"):
        HDFSLogStore(alone).write(f"{pair.second.uri}/t/0.json", ["x"])
    store = HDFSLogStore(pair.conf)
    store.create_folder(FOLDER)
    halfway = threading.Event()
    won: dict[str, list[int]] = {"a": [], "b": []}

    def append(name: str) -> None:
        writer, version = HDFSLogStore(pair.conf), 0
        while len(won[name]) < 12:
            try:
                writer.write(f"{FOLDER}/{version:020d}.json", [f"{name} {version}"])
                won[name].append(version)
            except FileExistsError:
                pass
            version += 1
            if len(won[name]) == 3:
                halfway.set()

    writers = [threading.Thread(target=append, args=(name,)) for name in won]
    for each in writers:
        each.start()
    assert halfway.wait(60)
    pair.first.order("failover")
    for each in writers:
        each.join(120)
    assert sorted(won["a"] + won["b"]) == list(range(24))
    # Asked of the new active one alone.
    second = HDFSLogStore(pair.second.conf)
    log = f"{pair.second.uri}/t/_delta_log"
    assert [each.name for each in second.list_from(log + "/")] == [
        f"{n:020d}.json" for n in range(24)
    ]
    for name, versions in won.items():
        for version in versions:
            assert list(second.read(f"{log}/{version:020d}.json")) == [f"{name} {version}"]
    # One that starts now meets a standby first, on both ports.
    late = HDFSLogStore(pair.conf)
    late.write(f"{FOLDER}/{24:020d}.json", ["late"])
    assert list(late.read(f"{FOLDER}/{24:020d}.json")) == ["late"]
    assert late._hdfs.at("pair")[1].is_usable
