"""MERGEs that delta-spark refuses as they were said, and carries out said in another way.

It refuses `*` where columns that it stands for fill themselves, the word DEFAULT, a query as a
value and, beside another clause for the same rows, a null without a type as a condition; lakelog
takes them. What lakelog makes of such a MERGE is held against what delta-spark makes of it with the
columns by their names, the default's own expression, the value, and a null with a type.

    cd tests && python -m support.merges.otherwise
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.merges.kinds import KINDS
from support.merges.recorded import Recorded, played
from support.recorded_cases import record_missing

if TYPE_CHECKING:
    from support.merges.cases import Clause, MergeCase
    from support.merges.outcome import Outcome

_SAME: Final = {"DEFAULT": "'unset'", "(SELECT max(1))": "1"}


class RecordedOtherwise(Recorded):
    """The outcome of each MERGE that is said in another way."""

    file = Path(__file__).with_name("recorded_otherwise.jsonl")
    module = "support.merges.otherwise"


def said_otherwise(case: MergeCase, theirs: Outcome) -> MergeCase | None:
    """The same MERGE, if delta-spark refuses it for the way in which it is said.

    Args:
        case: the MERGE.
        theirs: what delta-spark made of it.
    """
    if theirs.error not in ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "INTERNAL_ERROR"):
        return None
    clauses = tuple(_said(_named(case, each)) for each in case.clauses)
    return None if clauses == case.clauses else replace(case, clauses=clauses)


def _said(clause: Clause) -> Clause:
    condition = "CAST(NULL AS BOOLEAN)" if clause.condition == "null" else clause.condition
    values = {k: _SAME.get(v, v) for k, v in clause.values.items()}
    return replace(clause, condition=condition, values=values)


def _named(case: MergeCase, clause: Clause) -> Clause:
    """A clause with the columns that its `*` stands for, where one of them fills itself."""
    own = {f.name for f in KINDS[case.kind].extra} & {"g", "no"}
    target, source = KINDS[case.kind].schema.names, case.source_schema().names
    has = {name.lower() for name in source}
    filled = own - has
    if not (filled and clause.action.endswith("_all")):
        return clause
    names = [n for n in target if n not in filled and (n in has or not case.evolution)]
    if case.evolution:
        names += [n for n in source if n.lower() not in {each.lower() for each in target}]
    values = {f"`{n}`": f"s.`{n}`" for n in names}
    return replace(clause, action=clause.action.removesuffix("_all"), values=values)


def main() -> int:
    """Record what has no record."""
    from support.merges.cases import CASES

    recorded = Recorded()
    said = (said_otherwise(each, recorded.found(each)) for each in CASES)
    return record_missing(RecordedOtherwise(), [each for each in said if each], played)


if __name__ == "__main__":
    sys.exit(main())
