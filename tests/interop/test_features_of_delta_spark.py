"""Tables with reader features: made by delta-spark, read by us, and by deltalake where it can."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import DataFileError
from lakelog.core.log.file_names import commit_name
from support.examples import examples
from support.samples import rows_of

ROWS = 60
BASE = (
    "SELECT id, CAST(id % 4 AS INT) AS p, CAST(id AS STRING) AS name, "
    "CAST(id AS TINYINT) AS tiny, CAST(id / 10 AS FLOAT) AS ratio, "
    "CAST(id AS DECIMAL(5,1)) AS price, DATE'2024-01-01' + CAST(id AS INT) AS day, "
    "IF(id % 7 = 0, NULL, NAMED_STRUCT('x', id, 'y', NAMED_STRUCT('z', CAST(id AS STRING)))) AS s, "
    "ARRAY(NAMED_STRUCT('e', id)) AS l, MAP(CAST(id AS STRING), NAMED_STRUCT('v', id)) AS m "
    "FROM range({start}, {end}, 1, 1)"
)
COLUMNS = (
    "id LONG, p INT, name STRING, tiny BYTE, ratio FLOAT, price DECIMAL(5,1), day DATE, "
    "s STRUCT<x: LONG, y: STRUCT<z: STRING>>, l ARRAY<STRUCT<e: LONG>>, "
    "m MAP<STRING, STRUCT<v: LONG>>"
)


class Kind(NamedTuple):
    """How a table is made."""

    properties: dict[str, str]
    partition_by: str = ""
    between: tuple[str, ...] = ()
    """Statements after the first half of the rows."""
    after: tuple[str, ...] = ()


MAPPED = {"columnMapping.mode": "name"}
BY_ID = {"columnMapping.mode": "id"}
VECTORS = {"enableDeletionVectors": "true"}
WIDENING = {"enableTypeWidening": "true", "feature.timestampNtz": "supported"}
RENAMES = (
    "ALTER TABLE {t} RENAME COLUMN name TO title",
    "ALTER TABLE {t} RENAME COLUMN s.x TO xx",
    "ALTER TABLE {t} RENAME COLUMN l.element.e TO ee",
    "ALTER TABLE {t} DROP COLUMN tiny",
    "ALTER TABLE {t} ADD COLUMN tiny STRING",
    "ALTER TABLE {t} DROP COLUMN s.y",
    "ALTER TABLE {t} RENAME COLUMN p TO part",
)
DELETES = ("DELETE FROM {t} WHERE id % 5 = 2", "DELETE FROM {t} WHERE id IN (0, 1, 33)")
CHANGES = (
    "UPDATE {t} SET name = 'changed', p = 9 WHERE id BETWEEN 20 AND 23",
    "MERGE INTO {t} USING (SELECT EXPLODE(SEQUENCE(40, 41)) AS k) ON id = k "
    "WHEN MATCHED THEN DELETE",
    "DELETE FROM {t} WHERE p = 3",
)
WIDER = (
    "ALTER TABLE {t} ALTER COLUMN tiny TYPE INT",
    "ALTER TABLE {t} ALTER COLUMN ratio TYPE DOUBLE",
    "ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(12,3)",
    "ALTER TABLE {t} ALTER COLUMN day TYPE TIMESTAMP_NTZ",
    "ALTER TABLE {t} ALTER COLUMN p TYPE LONG",
)
KINDS = {
    "vectors": Kind(VECTORS, after=DELETES),
    "vectors, partitioned": Kind(VECTORS, "p", after=(*DELETES, *CHANGES)),
    "names": Kind(MAPPED),
    "names, renamed": Kind(MAPPED, "p", between=RENAMES),
    "names, from none": Kind(
        {},
        "p",
        between=(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
            "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
            *RENAMES,
        ),
    ),
    "ids": Kind(BY_ID, "p"),
    "ids, renamed": Kind(BY_ID, between=RENAMES),
    "wider": Kind(WIDENING, between=WIDER),
    "wider, partitioned": Kind(WIDENING, "p", between=WIDER),
    "names, vectors": Kind({**MAPPED, **VECTORS}, "p", between=RENAMES, after=DELETES),
    "all": Kind(
        {**MAPPED, **VECTORS, **WIDENING}, "p", between=(*WIDER, *RENAMES[:3]), after=DELETES
    ),
}


class Made(NamedTuple):
    """A table that nobody changes any more."""

    path: str
    versions: int


@pytest.fixture(scope="module")
def made(delta_spark, tmp_path_factory):
    """Tables by kind, each made once."""
    found: dict[str, Made] = {}

    def make(name: str) -> Made:
        if name in found:
            return found[name]
        kind, path = KINDS[name], str(tmp_path_factory.mktemp("features") / "t")
        table = f"delta.`{path}`"
        listed = ", ".join(f"'delta.{key}' = '{value}'" for key, value in kind.properties.items())
        partitions = f"PARTITIONED BY ({kind.partition_by})" if kind.partition_by else ""
        clause = f"TBLPROPERTIES ({listed})" if listed else ""
        delta_spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta {partitions} {clause}")
        for start, end in ((0, ROWS // 2), (ROWS // 2, ROWS)):
            rows = BASE.format(start=start, end=end)
            if start and kind.between:
                for statement in kind.between:
                    delta_spark.sql(statement.format(t=table))
                # By position; columns that moved or went are taken from what is left.
                rows = _reshaped(delta_spark, path, rows)
            delta_spark.sql(f"INSERT INTO {table} {rows}")
        for statement in kind.after:
            delta_spark.sql(statement.format(t=table))
        found[name] = Made(path, delta_spark.version(path) + 1)
        return found[name]

    return make


def _reshaped(delta_spark, path, rows):
    """The query in the shape that the table has now."""
    kept = {
        "title": "name", "part": "p", "tiny": "CAST(tiny AS {type})",
        "s": "CAST(IF(s IS NULL, NULL, NAMED_STRUCT({fields})) AS {type})",
    }  # fmt: skip
    shown = []
    for field in delta_spark.sql(f"DESCRIBE TABLE delta.`{path}`"):
        name, kind = field["col_name"], field["data_type"]
        if not name or name.startswith("#"):
            break
        fields = "'xx', s.x" if "xx" in kind else "'x', s.x"
        fields += ", 'y', s.y" if "y:" in kind else ""
        text = kept.get(name, f"CAST({name} AS {{type}})").format(type=kind, fields=fields)
        shown.append(f"CAST({text} AS {kind}) AS {name}")
    return f"SELECT {', '.join(shown)} FROM ({rows})"


def ours(path, version=None, **how):
    log = DeltaLog.for_table(path)
    snapshot = log.snapshot if version is None else log.snapshot_at(version=version)
    return snapshot.to_arrow(**how)


@pytest.mark.parametrize("name", KINDS)
def test_the_rows_are_those_that_delta_spark_reads(delta_spark, made, name):
    path = made(name).path

    assert rows_of(ours(path)) == rows_of(delta_spark.read(path))


@pytest.mark.parametrize("name", ["all", "ids, renamed"])
def test_our_spark_reads_the_same(delta_spark, made, spark, name):
    path = made(name).path

    found = delta.read(spark).where("id >= 10").load(path).toArrow()

    assert rows_of(found) == rows_of(delta_spark.read(path, where="id >= 10"))


@pytest.mark.parametrize("name", ["names, vectors", "all", "ids, renamed"])
def test_every_version_reads_as_delta_spark_reads_it(delta_spark, made, name):
    there = made(name)
    for version in range(there.versions):
        theirs = delta_spark.read(there.path, version=version)
        assert rows_of(ours(there.path, version=version)) == rows_of(theirs), version


FILTERS = st.recursive(
    st.sampled_from(["id", "{p}"]).flatmap(
        lambda column: st.tuples(
            st.sampled_from(["=", "<", ">=", "!=", "<=>"]), st.integers(-1, ROWS)
        ).map(lambda pair: f"{column} {pair[0]} {pair[1]}")
    )
    | st.sampled_from(
        [
            "{name} = '21'",
            "{name} > '4'",
            "{p} IS NULL",
            "{p} IN (1, 2)",
            "ratio < 1.5",
            "ratio >= 4",
            "price = 31.0",
            "price < 12.5",
            "tiny IS NULL",
            "s.{x} > 30",
            "s.{x} IS NULL",
            "day < '2024-01-20'",
            "day >= '2024-02-10'",
        ]
    ),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        )
        | inner.map(lambda one: f"NOT ({one})")
    ),
    max_leaves=3,
)


@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=st.sampled_from(["all", "names, renamed", "vectors, partitioned"]), text=FILTERS)
def test_filtered_rows_are_those_that_delta_spark_filters(delta_spark, made, name, text):
    path = made(name).path
    renamed = "title" in DeltaLog.for_table(path).snapshot.schema.names
    parts = "part" in DeltaLog.for_table(path).snapshot.schema.names
    text = text.format(
        name="title" if renamed else "name",
        p="part" if parts else "p",
        x="xx" if renamed else "x",
    )

    found = ours(path, where=text)

    assert rows_of(found) == rows_of(delta_spark.read(path, where=text))


@pytest.mark.parametrize("name", ["all", "ids", "names, renamed", "vectors"])
def test_the_rows_are_the_same_from_a_checkpoint(delta_spark, made, tmp_path, name):
    path = str(tmp_path / "copy")
    shutil.copytree(made(name).path, path)
    before = rows_of(ours(path))
    version = delta_spark.checkpoint(path)
    for older in range(version + 1):
        (Path(path) / "_delta_log" / commit_name(older)).unlink()

    assert rows_of(ours(path)) == before
    assert rows_of(ours(path, where="id >= 30")) == [r for r in before if r["id"] >= 30]


@pytest.mark.parametrize("name", ["vectors", "vectors, partitioned", "names, renamed", "all"])
def test_files_that_cannot_match_are_left_out(made, name):
    snapshot = DeltaLog.for_table(made(name).path).snapshot

    assert 0 < len(snapshot.files("id < 10")) < snapshot.num_files
    assert len(snapshot.files("id > 1000")) == 0


@pytest.mark.parametrize("name", ["vectors", "vectors, partitioned"])
def test_a_third_reader_agrees(made, name):
    from deltalake import DeltaTable, QueryBuilder

    path = made(name).path
    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT id, p FROM t")

    theirs = pa.table(query.read_all())
    expected = ours(path, columns=["id", "p"])
    assert sorted(theirs["id"].to_pylist()) == sorted(expected["id"].to_pylist())


@pytest.mark.one_day_in(3, 2)
def test_a_clone_finds_files_and_vectors_of_the_other_table(delta_spark, made, tmp_path):
    there, path = made("names, vectors").path, str(tmp_path / "clone")
    delta_spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{there}`")
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")

    kinds = [
        add.deletion_vector.storage_type
        for add in DeltaLog.for_table(path).snapshot.files()
        if add.deletion_vector is not None
    ]
    assert set(kinds) == {"p", "u"}
    assert rows_of(ours(path)) == rows_of(delta_spark.read(path))


def test_rows_are_counted_as_delta_spark_counts_them(delta_spark, made):
    path = made("all").path

    assert ours(path, columns=[]).num_rows == delta_spark.count(path)
    assert ours(path, columns=[], where="id < 31").num_rows == delta_spark.count(
        path, where="id < 31"
    )


def test_a_damaged_vector_of_delta_spark_is_no_reason_to_bring_rows_back(made, tmp_path):
    shutil.copytree(made("vectors").path, tmp_path / "t")
    for file in (tmp_path / "t").rglob("*.bin"):
        data = bytearray(file.read_bytes())
        data[12] ^= 1
        file.write_bytes(data)

    with pytest.raises(DataFileError, match="its checksum does not match"):
        ours(str(tmp_path / "t"))


@pytest.mark.parametrize("name", ["names", "wider"])
def test_such_a_table_is_written_too(delta_spark, made, tmp_path, name):
    path = str(tmp_path / "t")
    shutil.copytree(made(name).path, path)
    rows = ours(path)

    write_arrow(path, rows, mode="append")

    assert delta_spark.count(path) == 2 * rows.num_rows
    assert rows_of(delta_spark.read(path)) == rows_of(ours(path))


def test_a_widened_value_is_the_value_that_was_written(made):
    (row,) = ours(made("wider").path, where="id = 13").to_pylist()

    assert (row["tiny"], row["price"]) == (13, Decimal("13.000"))
    assert row["day"] == dt.datetime(2024, 1, 14)  # noqa: DTZ001  # timestamp_ntz
