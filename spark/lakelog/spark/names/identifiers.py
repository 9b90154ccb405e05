"""Names of tables as text: parts, backticks, and paths that stand where a name does."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.given_options import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

SESSION_CATALOG: Final = "spark_catalog"
"""The catalog that is Spark's own, whatever serves it."""

# An empty part in backticks is one, as for Spark: no table has such a name, and that is said then.
_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^\s`.]+))\s*(\.|$)")
# What Spark's own catalog allows; so no other name can be one of its tables.
_WORD = re.compile(r"\w+", re.ASCII)
_CATALOG_PARTS, _PATH_PARTS = 3, 2


def parse(name: str) -> tuple[str, ...]:
    """The parts of a name as Spark reads it: `db.t`, `` `db`.`t` ``, ``delta.`/its/path` ``.

    Raises:
        DeltaAnalysisError: no name: an empty part, or a backtick that nothing closes.
    """
    parts, at = [], 0
    while True:
        found = _PART.match(name, at)
        if found is None:
            raise DeltaAnalysisError(
                f"[PARSE_SYNTAX_ERROR] {name!r} is not the name of a table: write db.table, and a "
                "part with other characters than letters, digits and _ in backticks, as in "
                "delta.`/its/path`",
                table=name,
            )
        quoted, plain, dot = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if not dot:
            return tuple(parts)


def quoted_name(parts: Sequence[str]) -> str:
    """A name as SQL, each part in backticks."""
    return ".".join("`" + each.replace("`", "``") + "`" for each in parts)


def path_in(parts: Sequence[str]) -> str | None:
    """The path in ``delta.`/its/path` ``; `None` for any other name.

    A relative path does not count: `delta.events` is the table `events` of a database `delta`.
    """
    if len(parts) == _CATALOG_PARTS and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) != _PATH_PARTS or parts[0].lower() not in FORMATS:
        return None
    path = parts[1]
    return path if os.path.isabs(path) or re.match(r"[A-Za-z][\w+.-]*:", path) else None  # noqa: PTH117 # may be a URI


def is_session_name(parts: Sequence[str]) -> bool:
    """Whether Spark's own catalog can have a table of this name, the catalog's left out."""
    return all(_WORD.fullmatch(each) for each in parts)
