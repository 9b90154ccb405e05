from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import register
from lakelog.spark.format import register as _register

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = {
    "spark.databricks.delta.maxCommitAttempts": "7",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.fs.s3a.secret.key": "SECRET-of-s3",
    "fs.azure.account.key": "SECRET-of-azure",
    "spark.lakelog.commit.timeBudget": "33",
}
FOREIGN = {
    "spark.sql.catalog.db.password": "CANARY",
    "spark.hadoop.javax.jdo.option.ConnectionPassword": "CANARY",
    "spark.mystore.token": "CANARY",
    "spark.lakelog.catalog.lake.token": "CANARY",
    "spark.lakelog.commit.service": "http://127.0.0.1:1",
    "spark.lakelog.commit.service.token": "CANARY",
}
ROWS = StructType([StructField("id", LongType())])


class _Session(SimpleNamespace):
    """What is known of a session is kept by the session."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def registered(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> Any:
    """The class that a session with all these keys is given."""
    given: list[Any] = []
    conf = SimpleNamespace(getAll={**NEEDED, **FOREIGN}, set=lambda *_: None)
    source = SimpleNamespace(register=given.append)
    monkeypatch.setattr(_register, "ship", lambda _: None)
    monkeypatch.setattr(_register, "ship_to_streams", lambda _: None)
    monkeypatch.setattr(_register, "is_ours", lambda *_: True)
    monkeypatch.setattr(_register, "note_accepted", lambda _: None)
    session: Any = _Session(conf=conf, dataSource=source, sparkContext=None)
    register(session, **arguments)
    assert [each.name() for each in given] == ["lakelog", "delta"]
    assert given[0].conf is given[1].conf
    return given[0]


def test_what_is_registered_carries_the_keys_of_tables_and_stores_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cls = registered(monkeypatch)
    assert cls.conf == NEEDED
    assert b"CANARY" not in cloudpickle.dumps(cls)


def test_what_goes_on_to_executors_carries_no_secret_of_another_storage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    source = registered(monkeypatch)({"path": path})
    for job in source.reader(ROWS), source.writer(ROWS, overwrite=False):
        sent = cloudpickle.dumps(job)
        assert b"SECRET" not in sent
        assert b"CANARY" not in sent


def test_keys_of_ones_own_store_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"spark.mystore.token": "CANARY"}
    assert registered(monkeypatch, conf_keys=["spark.mystore."]).conf == {**NEEDED, **own}


@pytest.mark.parametrize("named", ["spark.sql.catalog.lake", "spark.sql.catalog.lake."])
def test_the_keys_of_one_catalog_are_not_those_of_one_that_begins_alike(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    mine = {"spark.sql.catalog.lake.uri": "https://a", "spark.sql.catalog.lake.token": "MINE"}
    others = {key.replace("lake", "lake2"): "CANARY" for key in mine}
    for key, value in {**mine, **others}.items():
        monkeypatch.setitem(FOREIGN, key, value)
    assert registered(monkeypatch, conf_keys=[named]).conf == {**NEEDED, **mine}


@pytest.mark.parametrize("wrong", ["spark.mystore.", [""], ["spark.a", ""], ["."]])
def test_what_would_send_other_keys_than_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    with pytest.raises(DeltaAnalysisError, match="conf_keys must be a list"):
        registered(monkeypatch, conf_keys=wrong)
