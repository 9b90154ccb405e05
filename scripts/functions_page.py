"""Write docs/sql-functions.md from the functions that the core evaluates, or say that it is old.

python scripts/functions_page.py            # writes the page
python scripts/functions_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lakelog.core.expressions.function_names import SCALARS
from lakelog.core.expressions.values.evaluator import LAZY, NOW, TODAY
from lakelog.core.expressions.values.functions import GROUPS

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
| casts | `CAST(value AS type)` between primitive types, where Spark's text is known |
| parts | `EXTRACT(field FROM time)`, `struct.field` |

## Functions

| About | Names |
|---|---|
"""

TAIL = """\

## What is left to Spark

Any other function, subqueries, lambdas, windows, parts of arrays and maps, `LIKE` with an escape,
text with an escape that parsers read in several ways, an interval of more than one unit, `TRY_CAST`
of a column, and dates or numbers in a notation that Spark and Python read differently. A filter
with such a part goes by no statistics there, and is refused before a file is opened where rows have
to be evaluated without Spark; the error names the part. `lakelog.spark` evaluates all of them.

Of Spark's {known} functions of single values {here} are here.
"""


def render() -> str:
    """The page."""
    rows = [
        *((about, [name.upper() for name in group]) for about, group in GROUPS.items()),
        ("nulls", [*(name.upper() for name in LAZY), "ISNULL", "ISNOTNULL"]),
        ("the time of the call", [name.upper() for name in (*NOW, *TODAY)]),
    ]
    count = sum(name.lower() in SCALARS for _, names in rows for name in names)
    body = "".join(f"| {about} | {_listed(names)} |\n" for about, names in rows)
    return HEAD + body + TAIL.format(known=len(SCALARS), here=count)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    text = render()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE.name} is not what the code says: run {COMMAND}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
