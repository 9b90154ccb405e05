"""A filter with an empty part says nothing, which is never taken for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, delete_rows, update_rows, write_arrow
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = StructType((StructField("id", PrimitiveType("long")),))
TUPLE = ("id", "=", 1)
ROWS = pa.table({"id": [1, 2, 3]})

empty_nodes = st.sampled_from([And(()), Or(())])
leaves = st.sampled_from([Comparison("=", Column(("id",)), Literal(1)), IsNull(Column(("id",)))])


def _around(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    beside = st.lists(leaves, max_size=2)
    joined = st.builds(
        lambda kind, before, part, after: kind((*before, part, *after)),
        st.sampled_from([And, Or]),
        beside,
        inner,
        beside,
    )
    return st.one_of(st.builds(Not, inner), joined)


trees: st.SearchStrategy[Any] = st.recursive(empty_nodes, _around, max_leaves=4)


@st.composite
def lists(draw: st.DrawFn) -> Any:
    """pyarrow's tuples, with one list of them empty at least."""
    groups = draw(st.lists(st.sampled_from([[TUPLE], [TUPLE, TUPLE], []]), max_size=4))
    groups.insert(draw(st.integers(0, len(groups))), [])
    return draw(st.sampled_from([groups, tuple(groups)]))


blank = st.text(" \t\n", max_size=3)


@settings(max_examples=examples(40), deadline=None)
@given(st.one_of(lists(), trees, blank, st.sampled_from([[], (), [()], [[()]]])))
def test_an_empty_part_at_any_depth_is_refused(filter_: Any) -> None:
    with pytest.raises(InvalidPredicateError):
        normalize_filter(filter_, SCHEMA)


def test_a_list_of_no_values_is_a_condition() -> None:
    assert normalize_filter([("id", "in", [])], SCHEMA) == Literal(False, PrimitiveType("boolean"))


DOORS: dict[str, Callable[[str, Any], object]] = {
    "delete_rows": delete_rows,
    "update_rows": lambda uri, where: update_rows(uri, {"id": 9}, where),
    "to_arrow": lambda uri, where: DeltaLog.for_table(uri).snapshot.to_arrow(where=where),
    "files": lambda uri, where: DeltaLog.for_table(uri).snapshot.files(where),
    "filter_files": lambda uri, where: (
        DeltaLog.for_table(uri).start_transaction().filter_files(where)
    ),
    "write_arrow": lambda uri, where: write_arrow(
        uri, ROWS, mode="overwrite", replace_where="" if where == [] else " "
    ),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("where", [[], [[]], [[], [TUPLE]], And(()), Not(Or(()))], ids=str)
def test_every_door_refuses_it_and_changes_nothing(
    tmp_path: Path, door: Callable[[str, Any], object], where: Any
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    with pytest.raises(InvalidPredicateError):
        door(uri, where)
    snapshot = DeltaLog.for_table(uri).snapshot
    assert snapshot.version == 0
    assert snapshot.to_arrow() == ROWS
