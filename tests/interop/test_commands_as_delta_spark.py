"""RESTORE, CLONE, DROP FEATURE and the like by delta-spark and by us, on twin tables."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, clone, delete_rows, restore, write_arrow
from lakelog.core.alter import (
    cluster_by,
    drop_feature,
    rename_column,
    replace_columns,
    set_properties,
    sync_identity,
)
from lakelog.core.alter.columns import change_column
from lakelog.core.errors import DeltaError
from lakelog.core.features.protocol import supported_features
from support.delta_spark_peer import DeltaSparkError
from support.samples import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", None]})
MORE = pa.table({"id": pa.array([7], pa.int32()), "name": ["z"]})
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}
WIDE = {"delta.enableTypeWidening": "true"}

Change = tuple[str, "Callable[[str], object]"]


def snapshot(path: str) -> Any:
    return DeltaLog.for_table(path).snapshot


def steps(path: str) -> None:
    """A history of five versions."""
    delete_rows(path, "id = 2")
    write_arrow(path, MORE, mode="append")
    set_properties(path, {"mine": "x"})
    delete_rows(path, "id = 7")


COMMANDS: dict[str, tuple[dict[str, str], Callable[[str], object], list[Change]]] = {
    "restore": (
        VECTORS,
        steps,
        [
            ("RESTORE TABLE {t} TO VERSION AS OF 1", lambda u: restore(u, 1)),
            ("RESTORE TABLE {t} TO VERSION AS OF 3", lambda u: restore(u, 3)),
            ("RESTORE TABLE {t} TO VERSION AS OF 0", lambda u: restore(u, 0)),
        ],
    ),
    "restore with row ids": (
        TRACKED,
        steps,
        [("RESTORE TABLE {t} TO VERSION AS OF 2", lambda u: restore(u, 2))],
    ),
    "cluster": (
        {},
        lambda u: None,
        [
            ("ALTER TABLE {t} CLUSTER BY (id)", lambda u: cluster_by(u, "id")),
            ("ALTER TABLE {t} CLUSTER BY (name, id)", lambda u: cluster_by(u, ["name", "id"])),
            ("RESTORE TABLE {t} TO VERSION AS OF 1", lambda u: restore(u, 1)),
            ("ALTER TABLE {t} CLUSTER BY NONE", lambda u: cluster_by(u)),
        ],
    ),
    "replace columns": (
        {},
        lambda u: None,
        [
            (
                "ALTER TABLE {t} REPLACE COLUMNS (name STRING, q DOUBLE, id INT COMMENT 'k')",
                lambda u: replace_columns(u, "name string, q double, id int COMMENT 'k'"),
            )
        ],
    ),
    "drop deletionVectors": (
        VECTORS,
        lambda u: delete_rows(u, "id = 2"),
        [
            (
                "ALTER TABLE {t} DROP FEATURE deletionVectors",
                lambda u: drop_feature(u, "deletionVectors"),
            )
        ],
    ),
    "drop columnMapping": (
        MAPPED,
        lambda u: rename_column(u, "name", "title"),
        [
            (
                "ALTER TABLE {t} DROP FEATURE columnMapping",
                lambda u: drop_feature(u, "columnMapping"),
            )
        ],
    ),
    "drop rowTracking": (
        TRACKED,
        lambda u: None,
        [
            ("ALTER TABLE {t} DROP FEATURE rowTracking", lambda u: drop_feature(u, "rowTracking")),
            (
                "ALTER TABLE {t} DROP FEATURE domainMetadata",
                lambda u: drop_feature(u, "domainMetadata"),
            ),
        ],
    ),
    "drop typeWidening": (
        WIDE,
        lambda u: change_column(u, "id", data_type="bigint"),
        [
            (
                "ALTER TABLE {t} DROP FEATURE typeWidening",
                lambda u: drop_feature(u, "typeWidening"),
            )
        ],
    ),
}


def without_marks(value: Any) -> Any:
    """JSON without what is drawn at random or depends on the writer of a file."""
    if isinstance(value, dict):
        return {
            k: without_marks(v)
            for k, v in value.items()
            if not k.endswith(("physicalName", "ColumnName"))
        }
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def history_of(path: str) -> list[tuple[str | None, Any, Any]]:
    """Operations, parameters and the metrics that count files, oldest first."""
    found = []
    for entry in reversed(DeltaLog.for_table(path).history()):
        parameters = {}
        for key, value in (entry.parameters or {}).items():
            try:
                parameters[key] = without_marks(json.loads(value))
            except (TypeError, ValueError):
                parameters[key] = value
        counts = {
            key: value
            for key, value in (entry.metrics or {}).items()
            if re.search("Files|numDeletionVectors", key) and "Size" not in key
        }
        if entry.operation == "REMOVE COLUMN MAPPING":
            counts = {}  # delta-spark tells bytes alone
        found.append((entry.operation, parameters, counts))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_leaves_what_delta_spark_leaves(
    delta_spark: Any, tmp_path: Path, name: str
) -> None:
    properties, before, changes = COMMANDS[name]
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_arrow(ours, ROWS, properties=properties, mode="append")
    before(ours)
    shutil.copytree(ours, theirs)
    since = len(history_of(ours))
    for sql, change in changes:
        delta_spark.sql(sql.format(t=f"delta.`{theirs}`"))
        change(ours)
        mine, its = snapshot(ours), snapshot(theirs)
        assert without_marks(mine.schema.json_value()) == without_marks(its.schema.json_value())
        assert without_marks(dict(mine.metadata.configuration)) == without_marks(
            dict(its.metadata.configuration)
        ), sql
        assert supported_features(mine.protocol) == supported_features(its.protocol), sql
        assert {key: each.configuration for key, each in mine.domain_metadata.items()} == {
            key: each.configuration for key, each in its.domain_metadata.items()
        }
        assert history_of(ours)[since:] == history_of(theirs)[since:]
        assert rows_of(mine.to_arrow()) == rows_of(its.to_arrow())
    read = rows_of(delta_spark.read(ours))
    assert rows_of(snapshot(ours).to_arrow()) == read
    assert rows_of(snapshot(theirs).to_arrow()) == read
    delta_spark.sql(f"INSERT INTO delta.`{ours}` SELECT * FROM delta.`{theirs}`")
    assert snapshot(ours).to_arrow().num_rows == 2 * len(read)


def test_identity_columns_go_on_alike(delta_spark: Any, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    delta_spark.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT)"
        " USING delta"
    )
    delta_spark.sql(f"INSERT INTO delta.`{theirs}` (id, v) VALUES (10, 1), (22, 2)")
    shutil.copytree(theirs, ours)
    delta_spark.sql(f"ALTER TABLE delta.`{theirs}` ALTER COLUMN id SYNC IDENTITY")
    sync_identity(ours, "id")
    assert snapshot(ours).schema.json_value() == snapshot(theirs).schema.json_value()
    assert history_of(ours) == history_of(theirs)


@pytest.mark.parametrize(
    "shallow",
    [pytest.param(True, marks=pytest.mark.one_day_in(3)), False],
    ids=["shallow", "deep"],
)
def test_clones_are_read_by_delta_spark(delta_spark: Any, tmp_path: Path, shallow: bool) -> None:
    source, ours, theirs = (str(tmp_path / name) for name in ("a %source", "ours", "theirs"))
    properties = {**VECTORS, **TRACKED}
    write_arrow(source, ROWS, properties=properties, mode="append", app_id="job", app_version=3)
    delete_rows(source, "id = 2")
    clone(source, ours, shallow=shallow, properties={"mine": "x"})
    assert rows_of(delta_spark.read(ours)) == rows_of(snapshot(source).to_arrow())
    delta_spark.sql(f"DELETE FROM delta.`{ours}` WHERE id = 1")
    assert rows_of(snapshot(ours).to_arrow()) == rows_of(delta_spark.read(ours))
    assert snapshot(source).to_arrow().num_rows == 2
    if not shallow:
        return
    delta_spark.sql(
        f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE delta.`{source}` TBLPROPERTIES('mine'='x')"
    )
    assert rows_of(snapshot(theirs).to_arrow()) == rows_of(snapshot(source).to_arrow())
    mine, its = DeltaLog.for_table(ours).snapshot_at(0), snapshot(theirs)
    assert without_marks(dict(mine.metadata.configuration)) == without_marks(
        dict(its.metadata.configuration)
    )
    assert supported_features(mine.protocol) == supported_features(its.protocol)
    # Without them a job that goes on with the clone would write its last batches a second time.
    assert (mine.transactions, its.transactions) == ({"job": 3}, {})
    assert history_of(ours)[0] == history_of(theirs)[0]
    assert sorted(file.path for file in mine.files()) == sorted(file.path for file in its.files())


REFUSED: dict[str, tuple[dict[str, str], str, Callable[[str], object]]] = {
    "restore": ({}, "RESTORE TABLE {t} TO VERSION AS OF 9", lambda u: restore(u, 9)),
    "clustering": ({}, "ALTER TABLE {t} CLUSTER BY (nope)", lambda u: cluster_by(u, "nope")),
    "columns": (
        {},
        "ALTER TABLE {t} REPLACE COLUMNS (id INT)",
        lambda u: replace_columns(u, "id int"),
    ),
    "feature": (
        {},
        "ALTER TABLE {t} DROP FEATURE appendOnly",
        lambda u: drop_feature(u, "appendOnly"),
    ),
    "missing feature": (
        {},
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
        lambda u: drop_feature(u, "deletionVectors"),
    ),
    "needed feature": (
        TRACKED,
        "ALTER TABLE {t} DROP FEATURE domainMetadata",
        lambda u: drop_feature(u, "domainMetadata"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_both_refuse_they_refuse_by_one_name(
    delta_spark: Any, tmp_path: Path, name: str
) -> None:
    properties, sql, change = REFUSED[name]
    path = str(tmp_path / "t")
    write_arrow(path, ROWS, properties=properties, mode="append")
    with pytest.raises(DeltaSparkError) as theirs:
        delta_spark.sql(sql.format(t=f"delta.`{path}`"))
    with pytest.raises(DeltaError) as ours:
        change(path)
    condition = re.compile(r"\[(DELTA_\w+)")
    mine, its = (condition.search(str(each.value)) for each in (ours, theirs))
    assert mine is not None
    assert its is not None
    assert mine[1] == its[1]
