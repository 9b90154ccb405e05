"""MERGE by Spark: what the generated cases of `tests/interop` do not show."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, create_table, delete_rows, table_changes, write_arrow
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.dml.touched_files import touched_rows
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaError,
)
from lakelog.core.rows.moved_row_ids import MovedRowIds
from lakelog.core.schema import PrimitiveType, StructField, StructType, identity_column
from lakelog.spark import DeltaTable
from lakelog.spark.dml import without_spark as here

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


def people(path, properties=None, partition_by=()):
    """`id`, `name`, `n` for 1 to 6 in two files."""
    create_table(
        path, "id INT, name STRING, n BIGINT", properties=properties, partition_by=partition_by
    )
    for ids in ((1, 2, 3), (4, 5, 6)):
        columns = {
            "id": pa.array(ids, pa.int32()),
            "name": [f"p{i}" for i in ids],
            "n": [10 * i for i in ids],
        }
        write_arrow(path, pa.table(columns), mode="append")
    return path


def rows(path):
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    return {row["id"]: row for row in found}


def files_of(path):
    return {p.name for p in Path(path).rglob("*.parquet") if "_delta_log" not in p.parts}


def named(path):
    files = DeltaLog.for_table(path).snapshot.file_table["path"].to_pylist()
    return {each.rpartition("/")[2] for each in files}


@pytest.fixture(autouse=True)
def by_jobs(monkeypatch):
    """Small ones are done without Spark: `test_commands_in_sessions`."""
    monkeypatch.setattr(here, "HERE_BYTES", -1)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@pytest.mark.one_day_in(2)
@pytest.mark.connect
@pytest.mark.parametrize("properties", [{}, {**VECTORS, **FEED}], ids=["copies", "vectors, feed"])
def test_all_kinds_of_clauses_by_columns_and_texts(spark, path, properties):
    people(path, properties)
    source = spark.sql(
        "SELECT * FROM VALUES (1, 'one', 1L, 'U'), (2, 'two', 2L, 'D'), (3, 'three', 3L, 'K'), "
        "(7, 'seven', 7L, 'U'), (8, 'eight', 8L, 'K') AS v(id, name, n, op)"
    ).alias("s")
    found = (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source, sf.col("t.id") == sf.col("s.id"))
        .whenMatchedDelete("s.op = 'D'")
        .whenMatchedUpdate(
            sf.col("s.op") == "U", set={"name": sf.upper("s.name"), "t.n": "t.n + s.n"}
        )
        .whenNotMatchedInsert("s.op = 'U'", values={"id": "s.id", "name": sf.lit("new")})
        .whenNotMatchedBySourceUpdate("t.id = 4", set={"name": "name || '?'"})
        .whenNotMatchedBySourceDelete(sf.col("t.id") == 5)
        .execute()
    )
    assert found.collect()[0].asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }
    assert rows(path) == {
        1: {"id": 1, "name": "ONE", "n": 11},
        3: {"id": 3, "name": "p3", "n": 30},  # matched, but no clause is for it
        4: {"id": 4, "name": "p4?", "n": 40},
        6: {"id": 6, "name": "p6", "n": 60},
        7: {"id": 7, "name": "new", "n": None},
    }
    assert named(path) <= files_of(path)
    if properties:
        feed = table_changes(path, 3).read_all().to_pylist()
        assert sorted((r["_change_type"], r["id"]) for r in feed) == [
            ("delete", 2),
            ("delete", 5),
            ("insert", 7),
            ("update_postimage", 1),
            ("update_postimage", 4),
            ("update_preimage", 1),
            ("update_preimage", 4),
        ]
    entry = next(iter(DeltaLog.for_table(path).history(1)))
    assert entry.operation == "MERGE"
    parameters = entry.parameters or {}
    assert [each["actionType"] for each in json.loads(parameters["matchedPredicates"])] == [
        "delete",
        "update",
    ]


@pytest.mark.connect
def test_a_source_that_differs_each_time_is_evaluated_once(spark, path, tmp_path):
    people(path)
    evaluations = tmp_path / "evaluations"

    def noted(batches, evaluations=str(evaluations)):
        with open(evaluations, "ab") as file:
            file.write(b".")
        yield from batches

    source = spark.range(1, 9, 1, 1).mapInArrow(noted, "id BIGINT")
    source = source.selectExpr("CAST(id AS INT) AS id", "uuid() AS name", "id AS n")
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id AND length(s.name) = 36")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    found = rows(path)
    assert evaluations.read_bytes() == b"."
    assert sorted(found) == list(range(1, 9))
    assert len({row["name"] for row in found.values()}) == 8


def test_columns_of_the_frames_themselves_name_the_source(classic_spark, path):
    spark = classic_spark
    people(path)
    source = spark.sql("SELECT 1 AS key, 'one' AS text")
    (
        DeltaTable.forPath(spark, path)
        .merge(source, sf.col("id") == source["key"])
        .whenMatchedUpdate(set={"name": source["text"]})
        .execute()
    )
    assert rows(path)[1]["name"] == "one"


@pytest.mark.connect
def test_rows_that_several_rows_match_are_shown(spark, path):
    people(path)
    source = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'c') AS v(id, name)").alias(
        "s"
    )
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    with pytest.raises(DeltaAnalysisError, match=r"MULTIPLE_SOURCE_ROW.*id = 1") as caught:
        merge.whenMatchedUpdate(set={"name": "s.name"}).execute()
    assert caught.value.fields["rows"] == 1
    assert DeltaLog.for_table(path).snapshot.version == 2
    assert files_of(path) == named(path)
    merge.whenMatchedDelete().execute()
    assert sorted(rows(path)) == [3, 4, 5, 6]


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("properties", [TRACKED, {**TRACKED, **VECTORS}], ids=["copies", "vectors"])
def test_rows_keep_their_ids(spark, path, properties):
    people(path, properties)

    def ids():
        log = DeltaLog.for_table(path)
        reader = MovedRowIds.from_snapshot(log.snapshot)
        assert reader is not None
        return _row_ids(log.snapshot, reader)

    before = ids()
    for _ in range(2):
        source = spark.sql("SELECT * FROM VALUES (2, 'x'), (9, 'y') AS v(id, name)").alias("s")
        (
            DeltaTable.forPath(spark, path)
            .alias("t")
            .merge(source, "t.id = s.id")
            .whenMatchedUpdate(set={"name": "s.name"})
            .whenNotMatchedInsert(values={"id": "s.id"})
            .execute()
        )
    after = ids()
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after)


def _row_ids(snapshot, ids):
    reader = TableFileReader(snapshot, ids.add_id_columns(snapshot.read_schema))
    found: dict[int, int] = {}
    files = snapshot.file_table
    for add, file in zip(to_add_files(files), reader.find(files), strict=True):
        start = 0
        for piece in reader.pieces(file):
            table = ids.with_row_ids(piece.rows, add, start)
            deleted = reader.deleted(file)
            if deleted is not None:
                table = table.filter(pc.invert(deleted(piece.count)))
            start += piece.count
            name = ids.add_id_columns(StructType()).names[0]
            found |= dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))
    return found


def test_identity_columns_go_on_counting(spark, path):
    schema = StructType((identity_column("no"), StructField("id", PrimitiveType("integer"))))
    create_table(path, schema)
    write_arrow(path, pa.table({"id": pa.array([1, 2], pa.int32())}), mode="append")
    for start in (2, 4):
        source = spark.range(start, start + 3).selectExpr("CAST(id AS INT) AS id").alias("s")
        (
            DeltaTable.forPath(spark, path)
            .alias("t")
            .merge(source, "t.id = s.id")
            .whenMatchedUpdate(set={"id": "s.id"})
            .whenNotMatchedInsertAll()
            .execute()
        )
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == [1, 2, 3, 4, 5, 6]
    numbers = [row["no"] for row in found]
    assert len(set(numbers)) == 6
    assert {row["id"]: row["no"] for row in found if row["id"] < 3} == {1: 1, 2: 2}


@pytest.mark.connect
def test_a_broken_rule_stops_it_and_leaves_no_file(spark, path):
    people(path, {"delta.constraints.small": "n < 100"})
    source = spark.sql("SELECT 1 AS id, 100L AS n").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    with pytest.raises(ConstraintViolationError, match="small"):
        merge.whenMatchedUpdate(set={"n": "s.n"}).execute()
    assert files_of(path) == named(path)
    with pytest.raises(DeltaError, match="CAST_INVALID_INPUT"):
        merge.whenMatchedUpdate(set={"n": "t.name"}).execute()
    assert files_of(path) == named(path)
    assert DeltaLog.for_table(path).snapshot.version == 2


def test_the_keys_of_the_source_say_which_files_are_read(spark, path):
    people(path)
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.sql("SELECT 5 AS id, 'five' AS name").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"name": "s.name"})
    before = named(path)
    merge.execute()
    assert len(before & named(path)) == 1  # the file with 1 to 3
    entry = next(iter(DeltaLog.for_table(path).history(1)))
    assert (entry.metrics or {})["numTargetRowsCopied"] == "2"


def test_an_append_to_a_partition_that_could_match_conflicts(spark, path, monkeypatch):
    people(path, partition_by=["name"])
    real = touched_rows

    def meanwhile(*args, **named):
        columns = {"id": pa.array([9], pa.int32()), "name": [name], "n": [0]}
        write_arrow(path, pa.table(columns), mode="append")
        return real(*args, **named)

    monkeypatch.setattr("lakelog.spark.dml.merge.changed_positions.touched_rows", meanwhile)
    source = spark.sql("SELECT 5 AS id, 5L AS n").alias("s")
    merge = (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source, "t.id = s.id AND t.name = 'p5'")
        .whenMatchedUpdate(set={"n": "t.n + s.n"})
    )
    name = "p6"
    merge.execute()  # no row of that partition can match
    assert rows(path)[5]["n"] == 55
    name = "p5"
    with pytest.raises(ConcurrentAppendException):
        merge.execute()
    assert named(path) == files_of(path) - _removed(path)


def _removed(path):
    """The files that older versions have."""
    log = DeltaLog.for_table(path)
    found = set()
    for version in range(log.snapshot.version):
        files = log.snapshot_at(version).file_table["path"].to_pylist()
        found |= {each.rpartition("/")[2] for each in files}
    return found - named(path)


@pytest.mark.connect
def test_odd_names_and_values_of_partitions(spark, path):
    schema = "`a.b` INT, `Ünï cödé` STRING, `p q` STRING"
    create_table(
        path,
        schema,
        partition_by=["p q"],
        properties={"delta.columnMapping.mode": "name", **VECTORS},
    )
    data = {
        "a.b": pa.array([1, 2, 3], pa.int32()),
        "Ünï cödé": ["x", "y", None],
        "p q": ["a/b=c %", "é", None],
    }
    write_arrow(path, pa.table(data), mode="append")
    delete_rows(path, "`a.b` = 3")
    source = spark.sql("SELECT 2 AS `a.b`, 'z' AS `ünï cödé`, '' AS `P Q`").union(
        spark.sql("SELECT 4, 'new', ' '")
    )
    (
        DeltaTable.forPath(spark, path)
        .alias("t t")
        .merge(source.alias("s"), "`t t`.`a.b` = s.`a.b`")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found if row["p q"]) == [
        (1, "x", "a/b=c %"),
        (4, "new", " "),
    ]
    assert [row["Ünï cödé"] for row in found if row["p q"] is None] == ["z"]


@pytest.mark.connect
def test_the_conf_lets_every_merge_evolve_the_schema(spark, path):
    people(path)
    key = "spark.databricks.delta.schema.autoMerge.enabled"
    source = spark.sql("SELECT 1 AS id, 'uno' AS name, 1L AS n, true AS more").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    spark.conf.set(key, "true")
    try:
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().execute()
    finally:
        spark.conf.unset(key)
    assert rows(path)[1] == {"id": 1, "name": "uno", "n": 1, "more": True}
    assert rows(path)[2]["more"] is None


@pytest.mark.connect
def test_what_is_no_merge_is_refused_before_anything_runs(spark, path):
    people(path)
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.sql("SELECT 1 AS id, 'x' AS name").alias("s")
    merge = table.merge(source, "t.id = s.id")
    other = DeltaTable.forPath(spark, path).toDF()
    for build, match in (
        (lambda: merge, "MISSING_WHEN"),
        (lambda: merge.whenMatchedUpdate(set={"nmae": "1"}), "name"),
        (lambda: merge.whenMatchedUpdate(set={"n": "s.nope"}), "UNRESOLVED_EXPRESSION"),
        (lambda: merge.whenMatchedUpdate("rand() < 2", set={"n": "1"}), "NON_DETERMINISTIC"),
        (lambda: merge.whenMatchedDelete().whenMatchedDelete(), "OMIT_CONDITION"),
        (lambda: merge.whenMatchedDelete("t.n"), "DATATYPE_MISMATCH"),
        (lambda: merge.whenMatchedUpdate("t.n > (SELECT 1)", set={"n": "1"}), "SUBQUERY"),
        (lambda: merge.whenMatchedDelete("t.n IN (SELECT 1)"), "DELTA_UNSUPPORTED_SUBQUERY"),
        (lambda: merge.whenMatchedUpdate(set={"n": "int(t.n IN (SELECT 1))"}), "IN_EXISTS"),
        (
            lambda: merge.whenMatchedUpdate(set={"n": "(SELECT max(id) FROM range(9) WHERE id=n)"}),
            "CORRELATED",
        ),
        (lambda: merge.whenMatchedUpdate(set={"n": "sum(t.n)"}), "AGGREGATION"),
        (lambda: merge.whenMatchedUpdate(set={"n": sf.sum("t.n")}), "AGGREGATION"),
        (lambda: merge.whenMatchedDelete(other["n"] > 1), "UNRESOLVED.* Name the column"),
        (lambda: merge.whenMatchedUpdate(set={"n": other["n"]}), "UNRESOLVED.* Name the"),
    ):
        with pytest.raises(DeltaError, match=match):
            build().execute()
    assert files_of(path) == named(path)


@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("null", ["null", "NULL AND t.id > 0", "cast(null AS BOOLEAN)"])
def test_a_condition_of_a_clause_may_be_null_and_is_never_true(spark, path, null):
    people(path)
    source = spark.createDataFrame([(1, "a"), (7, "b")], "id INT, name STRING").alias("s")
    of_source = null.replace("t.", "s.")
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source, "t.id = s.id")
        .whenMatchedDelete(null)
        .whenMatchedUpdate(set={"name": "s.name"})
        .whenNotMatchedInsert(of_source, {"id": "0"})
        .whenNotMatchedInsert(values={"id": "s.id"})
        .whenNotMatchedBySourceDelete(null)
        .whenNotMatchedBySourceUpdate("t.id = 2", {"n": "0"})
        .execute()
    )
    found = rows(path)
    assert sorted(found) == [1, 2, 3, 4, 5, 6, 7]
    assert (found[1]["name"], found[2]["n"], found[3]["n"], found[7]["name"]) == ("a", 0, 30, None)


@pytest.mark.connect
def test_a_value_of_a_clause_may_be_a_query_for_one(spark, path):
    people(path)
    source = spark.createDataFrame([(1,), (7,)], "id INT").alias("s")
    query = "(SELECT max(id) FROM range(9))"
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source, "t.id = s.id")
        .whenMatchedUpdate(set={"n": f"t.n + {query}"})
        .whenNotMatchedInsert(values={"id": "s.id", "n": query})
        .whenNotMatchedBySourceUpdate("t.id = 2", {"n": f"{query} - t.n"})
        .execute()
    )
    found = {key: row["n"] for key, row in rows(path).items()}
    assert found == {1: 18, 2: -12, 3: 30, 4: 40, 5: 50, 6: 60, 7: 8}


@pytest.mark.connect
def test_a_star_never_brings_lakelogs_own_columns(spark, path):
    people(path)
    source = spark.createDataFrame([(1, "2*(*)"), (7, "x")], "id INT, v STRING").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    for refused in ("to_json(struct(`T`.*))", "hash(*)", sf.to_json(sf.struct("t.*"))):
        with pytest.raises(DeltaAnalysisError, match="INVALID_USAGE_OF_STAR"):
            merge.whenMatchedUpdate(set={"name": refused}).execute()
    (
        merge.whenMatchedUpdate(set={"name": "concat('(t.*)', s.v, 2*t.id)"})
        .whenNotMatchedInsert(values={"id": "s.id", "name": "to_json(struct(s.*))"})
        .execute()
    )
    found = rows(path)
    assert (found[1]["name"], found[7]["name"]) == ("(t.*)2*(*)2", '{"id":7,"v":"x"}')


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize("alias", [None, "t"])
def test_columns_of_the_tables_own_dataframe_are_its_columns(spark, path, alias):
    people(path, FEED)
    table = DeltaTable.forPath(spark, path)
    df = table.toDF()
    table.update("id = 6", {"n": "n + 1"})  # `df` is older than what is merged into
    source = spark.createDataFrame([(1, 100), (2, 200), (7, 700)], "id INT, n BIGINT")
    named = table if alias is None else table.alias(alias)
    (
        named.merge(source, df["id"] == source["id"])
        .whenMatchedUpdate(df["n"] > 10, {"n": df["n"] + source["n"]})
        .whenMatchedDelete(df["name"] == "p1")
        .whenNotMatchedInsert(values={"id": source["id"], "n": source["n"]})
        .whenNotMatchedBySourceUpdate(df["id"] > 5, {"n": -df["n"], "name": df["name"]})
        .whenNotMatchedBySourceDelete(df["n"] == 30)
        .execute()
    )
    found = {key: row["n"] for key, row in rows(path).items()}
    assert found == {2: 220, 4: 40, 5: 50, 6: -61, 7: 700}
    assert rows(path)[6]["name"] == "p6"

    before = files_of(path)
    merge = named.merge(source, df["id"] == source["id"])
    with pytest.raises(DeltaError, match="UNRESOLVED"):  # there is no row of the table
        merge.whenNotMatchedInsert(values={"id": df["id"]}).execute()
    ours = df.where("id < 3")
    for condition in (df["id"] < ours["id"], df["id"] == ours["id"] + 0):
        with pytest.raises(Exception, match=r"(?i)ambiguous"):
            named.merge(ours, condition).whenMatchedDelete().execute()
    again = named.merge(ours.alias("s"), sf.col("s.id") == df["id"])
    with pytest.raises(Exception, match=r"(?i)ambiguous"):
        again.whenMatchedUpdate(set={"n": ours["n"]}).execute()
    assert files_of(path) == before


@pytest.mark.connect
def test_a_struct_that_lacks_a_field_is_noticed_where_no_row_needs_it(spark, path):
    create_table(path, "id INT, st STRUCT<a: INT, b: STRING>")
    source = spark.sql("SELECT id, named_struct('a', id) AS st FROM VALUES (1) AS v (id)")
    for condition in ("t.id = s.id", "t.id = s.id AND s.id > 5"):
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), condition)
        for build in (
            lambda m: m.whenMatchedUpdate(set={"st": "s.st"}),
            lambda m: m.whenMatchedUpdateAll(),
            lambda m: m.whenNotMatchedInsert("s.id > 5", {"id": "s.id", "st": "s.st"}),
            lambda m: m.whenNotMatchedBySourceUpdate(set={"st": "named_struct('a', 1)"}),
        ):
            with pytest.raises(DeltaError, match="the value's lacks b"):
                build(merge).execute()
    assert files_of(path) == named(path)


@pytest.mark.one_day_in(4)
@pytest.mark.connect
@pytest.mark.parametrize(
    "properties",
    [{}, VECTORS, TRACKED, {**VECTORS, "delta.columnMapping.mode": "name"}],
    ids=["plain", "vectors", "row ids", "mapped"],
)
def test_conditions_and_values_may_name_the_file_of_a_row(spark, path, properties):
    people(path, properties)
    (second,) = DeltaLog.for_table(path).snapshot.files("id = 5")
    source = spark.createDataFrame(
        [(1, "s1"), (4, "s4"), (6, "s6"), (9, "s9")], "id INT, name STRING"
    )
    name = second.path.rpartition("/")[2]
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source.alias("s"), f"t.id = s.id AND t._metadata.file_name = '{name}'")
        .whenMatchedUpdate("t._metadata.row_index = 0", {"n": "t._metadata.file_size"})
        .whenMatchedDelete()
        .whenNotMatchedBySourceUpdate(
            "id > 0 AND _metadata.row_index = 2", {"name": "concat('row ', _metadata.row_index)"}
        )
        .whenNotMatchedInsert("id > 5", {"id": "s.id", "name": "s.name"})
        .execute()
    )
    found = rows(path)
    assert sorted(found) == [1, 2, 3, 4, 5, 9]
    assert found[4] == {"id": 4, "name": "p4", "n": second.size}
    assert found[3]["name"] == "row 2"


def test_each_column_of_a_table_costs_a_merge_a_few_calls_of_java(
    classic_spark, tmp_path, java_calls
):
    """Of a condition that names columns of the table's DataFrame, and of a clause for each kind."""
    found = []
    for count in (4, 24):
        table = str(tmp_path / str(count))
        names = [f"n{i}" for i in range(count)]
        write_arrow(table, {name: [1, 2, 3] for name in names}, mode="append")
        ours = DeltaTable.forPath(classic_spark, table)
        source = classic_spark.range(5).withColumnRenamed("id", "n0").alias("s")

        def merge(ours=ours, source=source):
            (
                ours.alias("t")
                .merge(source, ours.toDF()["n0"] == sf.col("s.n0"))
                .whenMatchedUpdate("t.n1 > 7", {"n1": "0"})
                .whenNotMatchedInsert("s.n0 > 7", {"n0": "s.n0"})
                .whenNotMatchedBySourceDelete("t.n1 > 7")
                .execute()
            )

        found.append(java_calls(merge))
    assert (found[1] - found[0]) / 20 < 100, found
