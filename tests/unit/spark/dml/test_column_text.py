from __future__ import annotations

import pytest

from lakelog.spark.dml.column_text import _is_call, _Known, _sql

KNOWN = _Known({"id": 1, "p": 1, "s": 1, "twice": 2})


@pytest.mark.parametrize(
    ("printed", "sql"),
    [
        ("and(=(t.id, s.id), =(t.p, 'a b'))", "((t.id = s.id) AND (t.p = 'a b'))"),
        ("==(p, a b)", "(p = 'a b')"),  # as Connect prints it
        ("in(p, 'x', 'y, z')", "(p IN ('x', 'y, z'))"),
        (
            "or(>=(d, 2024-01-01), !(<(id, -5.5)))",
            "(('d' >= DATE '2024-01-01') OR (NOT (id < -5.5)))",
        ),
        ("isNull(s.a)", "(s.a IS NULL)"),
        ("=(id, CAST(3 AS BIGINT))", "(id = CAST(3 AS BIGINT))"),
        ("=(upper(p), 'X')", "(upper(p) = 'X')"),
        ("=(`a,b`, ')')", "(`a,b` = ')')"),
        ("=(p, 'it's')", None),
        ("=(twice, 1)", None),
        ("=(own(p), 10000000000L)", "(own(p) = 10000000000L)"),
        ("<(t, 2024-01-02 03:04:05.0)", "('t' < TIMESTAMP '2024-01-02 03:04:05.0')"),
        ("=(<lambda>(id), 1)", None),
        ("=(p, a\\b)", None),
    ],
)
def test_what_a_column_prints_is_read_as_sql(printed: str, sql: str | None) -> None:
    assert _sql(printed, KNOWN) == sql


def test_what_expr_was_given_is_no_call() -> None:
    assert _is_call("and(=(p, ')'), <(id, 1))")
    assert not _is_call("upper(p) = concat(s, 'x')")
    assert not _is_call("p = 'x'")
