from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, merge, update_rows, write_arrow
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.parse.string_literals import for_sqlglot

# As Spark 4.3 answers SELECT of each.
MEANT = {
    "'it''s'": "it's",
    '"a""b"': 'a"b',
    "'it' 's'": "its",
    r"'a\'b'": "a'b",
    "\"it''s\"": "it''s",
    "'a\"\"b'": 'a""b',
    "r'a''b'": "ab",
    "''''": "'",
    "'a''''b'": "a''b",
    "'a'''": "a'",
    r"'a\\''b'": r"a\'b",
    "'a' /* '' */ 'b'": "ab",
    "'it''s' 'x'": "it'sx",
    "'a'\"b\"": "ab",
    "cast('2''1' as string)": "2'1",
    "''": "",
    r"'a\\b'": r"a\b",
    r"'a\tb'": "a\tb",
}


@pytest.fixture
def table(tmp_path):
    path = str(tmp_path / "t")
    values = sorted(set(MEANT.values()))
    write_arrow(path, pa.table({"s": values, "n": [0] * len(values)}), mode="append")
    return path


def marked(table):
    rows = DeltaLog.for_table(table).snapshot.to_arrow().to_pylist()
    return [row["s"] for row in rows if row["n"] == 1]


# What takes more than one token, the core leaves to Spark.
LEFT = {each for each in MEANT if "' " in each or each.startswith("r'") or "'\"" in each}


@pytest.mark.parametrize("text", sorted(MEANT.keys() - LEFT - {"cast('2''1' as string)"}))
def test_a_string_in_an_expression_is_what_spark_reads(table, text):
    condition = f"s = {text} -- '' and so on"
    update_rows(table, {"n": "1"}, condition)
    assert marked(table) == [MEANT[text]]


@pytest.mark.parametrize("text", MEANT)
def test_so_it_is_in_a_merge_and_its_values(table, text):
    source = pa.table({"k": [1]})
    change = merge(table, source, f"target.s = {text}")
    change = change.when_matched_update({"n": "1", "s": f"concat({text}, '!')"})
    if text in LEFT:
        with contextlib.suppress(InvalidPredicateError):
            change.execute()
            assert marked(table) == [MEANT[text] + "!"]
    else:
        change.execute()
        assert marked(table) == [MEANT[text] + "!"]


def test_so_it_is_in_a_list_of_any_length(table):
    for more in (0, 1000):
        listed = ", ".join(["'it''s'", *(f"'{each}'" for each in range(more))])
        delete_rows(table, f"s IN ({listed})")
        left = DeltaLog.for_table(table).snapshot.to_arrow().column("s").to_pylist()
        assert "it's" not in left
        assert "its" in left
        write_arrow(table, pa.table({"s": ["it's"], "n": [0]}), mode="append")


def test_so_it_is_where_files_are_chosen(table):
    snapshot = DeltaLog.for_table(table).snapshot
    found = snapshot.to_arrow(where="s = 'it''s'").column("s").to_pylist()
    assert found == ["it's"]


@pytest.mark.parametrize(
    "sql",
    ["`a''b` = 1", "a -- ''\n = '1'", "/* '' */ a", "r'' || r\"\"", "a = ''", "n'' = 1"],
)
def test_what_is_no_doubled_quote_stays(sql):
    assert for_sqlglot(sql) == sql
