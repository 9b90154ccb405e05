"""A tree as text is read as the same expression again."""

from __future__ import annotations

import pytest

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import Opaque, walk
from support.expressions.doors import as_condition, as_filter, as_value, outcome
from support.expressions.texts import CONDITIONS, VALUES

MORE = (
    *("(i + 1) * 2 - l", "i - (l - 1)", "i * (l / 2)", "-(i + 1)", "- -i", "(i > 1) = b"),
    *("NOT (b AND i > 1) OR b", "(b OR i > 1) AND NOT b", "(i IS NULL) = b", "(i IN (1)) IS NULL"),
    *("i BETWEEN 1 + 1 AND l - 1 AND b", "`i` = 1", "`st`.`n` = 1", "d - INTERVAL '-3' MONTHS > d"),
    *("s = 'it\\'s'", "s = 'a\\\\b'", "s LIKE concat('a', '%')", "(b AND b) IS TRUE"),
    *("if(b, i, l) IN (1, 2)", "CASE i WHEN 1 THEN b ELSE NOT b END", "s || p || 'x' = 'a'"),
)


@pytest.mark.parametrize("door", [as_filter, as_condition, as_value])
def test_the_text_of_a_tree_means_what_the_text_meant_that_it_is_of(door):
    different, compared = [], 0
    for text in (*CONDITIONS, *VALUES, *MORE):
        try:
            root = parse_sql(text)
        except InvalidPredicateError:
            continue
        again = to_sql(root)
        if not any(isinstance(each, Opaque) for each in walk(root)):
            assert to_sql(parse_sql(again)) == again
        first, second = outcome(door, text), outcome(door, again)
        compared += "found" in first
        if "found" in first and second != first:
            different.append((text, again, first, second))
    assert different == []
    assert compared > 450


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i+1 >l", "i + 1 > l"),
        ("((i)) + (l * 2) - 3 = 4", "i + (l * 2) - 3 = 4"),
        ("(i + 1) * 2 > 3", "(i + 1) * 2 > 3"),
        ("s is not null and not b", "s IS NOT NULL AND (NOT b)"),
        ("year(d)=2024 or (b and b)", "YEAR(d) = 2024 OR (b AND b)"),
        ("extract(year from d) = 1", "DATE_PART('YEAR', d) = 1"),
        ("t > now() - interval 7 days", "t > NOW() - INTERVAL '7' DAY"),
        ("CAST(s as decimal(9,2)) > 1.50", "CAST(s AS DECIMAL(9,2)) > 1.50BD"),
        ("`odd name`.x = 1L", "`odd name`.`x` = CAST(1 AS BIGINT)"),
    ],
)
def test_it_is_plain_spark_sql(text, wanted):
    assert to_sql(parse_sql(text)) == wanted
