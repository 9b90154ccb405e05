"""What row tracking asks of a table's metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from support.samples import numbers
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from collections.abc import Mapping

ENABLED = {"delta.enableRowTracking": "true"}
ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def configuration(log: DeltaLog) -> Mapping[str, str]:
    return log.update().metadata.configuration


def set_properties(log: DeltaLog, **properties: str) -> int:
    txn = log.start_transaction()
    wanted = {**txn.metadata.configuration, **{f"delta.{k}": v for k, v in properties.items()}}
    txn.update_metadata(replace(txn.metadata, configuration=wanted))
    return txn.commit([], Operation("SET TBLPROPERTIES"))


@pytest.mark.parametrize("properties", [ENABLED, {"delta.feature.rowTracking": "supported"}])
def test_a_new_table_draws_the_names(uri: str, properties: dict[str, str]) -> None:
    log = new_table(uri, properties=properties)
    said = configuration(log)
    assert said[ROW_ID].startswith("_row-id-col-")
    assert said[VERSION].startswith("_row-commit-version-col-")
    assert {"rowTracking", "domainMetadata"} <= set(log.update().protocol.writer_features or ())
    set_properties(log, checkpointInterval="7")
    assert {**said, "delta.checkpointInterval": "7"} == configuration(log)


def test_names_outlive_metadata_that_forgets_them(uri: str) -> None:
    log = new_table(uri, properties=ENABLED)
    said = dict(configuration(log))
    txn = log.start_transaction()
    txn.changes.update_metadata_for_new_table(replace(txn.metadata, configuration=ENABLED))
    txn.commit([], Operation("REPLACE TABLE"))
    assert configuration(log) == said


def test_a_table_without_the_feature_has_no_names(uri: str) -> None:
    log = new_table(uri)
    set_properties(log, checkpointInterval="7")
    assert ROW_ID not in configuration(log)
    log.upgrade_protocol(features=["rowTracking"])
    set_properties(log, checkpointInterval="8")
    assert ROW_ID not in configuration(log)
    set_properties(log, enableRowTracking="true")
    assert ROW_ID in configuration(log)


def test_a_column_may_not_have_the_name(uri: str) -> None:
    log = new_table(uri, properties=ENABLED)
    name = configuration(log)[VERSION]
    txn = log.start_transaction()
    schema = schema_json(id="long", **{name.upper(): "long"})
    with pytest.raises(DeltaAnalysisError, match="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"):
        txn.update_metadata(replace(txn.metadata, schema_string=schema))


def test_enabled_and_suspended_do_not_go_together(uri: str) -> None:
    log = new_table(uri, properties=ENABLED)
    expected = "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"
    with pytest.raises(DeltaAnalysisError, match=expected):
        set_properties(log, rowTrackingSuspended="true")
    set_properties(log, rowTrackingSuspended="true", enableRowTracking="false")
    with pytest.raises(DeltaAnalysisError, match=expected):
        set_properties(log, enableRowTracking="true")


def test_enabling_waits_until_every_file_has_its_ids(uri: str) -> None:
    log = new_table(uri)
    log.start_transaction().commit([add_file("a")], Operation.write("Append"))
    with pytest.raises(DeltaAnalysisError, match="lacks the table feature rowTracking"):
        set_properties(log, enableRowTracking="true")
    log.upgrade_protocol(features=["rowTracking"])
    with pytest.raises(DeltaAnalysisError, match="1 of its 1 files have no row ids"):
        set_properties(log, enableRowTracking="true")
    txn = log.start_transaction()
    assert txn.snapshot is not None
    (a,) = txn.snapshot.files()
    txn.commit([a], Operation.manual())
    assert set_properties(log, enableRowTracking="true") == 4


def test_the_columns_that_carry_ids_are_no_data(uri: str) -> None:
    write_arrow(uri, numbers(0, 2), properties=ENABLED, mode="append")
    log = DeltaLog.for_table(uri)
    hidden = [configuration(log)[ROW_ID], configuration(log)[VERSION]]
    # As delta-spark writes rows that it moved.
    rows = numbers(2, 2)
    for name in hidden:
        rows = rows.append_column(name, pa.array([7, 8], pa.int64()))
    (file,) = log.update().files()
    pq.write_table(rows, Path(uri) / file.path)
    assert log.update().to_arrow().column_names == ["id", "name", "p"]
    assert log.update().to_arrow()["id"].to_pylist() == [2, 3]
