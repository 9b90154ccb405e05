"""The text form of column paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from lakelog.core.schema.column_paths import dotted, map_types, quoted, split_path, walk

LONG = PrimitiveType("long")


@given(st.lists(st.text(min_size=1), min_size=1))
def test_any_path_survives_its_text(parts: list[str]) -> None:
    assert split_path(dotted(parts)) == tuple(parts)


def test_backticks_stand_only_where_a_name_needs_them() -> None:
    assert quoted("plain_1") == "plain_1"
    assert quoted("größe") == "größe"
    assert dotted(["a", "b c", "d`e"]) == "a.`b c`.`d``e`"


@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "`a", "`a`b", "``"])
def test_a_text_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a column path"):
        split_path(text)


NESTED = StructType(
    (
        StructField("a", StructType((StructField("b", LONG),))),
        StructField("l", ArrayType(StructType((StructField("c", LONG),)))),
        StructField(
            "m",
            MapType(
                StructType((StructField("k", LONG),)),
                ArrayType(StructType((StructField("v", LONG),))),
            ),
        ),
    )
)


def test_the_walk_meets_every_field_parents_first() -> None:
    assert [dotted(path) for path, _ in walk(NESTED)] == [
        "a",
        "a.b",
        "l",
        "l.element.c",
        "m",
        "m.key.k",
        "m.value.element.v",
    ]


def test_the_walk_stays_out_of_containers_when_told_to() -> None:
    assert [dotted(path) for path, _ in walk(NESTED, containers=False)] == ["a", "a.b", "l", "m"]


def test_a_type_is_rebuilt_with_every_part_changed() -> None:
    changed = map_types(NESTED, lambda t: PrimitiveType("string") if t == LONG else t)
    assert str(changed) == str(NESTED).replace("bigint", "string")
