from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.dml.merge.read_predicate import MergeReads
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import is_opaque
from lakelog.core.input.given_types import schema_from
from lakelog.spark.dml.candidate_files import RowCondition, outside_of

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core import Snapshot

TARGET = schema_from("id INT, `a.b` STRING, day DATE, x DOUBLE, u STRUCT<id: INT>, own INT")
SOURCE = schema_from("id INT, `a.b` STRING, key INT, x DOUBLE, big BIGINT, q STRUCT<id: INT>")


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    create_table(str(tmp_path), TARGET)
    return DeltaLog.for_table(str(tmp_path)).snapshot


def known(found: MergeReads) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The conditions on the table alone, and the columns that must be equal to match."""
    ours = [column.path[0] for column, _ in found.columns]
    return tuple(map(to_sql, found.filters)), tuple(zip(ours, found.keys, strict=True))


@pytest.mark.parametrize(
    ("condition", "filters", "keys"),
    [
        ("t.id = s.id", (), (("id", "id"),)),
        ("s.key = T.ID AND t.x > 1", ("x > 1.0D",), (("id", "key"),)),
        ("(t.`a.b` = s.`a.b`) AND ((t.id = key))", (), (("a.b", "a.b"), ("id", "key"))),
        ("t.id = s.id OR t.x = 1", (), ()),
        ("t.id <=> s.id", (), ()),
        ("t.id = s.big", (), ()),  # compared in another type
        ("t.x = s.x", (), ()),  # NaN
        ("t.id = q.id", (), ()),  # a field of a struct
        ("t.id = s.id + 1", (), ()),
        ("id = s.id AND x > 1", (), ()),  # whose they are Spark alone knows
        ("t.u.id = s.id", (), ()),
        ("t.id = u.id", (), ()),  # both are the table's, perhaps
        ("own = s.key AND day > '2024-01-01'", ("day > DATE '2024-01-01'",), (("own", "key"),)),
        ("key = t.own AND own > x", (), (("own", "key"),)),
        ("own = key AND u.id = 1", (), (("own", "key"),)),
        ("t.id >", (), ()),
    ],
)
def test_filters_and_keys_are_found_in_a_condition(
    snapshot: Snapshot, condition: str, filters: tuple[str, ...], keys: tuple[tuple[str, str], ...]
) -> None:
    assert known(MergeReads.of(condition, snapshot, SOURCE, "t")) == (filters, keys)


def test_without_an_alias_a_column_is_the_tables_where_the_source_has_none_of_the_name(
    snapshot: Snapshot,
) -> None:
    condition = "own = s.key AND day = '2024-01-01' AND key > 1 AND t.id = s.id"
    found = MergeReads.of(condition, snapshot, SOURCE, None)
    assert known(found) == (("day = DATE '2024-01-01'",), (("own", "key"),))


def test_texts_do_not_bound_the_numbers_and_dates_that_they_are_compared_as(
    tmp_path: Path,
) -> None:
    write_arrow(str(tmp_path), pa.table({"n": [9], "text": ["9"]}))
    write_arrow(str(tmp_path), pa.table({"n": [10], "text": ["10"]}), mode="append")
    snapshot, source = DeltaLog.for_table(str(tmp_path)).snapshot, schema_from("s STRING, i INT")
    found = MergeReads.of("t.n = s", snapshot, source, "t")
    assert (found.keys, found.predicate([])) == ((), None)
    assert MergeReads.of("t.text = s", snapshot, source, "t").keys == ("s",)
    found = MergeReads.of("t.n = i", snapshot, source, "t")
    predicate = found.predicate([pa.scalar(9, pa.int32()), pa.scalar(10, pa.int32())])
    assert snapshot.file_table_for(predicate).num_rows == 2


def test_nothing_is_known_of_a_condition_without_text(snapshot: Snapshot) -> None:
    assert known(MergeReads.of(None, snapshot, SOURCE, "t")) == ((), ())


def test_the_bounds_of_keys_are_what_is_read(snapshot: Snapshot) -> None:
    found = MergeReads.of("t.id = s.id AND t.x > 1", snapshot, SOURCE, "t")
    bounds = [pa.scalar(3, pa.int32()), pa.scalar(7, pa.int32())]
    predicate = found.predicate(bounds)
    assert predicate is not None
    text = to_sql(predicate).replace("`", "")
    assert "x > 1" in text
    assert "id >= 3" in text
    assert "id <= 7" in text
    nothing = [pa.scalar(None, pa.int32())] * 2
    rest = found.predicate(nothing)
    assert rest is not None
    assert to_sql(rest).endswith("AND FALSE")  # null equals nothing
    assert MergeReads.of("t.id <=> s.id", snapshot, SOURCE, "t").predicate([]) is None


@pytest.mark.parametrize(
    ("condition", "alias", "understood"),
    [
        ("id > 3", None, "id > 3"),
        ("t.id > 3 AND t.x < 2 OR t.u.id = 1", "t", "id > 3 AND x < 2.0D OR u.id = 1"),
        ("T.id > 3 AND x < 2", "t", "id > 3 AND x < 2.0D"),
        # What is left of a conjunction is true wherever the whole is.
        ("t.id > 3 AND exists(array(t.x), y -> y > 1)", "t", "id > 3"),
        ("t.id > 3 OR other(t.x)", "t", None),
        ("u.id > 3", "u", None),  # the alias, or the struct
        ("nope > 3 AND v.id = 1", "t", None),
        ("t.id >", "t", None),
        (None, None, None),
    ],
)
def test_what_is_understood_of_a_condition_is_true_wherever_it_is(
    tmp_path: Path, condition: Any, alias: str | None, understood: str | None
) -> None:
    create_table(str(tmp_path), TARGET)
    found = RowCondition.of(condition, DeltaLog.for_table(str(tmp_path)).snapshot, alias).part
    if understood is None:
        assert found is None or is_opaque(found)
        return
    assert found is not None
    text = to_sql(found).translate(str.maketrans("", "", "`()"))
    assert text.startswith(understood)


@pytest.mark.parametrize(
    ("condition", "alias", "is_whole"),
    [
        ("id = 1 AND u.id > 2", None, True),
        ("t.id = 1 AND (x > 0)", "t", True),
        ("t.id = 1 AND s.id = 2", "t", False),
        ("u.id = 1", "u", False),  # the table's `id`, or a field of `u`
        ("NULL", None, False),
        ("id = 1 AND", None, False),
        (None, None, False),
    ],
)
def test_a_condition_is_known_as_a_whole_or_in_part(
    tmp_path: Path, condition: Any, alias: str | None, is_whole: bool
) -> None:
    create_table(str(tmp_path), TARGET)
    found = RowCondition.of(condition, DeltaLog.for_table(str(tmp_path)).snapshot, alias)
    assert (found.whole is not None) == is_whole
    assert found.whole in (None, found.part)


def test_all_partitions_but_some_are_what_is_read(tmp_path: Path) -> None:
    path = str(tmp_path)
    values = ["a", "it's", None, "c"]
    data = pa.table({"p": values, "q": pa.array([1, 2, 3, None], pa.int32()), "x": [1, 2, 3, 4]})
    write_arrow(path, data, partition_by=["p", "q"])
    snapshot = DeltaLog.for_table(path).snapshot

    expression = outside_of(snapshot, data.select(["p", "q"]).slice(0, 3))
    left = snapshot.file_table_for(expression)
    assert [dict(each) for each in left["partition_values"].to_pylist()] == [{"p": "c", "q": None}]
    assert outside_of(snapshot, data.select(["p", "q"]).slice(0, 0)) is None
    many = pa.table({"p": [str(i) for i in range(300)], "q": pa.array([1] * 300, pa.int32())})
    assert outside_of(snapshot, many) is None


def test_partitions_of_values_that_texts_spell_in_several_ways_are_not_told_apart(
    tmp_path: Path,
) -> None:
    data = pa.table({"p": pa.array([0.5, 1.5]), "x": [1, 2]})
    write_arrow(str(tmp_path), data, partition_by=["p"])
    snapshot = DeltaLog.for_table(str(tmp_path)).snapshot
    assert outside_of(snapshot, data.select(["p"]).slice(0, 1)) is None
