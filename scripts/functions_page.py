"""Write docs/sql-functions.md from the functions that the core evaluates, or say that it is old.

python scripts/functions_page.py            # writes the page
python scripts/functions_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from written_page import write_or_compare

from lakelog.core.expressions.function_names import SCALARS
from lakelog.core.expressions.values.functions import GROUPS
from lakelog.core.expressions.values.lambdas import LAMBDAS
from lakelog.core.expressions.values.typed import LAZY, NOW, TODAY

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).parents[1] / "docs" / "sql-functions.md"
COMMAND = "python scripts/functions_page.py"

HEAD = f"""\
# SQL without Spark

What lakelog evaluates by itself, in any place that takes SQL: a filter, `replace_where`, the
condition of a `MERGE`, `DELETE` or `UPDATE`, the value of a `SET`, a `CHECK`, a default, a
generated column. The meaning is Spark's in ANSI mode: an overflow, a division by zero, or text that
is not a number where one is needed is an error. Tests compare each function with Spark in five time
zones.

The page is written from the code (`{COMMAND}`), and a test fails where they
differ.

## Operators

| | |
|---|---|
| comparison | `=`, `==`, `!=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>` |
| sets and patterns | `IN`, `BETWEEN`, `LIKE`, `ILIKE`, `RLIKE` |
| logic | `AND`, `OR`, `NOT`, `IS NULL`, `IS TRUE`, `IS FALSE` |
| arithmetic | `+`, `-`, `*`, `/`, `DIV`, `%`; a date or time and `INTERVAL n unit` |
| text | `\\|\\|` |
| choice | `CASE WHEN`, `CASE value WHEN`, `IF` |
| casts | `CAST(value AS type)`, `TRY_CAST` between primitive types, where Spark's text is known |
| parts | `EXTRACT(field FROM time)`, `struct.field` |

## Functions

| About | Names |
|---|---|
"""

TAIL = """\

## What is left to Spark

| What | Why | The way out without Spark |
|---|---|---|
{left}

A filter with such a part goes by no statistics there, and is refused before a file is opened where
rows have to be evaluated without Spark; the error names the part. `lakelog.spark` evaluates all of
them.

Of Spark's {known} functions of single values {here} are here.
"""

LEFT = (
    (
        "any other function",
        "it is not written, or Python has it with another meaning",
        "compute a column before it is written; read the rows and filter them then",
    ),
    (
        "subqueries, windows, aggregates",
        "they are about more than one row",
        "read by a plain filter, and go on with Arrow, DuckDB or Polars",
    ),
    (
        "other functions that take a lambda; `array[i]`, `map[key]`; arrays, maps and structs that "
        "are made in the text",
        "the tree of an expression has no such nodes",
        "`ELEMENT_AT`, `TRY_ELEMENT_AT`, `struct.field`",
    ),
    ("`HASH` and `XXHASH64` of maps", "Spark refuses them too", "hash what the key is made of"),
    (
        "in patterns of dates, letters other than `yyyy`, `MM`, `M`, `dd`, `d`, `HH`, `H`, `mm`, "
        "`m`, `ss`, `s` and, to read, `S`; to read, a pattern that leaves out a larger part (a "
        "month without a year), or parts of any number of digits with nothing between them",
        "names depend on a language, and Java fills in and deals out digits in its own way",
        "the letters named here, and text between quotes",
    ),
    (
        "`LIKE` with an escape; text with an escape that parsers read in several ways",
        "sqlglot and Spark take the text apart differently",
        "`CONTAINS`, `STARTSWITH`, `ENDSWITH`",
    ),
    (
        "regular expressions other than of plain classes, groups and repeats",
        "Java and Python read them differently, or they may take for ever",
        "several plain ones",
    ),
    (
        "an interval of more than one unit",
        "its parts move a time in different ways",
        "one interval after the other",
    ),
    (
        "casts of nested types, and the text of a float; with `CAST` and `TRY_CAST`, text of "
        "numbers and times in a form that few use (`1e400`, `0x1p3`, `12:30`)",
        "how Java writes and reads them differs from Python",
        "a decimal; `TO_DATE` and `TO_TIMESTAMP` with a pattern",
    ),
    (
        "all of it in a session with `spark.sql.ansi.enabled=false`, "
        "`spark.sql.caseSensitive=true`, "
        "`spark.sql.timestampType=TIMESTAMP_NTZ` or another `spark.sql.legacy.timeParserPolicy` "
        "than `CORRECTED`",
        "the rules here are those of Spark's defaults",
        "none is needed: `lakelog.spark` runs Spark's jobs there",
    ),
)
"""What, why, and what to do instead."""


def render() -> str:
    """The page."""
    rows = [
        *((about, [name.upper() for name in group]) for about, group in GROUPS.items()),
        ("elements of arrays, by a lambda", [name.upper() for name in LAMBDAS]),
        ("nulls", [*(name.upper() for name in LAZY), "ISNULL", "ISNOTNULL"]),
        ("the time of the call", [name.upper() for name in (*NOW, *TODAY)]),
    ]
    count = sum(name.lower() in SCALARS for _, names in rows for name in names)
    body = "".join(f"| {about} | {_listed(names)} |\n" for about, names in rows)
    left = "\n".join(f"| {' | '.join(row)} |" for row in LEFT)
    return HEAD + body + TAIL.format(known=len(SCALARS), here=count, left=left)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    sys.exit(write_or_compare(PAGE, render(), COMMAND))
