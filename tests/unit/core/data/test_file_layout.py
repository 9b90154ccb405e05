"""Files of tables that map columns, or want random folders: written, and read back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, delete_rows, lit, update_rows, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.alter import set_properties
from lakelog.core.compute import pc
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    SchemaMismatchError,
)
from lakelog.core.schema.column_paths import walk
from support.examples import examples

MAPPED = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "odd name": ["a", None, "c", "d"],
        "s": [{"x": 1, "y": {"z": "p"}}, None, {"x": None, "y": None}, {"x": 4, "y": {"z": None}}],
        "l": [[{"e": 1.5}, None], [], None, [{"e": float("nan")}]],
        "m": pa.array(
            [[("k", {"v": 1})], [], None, [("a", None), ("b", {"v": None})]],
            pa.map_(pa.string(), pa.struct([("v", pa.int32())])),
        ),
        "p": ["u", "u", None, "a b"],
    }
)


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "t")


def snapshot(uri):
    return DeltaLog.for_table(uri).snapshot


def rows(uri, **how):
    found = snapshot(uri).to_arrow(**how)
    return sorted(map(repr, found.to_pylist()))


def fields_of(uri):
    """Path -> field, of the table's schema."""
    return {".".join(path): field for path, field in walk(snapshot(uri).schema)}


def physical(uri, path):
    return fields_of(uri)[path].metadata["delta.columnMapping.physicalName"]


def files(uri):
    return [Path(uri) / each.path for each in snapshot(uri).files()]


@pytest.mark.parametrize("properties", [MAPPED, BY_ID], ids=["name", "id"])
@pytest.mark.parametrize("partitions", [(), ("p",)], ids=["whole", "partitioned"])
def test_rows_come_back_from_files_with_other_names(uri, properties, partitions):
    write_arrow(uri, ROWS, partition_by=partitions, properties=properties, mode="append")

    assert rows(uri) == sorted(map(repr, ROWS.to_pylist()))
    assert snapshot(uri).to_arrow(where="`odd name` = 'c'").num_rows == 1
    assert snapshot(uri).to_arrow(where="s.x = 4")["id"].to_pylist() == [4]
    text = files(uri)[0].read_bytes()
    assert b"odd name" not in text


@pytest.mark.parametrize("properties", [MAPPED, BY_ID], ids=["name", "id"])
def test_files_have_physical_names_and_ids_at_every_depth(uri, properties):
    write_arrow(uri, ROWS, partition_by=("p",), properties=properties, mode="append")

    schema = pq.read_schema(files(uri)[0])
    found = {}

    def note(field, path):
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        found[path] = None if number is None else int(number)
        kind = field.type
        if pa.types.is_struct(kind):
            for child in kind:
                note(child, (*path, child.name))
        elif pa.types.is_list(kind):
            note(kind.value_field, (*path, "element"))
        elif pa.types.is_map(kind):
            note(kind.key_field, (*path, "key"))
            note(kind.item_field, (*path, "value"))

    for each in schema:
        note(each, (each.name,))
    wanted = {}
    for path in fields_of(uri):
        parts, names = path.split("."), []
        for depth in range(len(parts)):
            above = ".".join(parts[: depth + 1])
            names.append(physical(uri, above) if above in fields_of(uri) else parts[depth])
        wanted[tuple(names)] = fields_of(uri)[path].metadata["delta.columnMapping.id"]
    wanted.pop((physical(uri, "p"),))
    # Elements, keys and values have none: nobody gave them any.
    assert {path: number for path, number in found.items() if number is not None} == wanted


def test_statistics_and_partition_values_go_by_physical_names(uri):
    write_arrow(uri, ROWS, partition_by=("p",), properties=MAPPED, mode="append")

    name, inner = physical(uri, "id"), (physical(uri, "s"), physical(uri, "s.x"))
    for each in snapshot(uri).files():
        stats = json.loads(each.stats or "")
        assert list(each.partition_values) == [physical(uri, "p")]
        assert set(stats["minValues"]) <= {name, physical(uri, "odd name"), inner[0]}
        assert name in stats["minValues"]
        assert inner[1] in stats["nullCount"][inner[0]]
    assert len(snapshot(uri).files("id > 3")) == 1
    assert len(snapshot(uri).files("p = 'u'")) == 1
    assert len(snapshot(uri).files("p IS NULL")) == 1


def test_listed_columns_with_statistics_are_those_of_the_table(uri):
    properties = {**MAPPED, "delta.dataSkippingStatsColumns": "`odd name`,s.y.z"}
    write_arrow(uri, ROWS, properties=properties, mode="append")

    (file,) = snapshot(uri).files()
    stats = json.loads(file.stats or "")
    assert set(stats["nullCount"]) == {physical(uri, "odd name"), physical(uri, "s")}
    assert set(stats["minValues"]) == {physical(uri, "odd name"), physical(uri, "s")}


def test_a_nan_is_noticed_under_the_other_name_of_its_column(uri):
    data = pa.table({"f": [1.0, float("nan")], "s": [{"g": 2.0}, {"g": float("nan")}]})
    write_arrow(uri, data, properties=MAPPED, mode="append")

    (file,) = snapshot(uri).files()
    stats = json.loads(file.stats or "")
    assert "minValues" not in stats
    assert stats["nullCount"][physical(uri, "f")] == 0
    assert snapshot(uri).to_arrow(where="f > 5").num_rows == 1


@pytest.mark.parametrize("partitions", [(), ("p",)], ids=["whole", "partitioned"])
@pytest.mark.parametrize("length", [None, 5])
def test_files_of_mapped_tables_lie_in_random_folders(uri, partitions, length):
    properties = MAPPED | ({} if length is None else {"delta.randomPrefixLength": str(length)})
    write_arrow(uri, ROWS, partition_by=partitions, properties=properties, mode="append")

    for each in snapshot(uri).files():
        assert re.fullmatch(rf"[0-9A-Za-z]{{{length or 2}}}/part-\S+", each.path)


def test_random_folders_go_without_mapping_too(uri):
    data = ROWS.drop_columns(["odd name"])
    properties = {"delta.randomizeFilePrefixes": "true"}
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")

    assert all(re.fullmatch(r"[0-9A-Za-z]{2}/part-\S+", f.path) for f in snapshot(uri).files())
    assert rows(uri) == sorted(map(repr, data.to_pylist()))


def test_a_table_that_turns_mapping_on_later_reads_its_files_of_before(uri):
    write_arrow(uri, ROWS.drop_columns(["odd name"]), partition_by=["p"], mode="append")
    turn_on(uri)
    write_arrow(uri, ROWS, schema_mode="merge", mode="append")

    found = snapshot(uri).to_arrow().sort_by([("id", "ascending")])
    assert found["id"].to_pylist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert found["odd name"].null_count == 5
    assert physical(uri, "s.x") == "x"
    assert physical(uri, "odd name").startswith("col-")
    assert snapshot(uri).protocol.min_reader_version == 2


def turn_on(uri):
    txn = DeltaLog.for_table(uri).start_transaction()
    properties = {**txn.metadata.configuration, **MAPPED}
    txn.update_metadata(replace(txn.metadata, configuration=properties))
    txn.commit([], Operation("SET TBLPROPERTIES"))


def test_replaced_partitions_are_found_by_their_other_names(uri):
    write_arrow(uri, ROWS, partition_by=["p"], properties=MAPPED, mode="append")
    new = ROWS.slice(0, 1).set_column(0, "id", pa.array([9], pa.int64()))

    write_arrow(uri, new, mode="overwrite", replace_where="p = 'u'")

    assert sorted(snapshot(uri).to_arrow()["id"].to_pylist()) == [3, 4, 9]
    with pytest.raises(ConstraintViolationError, match="REPLACE_WHERE"):
        write_arrow(uri, ROWS, mode="overwrite", replace_where="p = 'u'")


def test_an_overwritten_schema_keeps_the_names_of_columns_that_stay(uri):
    write_arrow(uri, ROWS, properties=MAPPED, mode="append")
    before = {path: physical(uri, path) for path in ("id", "s", "l")}
    data = ROWS.select(["id", "s"]).append_column("l", pa.array(["x"] * 4))

    write_arrow(uri, data, mode="overwrite", schema_mode="overwrite")

    assert rows(uri) == sorted(map(repr, data.to_pylist()))
    assert {path: physical(uri, path) for path in ("id", "s")} == {
        path: before[path] for path in ("id", "s")
    }
    assert physical(uri, "l") != before["l"]
    # The same schema once more is no change of metadata.
    version = write_arrow(uri, data, mode="overwrite", schema_mode="overwrite")
    text = (Path(uri) / "_delta_log" / f"{version:020d}.json").read_text()
    assert "metaData" not in text


def test_turning_mapping_off_is_refused_for_what_it_is(uri):
    write_arrow(uri, ROWS, properties=MAPPED, mode="append")

    with pytest.raises(DeltaAnalysisError, match=r"COLUMN_MAPPING_MODE_CHANGE.*name' to 'none"):
        set_properties(uri, {"delta.columnMapping.mode": "none"})


def test_rules_of_the_table_go_by_its_own_names(uri):
    write_arrow(uri, ROWS, properties={**MAPPED, "delta.constraints.c": "id < 5"}, mode="append")

    with pytest.raises(ConstraintViolationError, match="id < 5"):
        write_arrow(uri, ROWS.set_column(0, "id", pc.add(ROWS["id"], 3)), mode="append")
    with pytest.raises(SchemaMismatchError):
        write_arrow(uri, ROWS.append_column("new", ROWS["id"]), mode="append")


@pytest.mark.parametrize(("other", "clashes"), [("u", True), ("zzz", False)])
def test_concurrent_appends_are_told_apart_by_partition(uri, other, clashes):
    write_arrow(uri, ROWS, partition_by=["p"], properties=MAPPED, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    gone = txn.filter_files("p = 'u'")
    write_arrow(uri, ROWS.slice(0, 1).set_column(5, "p", pa.array([other])), mode="append")

    def commit():
        return txn.commit([each.remove(0) for each in gone], Operation("DELETE"))

    if not clashes:
        assert commit() == 2
        return
    with pytest.raises(ConcurrentAppendException, match=r"\[p=u\]"):
        commit()


def test_partitions_are_replaced_by_physical_names(uri):
    write_arrow(uri, ROWS, partition_by=["p"], properties=MAPPED, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    some = [each for each in snapshot(uri).files() if "u" in each.partition_values.values()]

    assert [each.path for each in txn.reads.files_in_same_partitions(some)] == [some[0].path]


def test_values_under_the_tables_own_names_are_refused(uri):
    write_arrow(uri, ROWS, partition_by=["p"], properties=MAPPED, mode="append")
    log = DeltaLog.for_table(uri)
    (file, *_) = log.snapshot.files()
    wrong = replace(file, path="x", partition_values={"p": "u"})
    with pytest.raises(DeltaAnalysisError, match="DELTA_INVALID_PARTITIONING_SCHEMA"):
        log.start_transaction().commit([wrong], Operation.write("Append"))


@pytest.mark.parametrize("structs", ["true", "false"])
def test_the_same_table_comes_out_of_a_checkpoint(uri, structs):
    properties = {
        **MAPPED,
        "delta.checkpoint.writeStatsAsJson": "false" if structs == "true" else "true",
        "delta.checkpoint.writeStatsAsStruct": structs,
    }
    write_arrow(uri, ROWS, partition_by=["p"], properties=properties, mode="append")
    log = DeltaLog.for_table(uri)
    log.checkpoint()
    (Path(uri) / "_delta_log" / f"{0:020d}.json").unlink()

    assert rows(uri) == sorted(map(repr, ROWS.to_pylist()))
    assert len(snapshot(uri).files("p = 'u'")) == 1
    assert len(snapshot(uri).files("id > 3")) == 1


ATOMS = st.sampled_from([pa.int64(), pa.string(), pa.float32(), pa.bool_(), pa.date32()])
TYPES = st.recursive(
    ATOMS,
    lambda inner: (
        st.dictionaries(
            st.sampled_from(["a", "b", "x y", "ü.`"]), inner, min_size=1, max_size=3
        ).map(lambda fields: pa.struct(list(fields.items())))
        | inner.map(pa.list_)
        | inner.map(lambda value: pa.map_(pa.string(), value))
    ),
    max_leaves=5,
)


def values_of(kind):
    return st.none() | _values_of(kind)


def _values_of(kind):
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({f.name: values_of(f.type) for f in kind})
    if pa.types.is_map(kind):
        items = st.dictionaries(st.text(max_size=3), values_of(kind.item_type), max_size=2)
        return items.map(lambda entries: list(entries.items()))
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    return {
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.string(): st.text(max_size=5),
        pa.float32(): st.floats(width=32, allow_nan=False),
        pa.bool_(): st.booleans(),
        pa.date32(): st.dates(),
    }[kind]


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(["a", "B", "x;y", "ü", "`"]), min_size=1, unique=True))
    count = draw(st.integers(0, 4))
    columns = {}
    for name in names:
        kind = draw(TYPES)
        values = draw(st.lists(values_of(kind), min_size=count, max_size=count))
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


@settings(
    max_examples=examples(16),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=tables(), second=tables(), mode=st.sampled_from(["name", "id"]))
def test_any_nested_rows_come_back(tmp_path_factory, first, second, mode):
    uri = str(tmp_path_factory.mktemp("any") / "t")
    write_arrow(uri, first, properties={"delta.columnMapping.mode": mode}, mode="append")
    assert rows(uri) == sorted(map(repr, first.to_pylist()))

    write_arrow(uri, second, mode="overwrite", schema_mode="overwrite")
    assert rows(uri) == sorted(map(repr, second.to_pylist()))
    # The earlier version is still read by its own names.
    older = DeltaLog.for_table(uri).snapshot_at(version=0).to_arrow()
    assert sorted(map(repr, older.to_pylist())) == sorted(map(repr, first.to_pylist()))


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_are_deleted_and_updated_under_the_tables_own_names(uri, vectors):
    properties = {**MAPPED, "delta.enableDeletionVectors": vectors}
    write_arrow(uri, ROWS, partition_by=["p"], properties=properties, mode="append")

    delete_rows(uri, "`odd name` = 'a'")
    update_rows(uri, {"odd name": lit("new")}, "p = 'a b'")

    assert sorted(snapshot(uri).to_arrow()["id"].to_pylist()) == [2, 3, 4]
    assert snapshot(uri).to_arrow(where="id = 4")["odd name"].to_pylist() == ["new"]
    assert all(re.match(r"[0-9A-Za-z]{2}/part-", f.path) for f in snapshot(uri).files())


def test_files_written_while_another_turns_mapping_on_are_read_after_it(uri):
    write_arrow(uri, ROWS.select(["id", "p"]), partition_by=["p"], mode="append")
    log = DeltaLog.for_table(uri)
    txn = log.start_transaction()
    layout = txn.changes.file_layout
    with DataFileWriter(layout.plan(log.store, log.table), layout.schema) as writer:
        writer.write(pa.table({"id": [9], "p": ["u"]}))
        adds = writer.close()

    turn_on(uri)

    assert txn.commit(adds, Operation.write("Append")) == 2
    assert snapshot(uri).properties.column_mapping_mode == "name"
    assert snapshot(uri).to_arrow(where="id = 9 AND p = 'u'").num_rows == 1
