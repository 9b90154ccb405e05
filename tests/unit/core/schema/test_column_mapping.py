from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptLogError, DataFileError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.column_mapping import mapped_like, read_schema_of
from support.raw_log import RawLog, add, metadata

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
PROTOCOL = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}


def field(
    name: str, number: int, kind: DataType = LONG, physical: str | None = None
) -> StructField:
    mapping = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": physical or f"col-{number}",
    }
    return StructField(name, kind, True, mapping)


def stored(name, number, kind):
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


class Table:
    """A table with mapped columns, whose log and files are written by hand."""

    def __init__(self, path, mode, *fields, partition_columns=()):
        self.path = path
        schema = StructType(fields)
        self.log = RawLog(path).commit(
            PROTOCOL,
            metadata(
                schema=schema,
                partition_columns=partition_columns,
                configuration={"delta.columnMapping.mode": mode},
            ),
        )

    def file(self, name, fields, *columns, **action):
        pq.write_table(
            pa.table([pa.array(c, f.type) for f, c in zip(fields, columns, strict=True)],
                     schema=pa.schema(fields)),
            self.path / name,
            row_group_size=2,
        )  # fmt: skip
        self.log.commit(add(name, **action))
        return self

    @property
    def snapshot(self):
        return DeltaLog.for_table(self.path).snapshot

    def rows(self, **how):
        return self.snapshot.to_arrow(**how).to_pylist()


@pytest.fixture
def table(tmp_path):
    return lambda *args, **options: Table(tmp_path / "t", *args, **options)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_under_their_physical_names_or_ids(table, mode):
    there = table(mode, field("a", 1), field("b", 2))
    # The file calls the columns as mode `name` wants, in another order.
    there.file("f", [stored("col-2", 2, pa.int64()), stored("col-1", 1, pa.int64())], [1], [2])

    assert there.rows() == [{"a": 2, "b": 1}]
    assert there.rows(columns=["b"]) == [{"b": 1}]


def test_ids_win_over_names_in_mode_id(table):
    there = table("id", field("a", 1), field("b", 2))
    there.file("f", [stored("b", 1, pa.int64()), stored("col-1", 2, pa.int64())], [1], [2])

    assert there.rows() == [{"a": 1, "b": 2}]


def test_the_name_of_a_dropped_column_is_free_for_a_new_one(table):
    there = table("name", field("a", 3), field("kept", 2, physical="kept"))
    there.file("f", [stored("a", 1, pa.int64()), stored("kept", 2, pa.int64())], [1, 1], [5, 6])

    assert there.rows() == [{"a": None, "kept": 5}, {"a": None, "kept": 6}]
    assert there.rows(where="a = 1") == []
    assert len(there.rows(where="a is null and kept = 6")) == 1


def test_names_may_have_changed_places(table):
    there = table("name", field("a", 1, physical="b"), field("b", 2, physical="a"))
    there.file("f", [stored("a", 2, pa.int64()), stored("b", 1, pa.int64())], [1, 2], [10, 20])

    assert there.rows() == [{"a": 10, "b": 1}, {"a": 20, "b": 2}]
    assert there.rows(where="a = 20") == [{"a": 20, "b": 2}]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_fields_are_mapped_at_any_depth(table, mode):
    inner = StructType((field("x", 5), field("y", 6)))
    there = table(
        mode,
        field("s", 1, inner),
        field("l", 2, ArrayType(StructType((field("x", 7),)))),
        field("m", 3, MapType(STRING, StructType((field("x", 8),)))),
    )
    # `x` of the file is a dropped field, which had the name of a newer one.
    old = pa.struct([stored("x", 4, pa.int64()), stored("col-5", 5, pa.int64())])
    there.file(
        "f",
        [
            stored("col-1", 1, old),
            stored("col-2", 2, pa.list_(pa.struct([stored("col-7", 7, pa.int64())]))),
            stored("col-3", 3, pa.map_(pa.string(), pa.struct([stored("col-8", 8, pa.int64())]))),
        ],
        [{"x": 0, "col-5": 1}, None],
        [[{"col-7": 2}, None], []],
        [[("k", {"col-8": 3})], None],
    )  # fmt: skip

    assert there.rows() == [
        {"s": {"x": 1, "y": None}, "l": [{"x": 2}, None], "m": [("k", {"x": 3})]},
        {"s": None, "l": [], "m": None},
    ]


def test_equal_types_do_not_make_equal_columns(table):
    inner = StructType((field("x", 5),))
    there = table("name", field("s", 1, inner, physical="s"))
    there.file("f", [stored("s", 1, pa.struct([stored("x", 4, pa.int64())]))], [{"x": 9}])

    assert there.rows() == [{"s": {"x": None}}]


def test_partition_values_and_statistics_go_by_physical_names(table):
    there = table("id", field("a", 1), field("p", 2, STRING), partition_columns=("p",))
    for name, low in (("f", 0), ("g", 10)):
        values = [low, low + 1, low + 2, low + 3]
        stats = {
            "numRecords": 4,
            "minValues": {"col-1": low, "a": 100},
            "maxValues": {"col-1": low + 3, "a": 100},
            "nullCount": {"col-1": 0},
        }
        there.file(
            name,
            [stored("col-1", 1, pa.int64())],
            values,
            partitionValues={"col-2": name, "p": "no"},
            stats=json.dumps(stats),
        )

    assert [(row["a"], row["p"]) for row in there.rows()][3:5] == [(3, "f"), (10, "g")]
    assert [add.path for add in there.snapshot.files("a > 5")] == ["g"]
    assert [add.path for add in there.snapshot.files("p = 'f'")] == ["f"]
    assert there.rows(where="p = 'g' and a >= 12") == [{"a": 12, "p": "g"}, {"a": 13, "p": "g"}]


def test_row_groups_are_left_out_by_the_mapped_column_alone(table):
    # By the names of the file the second row group would go.
    there = table("name", field("a", 1, physical="b"), field("b", 2, physical="a"))
    fields = [stored("a", 2, pa.int64()), stored("b", 1, pa.int64())]
    there.file("f", fields, [1, 1, 9, 9], [9, 9, 1, 1])

    assert there.rows(where="a = 1") == [{"a": 1, "b": 9}] * 2
    assert there.rows(where="b = 1") == [{"a": 9, "b": 1}] * 2


def test_the_metadata_of_mapping_means_nothing_without_a_mode(table):
    there = table("none", field("a", 1), field("p", 2, STRING), partition_columns=("p",))
    stats = '{"numRecords":1,"minValues":{"a":7,"col-1":0},"maxValues":{"a":7,"col-1":0}}'
    values = {"p": "x", "col-2": "y"}
    there.file("f", [stored("a", 9, pa.int64())], [7], partitionValues=values, stats=stats)

    assert there.rows(where="a = 7 and p = 'x'") == [{"a": 7, "p": "x"}]


def test_a_file_of_a_table_that_was_not_mapped_may_spell_names_in_another_case(table):
    there = table("name", field("Name", 1, physical="name"))
    there.file("f", [pa.field("NAME", pa.int64())], [1])

    assert there.rows() == [{"Name": 1}]


def test_a_file_without_ids_is_refused_in_mode_id_by_name(table):
    there = table("id", field("a", 1))
    there.file("f", [pa.field("col-1", pa.int64())], [1])

    with pytest.raises(DataFileError, match="has no field ids") as caught:
        there.rows()
    assert caught.value.path == str(there.path / "f")
    assert "version 1" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("mode", "lost", "message"),
    [
        ("name", "delta.columnMapping.physicalName", "column s.x has no physical name"),
        ("id", "delta.columnMapping.id", "column s.x has no field id"),
    ],
)
def test_a_field_without_its_mapping_is_an_error_of_the_log(table, mode, lost, message):
    inner = field("x", 2)
    kept = {key: value for key, value in inner.metadata.items() if key != lost}
    there = table(mode, field("s", 1, StructType((StructField("x", LONG, True, kept),))))

    with pytest.raises(CorruptLogError, match=message) as caught:
        there.rows()
    assert caught.value.version == 0


def test_metadata_comes_back_to_a_schema_that_an_engine_returned():
    inner = StructType((field("x", 2),))
    kinds: dict[str, DataType] = {"s": inner, "l": ArrayType(inner), "m": MapType(inner, inner)}
    table = StructType(tuple(field(name, 9, kind) for name, kind in kinds.items()))
    bare = read_schema_of(table, "none")
    assert bare != table

    assert mapped_like(bare, table) == table
