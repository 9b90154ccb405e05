"""Structs that a MERGE without Spark assigns: found by name, wherever they are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import merge, read_arrow, write_arrow
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError

if TYPE_CHECKING:
    from pathlib import Path

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
HELD: dict[str, tuple[Any, Any]] = {
    "struct": (lambda kind: kind, lambda value: value),
    "array": (pa.list_, lambda value: [value]),
    "map": (lambda kind: pa.map_(TEXT, kind), lambda value: [("k", value)]),
    "deep": (
        lambda kind: pa.struct([("m", pa.map_(TEXT, pa.list_(kind)))]),
        lambda value: {"m": [("k", [value])]},
    ),
}
REFUSED = "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"


def _merged(path: Path, holder: str, given: list[tuple[str, Any]], *, evolves: bool) -> Any:
    kind, form = HELD[holder]
    ids = pa.array([1], INT)
    there = pa.array([form({"a": 0, "b": "o"})], kind(pa.struct([("a", INT), ("b", TEXT)])))
    write_arrow(str(path), pa.table({"id": ids, "s": there}))
    value = {name: {"a": 1, "b": "x", "c": 2}[name] for name, _ in given}
    rows = pa.table(
        {"id": pa.array([1, 2], INT), "s": pa.array([form(value)] * 2, kind(pa.struct(given)))}
    )
    builder = merge(str(path), rows, "target.id = source.id", with_schema_evolution=evolves)
    builder = builder.when_matched_update({"s": "source.s"})
    builder.when_not_matched_insert({"id": "source.id", "s": "source.s"}).execute()
    return read_arrow(str(path))["s"].to_pylist()


@pytest.mark.parametrize("holder", HELD)
@pytest.mark.parametrize(
    ("given", "evolves", "found"),
    [
        ([("b", TEXT), ("a", INT)], False, {"a": 1, "b": "x"}),
        ([("b", TEXT), ("a", pa.int16())], True, {"a": 1, "b": "x"}),
        ([("a", INT)], True, {"a": 1, "b": None}),
        ([("b", TEXT)], True, {"a": None, "b": "x"}),
        ([("c", LONG), ("a", INT)], True, {"a": 1, "b": None, "c": 2}),
        ([("a", INT)], False, None),
        ([("a", INT), ("b", TEXT), ("c", LONG)], False, None),
    ],
)
def test_fields_are_found_by_name_and_may_be_missing_with_evolution(
    tmp_path: Path, holder: str, given: list[tuple[str, Any]], evolves: bool, found: Any
) -> None:
    if found is None:
        with pytest.raises(DeltaAnalysisError, match=REFUSED):
            _merged(tmp_path, holder, given, evolves=evolves)
        return
    form = HELD[holder][1]
    assert _merged(tmp_path, holder, given, evolves=evolves) == [form(found)] * 2


@pytest.mark.parametrize("holder", ["array", "map", "deep"])
def test_what_is_not_a_wider_type_within_arrays_is_left_to_spark(
    tmp_path: Path, holder: str
) -> None:
    with pytest.raises(InvalidPredicateError, match=r"only Spark evaluates|use lakelog\.spark"):
        _merged(tmp_path, holder, [("a", LONG), ("b", TEXT)], evolves=False)
