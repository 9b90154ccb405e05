"""Which stars of a query are kept from `_metadata`, and which queries are left alone."""

from __future__ import annotations

import pytest

from lakelog.spark.sql_statements.queries.metadata_column import names_metadata, star_edits
from lakelog.spark.sql_statements.text.references import references
from lakelog.spark.sql_statements.text.statement import rewritten
from lakelog.spark.sql_statements.text.tokens import tokenize


def edited(text: str) -> str | None:
    tokens = tokenize(text)
    edits = star_edits(tokens, [each for each in references(tokens) if each.parts[-1] != "other"])
    return None if edits is None else rewritten(text, edits, escape=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT _metadata.file_name, a FROM t", None),
        ("SELECT *, _metadata.file_name FROM t", "* EXCEPT (`t`._metadata),"),
        ("SELECT *, 2 * a FROM db.t WHERE a * 2 > 1", "* EXCEPT (`t`._metadata), 2 * a "),
        ("SELECT DISTINCT * FROM t AS x", "DISTINCT * EXCEPT (`x`._metadata) FROM"),
        ("SELECT x.*, other.* FROM t x JOIN other", "x.* EXCEPT (`x`._metadata), other.* FROM"),
        ("SELECT * EXCEPT (a) FROM t", "* EXCEPT (`t`._metadata, a) FROM"),
        ("SELECT * FROM t JOIN u", "* EXCEPT (`t`._metadata, `u`._metadata) FROM"),
        ("SELECT * FROM (t JOIN other)", "* EXCEPT (`t`._metadata) FROM ("),
        ("SELECT * FROM (SELECT a FROM t)", None),
        ("SELECT a FROM (SELECT * FROM t) z", "(SELECT * EXCEPT (`t`._metadata) FROM"),
        ("SELECT count(*) FROM t", None),
        (
            "SELECT * FROM other WHERE a IN (SELECT b FROM t)",
            None,
        ),
        ("INSERT INTO other SELECT * FROM t", "SELECT * EXCEPT (`t`._metadata) FROM"),
    ],
)
def test_stars_of_the_rows_that_have_the_column(text: str, expected: str | None) -> None:
    found = edited(text)
    assert found is not None
    if expected is None:
        assert found == text
    else:
        assert expected in found
        assert found.count("EXCEPT") == 1


@pytest.mark.parametrize(
    "text",
    [
        "TABLE t",
        "SELECT 1 UNION ALL (TABLE t)",
        "SELECT * FROM other, (FROM t)",
        "SELECT * FROM t NATURAL JOIN other",
        "SELECT struct(*) FROM t",
    ],
)
def test_queries_whose_columns_cannot_be_told(text: str) -> None:
    assert edited(text) is None


def test_the_column_is_seen_by_its_name_alone() -> None:
    assert names_metadata(tokenize("SELECT t.`_METADATA`.file_name FROM t"))
    assert not names_metadata(tokenize("SELECT '_metadata', user_metadata FROM t"))
