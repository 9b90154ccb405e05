"""Executors in processes of their own, whose Python has another lakelog; one of them is killed.

Spark's `local-cluster`, which is what of a cluster fits into CI; `test_standalone_cluster.py` is
the rest.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from deltalake import DeltaTable

from support.bare_python import OF_LAKELOG, OTHER_LAKELOG, bare_python
from support.cluster_driver import Driver, Stop, kill_executor, run_driver
from support.cluster_rows import after

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.xdist_group("local-cluster"), pytest.mark.timeout(280)]

_WORK = Path(pyspark.__path__[0]) / "work"
"""Where `local-cluster` has its executors' folders; it takes no other place."""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    home, hidden = tmp_path_factory.mktemp("python"), (*OF_LAKELOG, "orjson", "sqlglot")
    python = bare_python(home, *hidden, modules=OTHER_LAKELOG)
    before = set(_WORK.glob("*"))
    with run_driver({"spark.master": "local-cluster[2,1,1024]"}, python) as driver:
        yield driver
    for each in set(_WORK.glob("*")) - before:
        shutil.rmtree(each, ignore_errors=True)


def _rows(path: str) -> dict[int, int]:
    found = DeltaTable(path).to_pyarrow_table().to_pydict()
    assert len(found["id"]) == len(set(found["id"]))
    return dict(zip(found["id"], found["n"], strict=True))


@pytest.mark.parametrize(
    ("command", "function"),
    [("append", "write_task"), ("merge", "write_task"), ("optimize", "answered")],
)
@pytest.mark.one_day_in(6, 3)
def test_an_executor_dies_in_the_middle(
    driver: Driver, tmp_path: Path, command: str, function: str
) -> None:
    path, stop = str(tmp_path / "t"), Stop(tmp_path, function)
    driver.do("create", path)
    driver.begin(command, path, stop)
    kill_executor(driver, driver.stopped(stop))
    stop.go()
    driver.gave()
    assert _rows(path) == after("create", command)
    assert driver.do("count", path)[0] == len(after("create", command))


@pytest.mark.one_day_in(3, 1)
def test_a_stream_goes_on_without_the_executor_that_died(driver: Driver, tmp_path: Path) -> None:
    source, path, stop = str(tmp_path / "s"), str(tmp_path / "t"), Stop(tmp_path, "write_task")
    checkpoint = str(tmp_path / "checkpoint")
    driver.do("create", source)
    driver.do("append", source)
    driver.begin("stream", path, stop, source=source, checkpoint=checkpoint)
    kill_executor(driver, driver.stopped(stop))
    stop.go()
    driver.gave()
    driver.do("stream", path, source=source, checkpoint=checkpoint)
    assert _rows(path) == after("create", "append")
