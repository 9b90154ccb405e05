"""A store of the user's, whose module is on the driver's path alone."""

from __future__ import annotations

import importlib
import sys

import pytest

from lakelog.core import write_arrow
from lakelog.logstores import LogStoreClassError
from lakelog.spark import read, unwrap_error, write

NAME = "a_store_of_the_driver"
MODULE = """
from fsspec.implementations.local import LocalFileSystem
from pyarrow.fs import FSSpecHandler, PyFileSystem

from lakelog.logstores import LocalLogStore


class Files(FSSpecHandler):
    pass


class Store(LocalLogStore):
    @property
    def filesystem(self):
        return PyFileSystem(Files(LocalFileSystem()))
"""


@pytest.fixture
def own_store(spark, tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module(NAME)
    key = "spark.delta.logStore.class"
    spark.conf.set(key, f"{NAME}.Store")
    yield {key: f"{NAME}.Store"}
    spark.conf.unset(key)
    sys.modules.pop(NAME)


def test_a_write_says_what_the_workers_lack(spark, tmp_path, own_store):
    spark.conf.set("spark.lakelog.write.path", "arrow")
    try:
        with pytest.raises(Exception, match="can't be imported on Spark's workers") as caught:
            write(spark.range(3)).save(str(tmp_path / "t"))
    finally:
        spark.conf.unset("spark.lakelog.write.path")
    assert isinstance(unwrap_error(caught.value), LogStoreClassError)
    assert "SparkContext.addPyFile" in str(caught.value)


def test_a_read_says_what_the_workers_lack(spark, tmp_path, own_store):
    import pyarrow as pa

    write_arrow(str(tmp_path / "t"), pa.table({"id": [1, 2]}), conf=own_store)
    spark.conf.set("spark.lakelog.read.path", "arrow")
    try:
        with pytest.raises(Exception, match="can't be imported on Spark's workers") as caught:
            read(spark).load(str(tmp_path / "t")).collect()
    finally:
        spark.conf.unset("spark.lakelog.read.path")
    assert isinstance(unwrap_error(caught.value), LogStoreClassError)
