"""Which text of a MERGE's source is filled up beside a CHAR of its table."""

from __future__ import annotations

import pytest

from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import MARK
from lakelog.spark.dml.merge.char_comparisons import CharComparisons

TEXT, LONG = PrimitiveType("string"), PrimitiveType("long")
TARGET = StructType(
    (
        StructField("c", TEXT, metadata={MARK: "char(3)"}),
        StructField("own", TEXT, metadata={MARK: "char(2)"}),
        StructField("v", TEXT, metadata={MARK: "varchar(3)"}),
        StructField("n", LONG),
    )
)
SOURCE = StructType(
    (
        StructField("c", TEXT),
        StructField("k y", TEXT),
        StructField("k", TEXT),
        StructField("n", LONG),
    )
)


def filled(text: str, length: int = 3) -> str:
    return (
        f"IF(length(rtrim({text})) <= {length}, rpad(rtrim({text}), {length}, ' '), rtrim({text}))"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("t.c = s.c", f"t.c = {filled('s.c')}"),
        ("S.`k y`<=>T.c", f"{filled('S.`k y`')}<=>T.c"),
        ("own = k", f"own = {filled('k', 2)}"),
        (
            "t.n = s.n AND /* é */ (t.c <> s.k OR sha1(s.k) = t.c)",
            f"t.n = s.n AND /* é */ (t.c <> {filled('s.k')} OR sha1(s.k) = t.c)",
        ),
        (
            "CASE WHEN t.c = s.c THEN 'it''s t.c = s.c' ELSE s.k END",
            f"CASE WHEN t.c = {filled('s.c')} THEN 'it''s t.c = s.c' ELSE s.k END",
        ),
        ("t.v = s.c", "t.v = s.c"),
        ("t.c = 'a'", "t.c = 'a'"),
        ("s.c = s.k", "s.c = s.k"),
        ("upper(t.c) = s.c", "upper(t.c) = s.c"),
        ("t.c IN (s.c)", "t.c IN (s.c)"),
        ("t.c = s.n", "t.c = s.n"),
        ("t.c = ", "t.c = "),
    ],
)
def test_text_of_the_source_beside_a_char_is_filled_up(given: str, expected: str) -> None:
    assert CharComparisons(TARGET, SOURCE, "t").filled_up(given) == expected
