"""`DeltaTable.delete` and `update`: by Spark and in this process, over kinds of tables."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, table_changes, write_arrow
from lakelog.core.errors import (
    AppendOnlyError,
    ConstraintViolationError,
    DataFileMissingError,
    DeltaAnalysisError,
)
from lakelog.spark import DeltaTable
from lakelog.spark.dml import copies, delete_update
from lakelog.spark.dml import matching_positions as hits
from lakelog.spark.dml import without_spark as here

VECTORS = {"delta.enableDeletionVectors": "true"}
KINDS = {
    "plain": ((), {}),
    "vectors": ((), VECTORS),
    "feed": ((), {"delta.enableChangeDataFeed": "true"}),
    "feed and vectors": ((), {**VECTORS, "delta.enableChangeDataFeed": "true"}),
    "partitioned": (("p",), {}),
    "row ids": ((), {"delta.enableRowTracking": "true"}),
    "mapped": (("p",), {**VECTORS, "delta.columnMapping.mode": "name"}),
    "all": (
        ("p",),
        {
            **VECTORS,
            "delta.columnMapping.mode": "name",
            "delta.enableChangeDataFeed": "true",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
        },
    ),
}
COLUMNS = ["id", "p", "x", "s"]


def batch(first, count):
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([None if i % 5 == 0 else f"x/{i % 5}%" for i in ids]),
            "x": pa.array([None if i % 4 == 0 else i / 2 for i in ids], pa.float64()),
            "s": pa.array([{"u": i, "v": f"v{i}"} for i in ids]),
        }
    )


def made(path, kind):
    columns, properties = KINDS[kind]
    for first in (0, 40, 80):
        new = first == 0
        write_arrow(
            path,
            batch(first, 40),
            mode="append",
            partition_by=columns if new else None,
            properties=properties if new else None,
        )


def rows(path):
    return sorted(DeltaLog.for_table(path).snapshot.to_arrow().to_pylist(), key=lambda r: r["id"])


def last(path):
    return DeltaLog.for_table(path).history(1)[0]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t ä%")


@pytest.fixture(params=["here", "few", "many"])
def way(request, monkeypatch):
    """In this process; by a Spark job whose new rows are fetched; by jobs alone."""
    if request.param != "here":
        monkeypatch.setattr(here, "HERE_BYTES", -1)
    if request.param == "many":
        monkeypatch.setattr(delete_update, "_FEW_ROWS", -1)
        monkeypatch.setattr(copies, "_HERE_BYTES", -1)
    return request.param


@pytest.mark.one_day_in(2)
@pytest.mark.connect(kind=("plain", "mapped", "read by Arrow"))
@pytest.mark.parametrize(
    "kind", ["plain", "vectors", "partitioned", "row ids", "mapped", "read by Arrow"]
)
def test_a_condition_and_a_new_value_may_name_the_file_of_a_row(spark, tmp_path, kind, request):
    path = str(tmp_path / "table")
    if kind == "read by Arrow":
        key, kind = "spark.lakelog.read.path", "plain"
        spark.conf.set(key, "arrow")
        request.addfinalizer(lambda: spark.conf.unset(key))
    made(path, kind)
    table = DeltaTable.forPath(spark, path)
    log = DeltaLog.for_table(path)
    first = log.snapshot.files()[0]
    name = first.path.rpartition("/")[2]
    table.update(f"_metadata.file_name = '{name}'", {"x": "-1.0"})
    assert log.update().to_arrow(where="x = -1.0").num_rows == first.num_records
    before = log.snapshot.to_arrow().num_rows
    other = next(f for f in log.snapshot.files() if f.deletion_vector is None)
    table.delete(sf.col("_metadata.file_name") == other.path.rpartition("/")[2])
    assert before - log.update().to_arrow().num_rows == other.num_records
    sizes: Counter[float] = Counter()
    for each in log.snapshot.files():
        gone = 0 if each.deletion_vector is None else each.deletion_vector.cardinality
        sizes[float(each.size)] += (each.num_records or 0) - gone
    table.alias("t").update(set={"x": "CAST(t._metadata.file_size AS DOUBLE)"})
    assert Counter(log.update().to_arrow()["x"].to_pylist()) == sizes
    with pytest.raises(AnalysisException, match="no_such_field"):
        table.delete("_metadata.no_such_field = 1")


@pytest.mark.one_day_in(3)
@pytest.mark.connect(kind=("plain", "all"), way=("few", "many"))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted(spark, path, kind, way):
    made(path, kind)
    table = DeltaTable.forPath(spark, path)
    before = rows(path)

    table.delete("x < 20 AND id % 3 = 0" if way == "here" else sf.expr("x < 20 AND id % 3 = 0"))

    gone = [r for r in before if r["x"] is not None and r["x"] < 20 and r["id"] % 3 == 0]
    assert rows(path) == [r for r in before if r not in gone]
    assert last(path).operation == "DELETE"
    assert last(path).metrics["numDeletedRows"] == str(len(gone))
    if "feed" in kind or kind == "all":
        version = last(path).version
        feed_rows = table_changes(path, version, version).read_all().to_pylist()
        assert sorted(r["id"] for r in feed_rows) == [r["id"] for r in gone]
        assert {r["_change_type"] for r in feed_rows} == {"delete"}


@pytest.mark.one_day_in(3)
@pytest.mark.connect(kind=("plain", "all"), way=("few", "many"))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_updated(spark, path, kind, way):
    made(path, kind)
    table = DeltaTable.forPath(spark, path)
    before = rows(path)
    ids_before = row_ids(path) if kind in ("row ids", "all") else None

    table.update("id > 30 AND id % 7 = 1", {"x": "id * 10", "p": "concat(p, '!')"})

    hit = [r["id"] for r in before if r["id"] > 30 and r["id"] % 7 == 1]
    expected = [
        {**r, "x": r["id"] * 10.0, "p": None if r["p"] is None else r["p"] + "!"}
        if r["id"] in hit
        else r
        for r in before
    ]
    assert rows(path) == expected
    assert last(path).metrics["numUpdatedRows"] == str(len(hit))
    assert last(path).parameters["predicate"] == json.dumps(["id > 30 AND id % 7 = 1"])
    if "feed" in kind or kind == "all":
        version = last(path).version
        feed_rows = table_changes(path, version, version).read_all().to_pylist()
        after = {r["id"]: r for r in expected}
        for r in feed_rows:
            source = (
                after if r["_change_type"] == "update_postimage" else {b["id"]: b for b in before}
            )
            assert {name: r[name] for name in COLUMNS} == source[r["id"]]
        assert len(feed_rows) == 2 * len(hit)
    if ids_before is not None:
        assert row_ids(path) == ids_before
    assert all(
        "__lakelog" not in (f.stats or "") and "_row-" not in (f.stats or "")
        for f in DeltaLog.for_table(path).snapshot.files()
    )


def row_ids(path):
    """The ids of rows by the table's own ids."""
    from lakelog.core.data.file_reader import TableFileReader
    from lakelog.core.rows.moved_row_ids import MovedRowIds

    snapshot = DeltaLog.for_table(path).snapshot
    ids = MovedRowIds.from_snapshot(snapshot)
    assert ids is not None
    schema = ids.add_id_columns(snapshot.read_schema)
    reader = TableFileReader(snapshot, schema)
    found: dict[int, int] = {}
    for add, file in zip(snapshot.files(), reader.find(snapshot.file_table), strict=True):
        start = 0
        deleted = reader.deleted(file)
        for piece in reader.pieces(file):
            feed_rows = ids.with_row_ids(piece.rows, add, start)
            gone = [False] * piece.count if deleted is None else deleted(piece.count).to_pylist()
            pairs = zip(
                feed_rows["id"].to_pylist(),
                feed_rows[schema.names[-2]].to_pylist(),
                gone,
                strict=True,
            )
            found |= {key: value for key, value, dead in pairs if not dead}
            start += piece.count
    return found


@pytest.mark.connect
def test_structs_aliases_columns_and_null_conditions(spark, path, way):
    made(path, "vectors")
    table = DeltaTable.forPath(spark, path).alias("t")
    before = rows(path)

    table.update(sf.col("t.id") == 3, {"t.s.v": sf.upper("t.s.v"), "X": sf.lit(1)})
    table.update("t.x IS NULL AND id < 9", {"s.u": "t.id + 0.4"})
    table.delete(sf.col("x") > 50)
    table.delete("t.s.v = 'v5'")

    found = {r["id"]: r for r in rows(path)}
    assert found[3] == {**before[3], "s": {"u": 3, "v": "V3"}, "x": 1.0}
    assert found[8]["s"] == {"u": 8, "v": "v8"}
    kept = [r["id"] for r in before if not (r["x"] is not None and r["x"] > 50) and r["id"] != 5]
    assert sorted(found) == kept


@pytest.mark.connect
def test_conditions_on_partitions_take_out_whole_files(spark, path):
    made(path, "partitioned")
    table = DeltaTable.forPath(spark, path)

    for none in (sf.reverse("p") == "?", "reverse(p) = '?'"):
        table.delete(none)
        table.update(none, {"id": "0"})
    assert last(path).operation == "WRITE"

    table.delete(
        sf.length("p") == sf.length(sf.lit("x/1%")) + sf.lit(0) * sf.col("p").isNull().cast("int")
    )

    metrics = last(path).metrics
    assert {r["p"] for r in rows(path)} == {None}
    assert metrics["numRemovedFiles"] == "12"
    assert metrics["numAddedFiles"] == "0"
    table.delete()
    assert rows(path) == []


@pytest.mark.parametrize("kind", ["partitioned", "all"])
@pytest.mark.parametrize("condition", [None, "p = 'x/3%'"])
def test_an_update_of_whole_files_looks_for_no_rows(spark, path, kind, condition, monkeypatch):
    made(path, kind)
    DeltaTable.forPath(spark, path).delete("id IN (3, 8, 50)")
    before = rows(path)
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    monkeypatch.setattr(delete_update, "hit_positions", None)

    DeltaTable.forPath(spark, path).update(condition, {"x": sf.col("x") + 1})

    hit = [r for r in before if condition is None or r["p"] == "x/3%"]
    changed = [
        {**r, "x": None if r["x"] is None else r["x"] + 1} if r in hit else r for r in before
    ]
    assert rows(path) == changed
    assert last(path).metrics["numUpdatedRows"] == str(len(hit))


@pytest.mark.connect
def test_an_alias_comes_before_a_struct_of_its_name(spark, path):
    given = pa.table({"id": [1, 2], "v": [0, 0], "s": [{"id": 2}, {"id": 9}]})
    write_arrow(path, given)
    table = DeltaTable.forPath(spark, path).alias("S")
    table.update("s.id = 2", {"v": "s.id * 10"})
    table.delete("s.id = 9")
    assert sorted((r["id"], r["v"]) for r in rows(path)) == [(1, 0), (2, 20)]


def test_nothing_is_committed_where_nothing_matches(spark, path, way):
    made(path, "plain")
    version = DeltaLog.for_table(path).snapshot.version
    DeltaTable.forPath(spark, path).delete("id > 1000")
    DeltaTable.forPath(spark, path).update("id > 1000", {"x": "0"})
    assert DeltaLog.for_table(path).snapshot.version == version


@pytest.mark.connect(way=("few",))
def test_what_is_refused_leaves_the_table_alone(spark, path, way):
    made(path, "plain")
    before, table = rows(path), DeltaTable.forPath(spark, path)

    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_SUBQUERY"):
        table.delete("id IN (SELECT 1)")
    with pytest.raises(AnalysisException, match="NON_DETERMINISTIC"):
        table.delete(sf.rand() > 0.5)
    with pytest.raises(AnalysisException, match="NON_DETERMINISTIC"):
        table.update(None, {"x": "rand()"})
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        table.delete("idd = 1")
    with pytest.raises(DeltaAnalysisError, match="y"):
        table.update("id = 1", {"y": "1"})
    with pytest.raises(DeltaAnalysisError, match="boolean"):
        table.delete(sf.col("id"))
    with pytest.raises(DeltaAnalysisError, match="boolean"):
        table.delete("null")
    with pytest.raises(TypeError, match="condition"):
        table.delete(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lit"):
        table.update("id = 1", {"x": 1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="set"):
        table.update("id = 1")

    other = DeltaTable.forPath(spark, path).toDF()
    for refused in (
        lambda: table.delete(other["id"] == 1),
        lambda: table.update(other["id"] == 1, {"x": sf.lit(1.0)}),
        lambda: table.update("id = 1", {"x": other["x"] + 1}),
    ):
        with pytest.raises(AnalysisException) as caught:
            refused()
        assert "name it, as functions.col('x')" in caught.value.__notes__[0]

    assert rows(path) == before
    assert last(path).operation == "WRITE"


@pytest.mark.connect(way=("few", "many"))
def test_rules_generated_columns_and_defaults(spark, path, way):
    table = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "long", nullable=False)
        .addColumn("n", "int")
        .addColumn("twice", "long", generatedAlwaysAs="id * 2")
        .property("delta.constraints.small", "n < 100")
        .execute()
    )
    write_arrow(
        path, pa.table({"id": range(10), "n": pa.array(range(10), pa.int32())}), mode="append"
    )

    table.update("id >= 5", {"id": "id + 100"})
    assert [(r["id"], r["twice"]) for r in rows(path)][5:] == [
        (i + 100, 2 * i + 200) for i in range(5, 10)
    ]
    with pytest.raises(ConstraintViolationError, match="small"):
        table.update("id = 1", {"n": "1000"})
    with pytest.raises(ConstraintViolationError, match="id"):
        table.update("id = 1", {"id": "NULL"})
    with pytest.raises(ConstraintViolationError, match="twice"):
        table.update("id = 1", {"twice": "7"})
    assert [r["id"] for r in rows(path)] == [0, 1, 2, 3, 4, 105, 106, 107, 108, 109]


def test_append_only_tables_are_left_alone(spark, path):
    write_arrow(path, batch(0, 4), mode="append", properties={"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        DeltaTable.forPath(spark, path).delete(sf.col("id") == 1)


def test_a_file_that_vanished_is_named_by_executors_too(spark, path, monkeypatch):
    made(path, "plain")
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    monkeypatch.setattr(copies, "_HERE_BYTES", -1)
    log = DeltaLog.for_table(path)
    real = hits.hit_positions

    def found_then_lost(rows, numbers):
        found = real(rows, numbers)
        (Path(path) / next(iter(log.snapshot.files())).path).unlink()
        return found

    monkeypatch.setattr(delete_update, "hit_positions", found_then_lost)
    files = set(Path(path).rglob("*.parquet"))

    with pytest.raises(DataFileMissingError):
        DeltaTable.forPath(spark, path).delete(sf.col("id") % 2 == 0)

    assert set(Path(path).rglob("*.parquet")) < files
    assert log.update().version == 2


@pytest.mark.connect(way=("few", "many"))
def test_a_value_may_be_a_query_for_one(spark, path, way):
    made(path, "feed")
    before, table = rows(path), DeltaTable.forPath(spark, path)
    spark.range(7).createOrReplaceTempView("numbers_of_a_query")
    query = "(SELECT max(id) FROM numbers_of_a_query)"

    table.update("id < 3", {"x": f"id + {query}", "s.u": query})
    assert [(r["x"], r["s"]["u"]) for r in rows(path)[:4]] == [
        (6.0, 6),
        (7.0, 6),
        (8.0, 6),
        (before[3]["x"], 3),
    ]
    changed = table_changes(path, last(path).version).read_all().to_pylist()
    assert sorted(c["x"] for c in changed if c["_change_type"] == "update_postimage") == [6, 7, 8]
    table.update("id = 3", {"x": spark.range(9).agg(sf.max("id")).scalar() + 1})
    assert rows(path)[3]["x"] == 9.0
    table.update("id = 4", {"x": "(SELECT max(id) FROM numbers_of_a_query WHERE id > 50)"})
    assert rows(path)[4]["x"] is None
    spark.catalog.dropTempView("numbers_of_a_query")


@pytest.mark.connect
@pytest.mark.parametrize("way", ["few"], indirect=True)
def test_a_query_that_has_no_one_value_is_refused(spark, path, way):
    made(path, "feed")
    table = DeltaTable.forPath(spark, path)
    spark.range(7).createOrReplaceTempView("numbers_of_a_query")
    query = "(SELECT max(id) FROM numbers_of_a_query)"

    version = DeltaLog.for_table(path).snapshot.version
    for refused, match in (
        ({"x": "(SELECT max(o.id) FROM numbers_of_a_query o WHERE o.id = s.u)"}, "CORRELATED"),
        ({"x": "int(id IN (SELECT id FROM numbers_of_a_query))"}, "IN_EXISTS"),
        ({"x": "int(EXISTS (SELECT id FROM numbers_of_a_query))"}, "IN_EXISTS"),
        ({"x": sf.col("id").isin(spark.range(3)).cast("int")}, "IN_EXISTS"),
        ({"x": f"rand() + {query}"}, "NON_DETERMINISTIC"),
        ({"x": "(SELECT nope FROM numbers_of_a_query)"}, "UNRESOLVED_COLUMN"),
    ):
        with pytest.raises((AnalysisException, DeltaAnalysisError), match=match):
            table.update("id < 3", refused)
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        table.update("id < 3", {"x": "(SELECT id FROM numbers_of_a_query)"})
    for condition in (
        f"id = {query}",
        sf.col("id") == spark.range(9).agg(sf.max("id")).scalar(),
        sf.col("id").isin(spark.range(3)),
    ):
        with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_SUBQUERY"):
            table.update(condition, {"x": "1"})
        with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_SUBQUERY"):
            table.delete(condition)
    assert DeltaLog.for_table(path).snapshot.version == version
    spark.catalog.dropTempView("numbers_of_a_query")


@pytest.mark.one_day_in(4, 3)
@pytest.mark.parametrize("kind", ["plain", "all"])
def test_columns_of_the_tables_own_dataframe_are_its_columns(spark, path, way, kind):
    made(path, kind)
    table = DeltaTable.forPath(spark, path)
    df = table.toDF()
    assert table.toDF() is df

    table.delete(df["id"] < 3)
    assert [r["id"] for r in rows(path)] == list(range(3, 120))
    # `df` is of an older version now, and its columns are the table's all the same.
    table.update(df["id"] < 5, {"x": df["x"] + sf.col("id"), "s.v": df["s"]["v"]})
    assert [r["x"] for r in rows(path)[:3]] == [4.5, None, 2.5]
    named = table.alias("t")
    named.update((named.toDF()["id"] == 5) & (sf.col("t.p").isNull()), {"x": sf.lit(-1.0)})
    assert rows(path)[2]["x"] == -1.0
    table.delete(table.toDF().where("id > 7")["id"] == 6)
    assert [r["id"] for r in rows(path)[:4]] == [3, 4, 5, 7]

    before = rows(path)
    for other in (spark.range(9), DeltaTable.forPath(spark, path).toDF()):
        with pytest.raises(AnalysisException) as caught:
            table.delete(other["id"] == 7)
        assert "name it, as functions.col('x')" in caught.value.__notes__[0]
    assert rows(path) == before
    DeltaTable.replace(spark).location(path).addColumn("id", "string").execute()
    with pytest.raises(AnalysisException) as caught:
        table.delete(df["id"] == "7")
    assert "while the table has the same columns" in caught.value.__notes__[0]


@pytest.mark.connect(way=("few",))
def test_a_type_that_does_not_fit_is_noticed_where_no_row_needs_it(spark, path, way):
    made(path, "plain")
    table = DeltaTable.forPath(spark, path)
    for values, match in (
        ({"s": "named_struct('u', id)"}, "the value's lacks v"),
        ({"s": "named_struct('u', id, 'v', 'x', 'w', 1)"}, "the table's lacks w"),
        ({"x": "array(1)"}, "can't be set to a value of type array"),
    ):
        with pytest.raises(DeltaAnalysisError, match=match):
            table.update("id > 1000", values)
