"""DELETEs and UPDATEs drawn by a seed: conditions × assignments × kinds of tables."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Final

from support.merges.cases import Draw
from support.merges.kinds import KINDS

EACH: Final = 4
"""Cases of each kind of table."""


@dataclass(frozen=True, slots=True)
class Step:
    """A DELETE, or an UPDATE where there are values."""

    condition: str | None
    values: dict[str, str] = field(default_factory=dict)
    alias: str | None = None

    def sql(self) -> str:
        """As people would write it."""
        what = "DELETE" if not self.values else "UPDATE SET " + _listed(self.values)
        where = "" if self.condition is None else f" WHERE {self.condition}"
        return f"{what}{where}{f' (as {self.alias})' if self.alias else ''}"


@dataclass(frozen=True, slots=True)
class ChangeCase:
    """A table, and what is done to it, one step after another."""

    name: str
    kind: str
    files: list[list[dict[str, Any]]]
    steps: tuple[Step, ...]

    def digest(self) -> str:
        """What changes when anything changes that an engine is shown."""
        shown = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(shown.encode()).hexdigest()[:16]

    def story(self) -> str:
        """The case, for people."""
        lines = [f"{self.name}: table {self.kind}", *(f"  file {rows}" for rows in self.files)]
        return "\n".join([*lines, *(f"    {each.sql()}" for each in self.steps)])


_IF: Final = (
    None,
    "n > 2",
    "name IS NULL",
    "x > 1",
    "id % 2 = 0",
    "id IN (1, 3, 5)",
    "name LIKE '%a%'",
    "x = CAST('NaN' AS DOUBLE)",
    "n IS NOT NULL AND x < 2",
    "NOT (n > 2)",
    "name <=> NULL",
    "true",
    "false",
    "CAST(NULL AS BOOLEAN)",
    "coalesce(n, 0) = 0",
    "n BETWEEN 1 AND 3",
    "id = 1 OR name = 'ü'",
    "upper(name) = 'B'",
    "n > x",
    "exists(array(n, 4), each -> each > 3)",
    "ID = 2 OR NAME = 'ba'",
    "n = '2'",
    "-n < -1 OR length(name) = 0",
)
_SPECIAL_IF: Final = {
    "partitioned": ("p = 'b c'", "p IS NULL", "p = 'a' AND n > 1", "p > 'a' OR n = 2", "p <> ''"),
    "feed_partitioned": ("p = 1", "p = 2 AND n > 1", "p IS NULL", "p + 1 = 2"),
    "mapped": ("`odd name` = 'o'", "`Odd Name` IS NULL"),
    "generated": ("g > 4", "g IS NULL"),
    "identity": ("no > 15", "no % 10 = 0"),
    "identity_by_default": ("no = 2",),
    "defaults": ("c = 'set'", "c = 'unset'"),
    "not_null": ("must > 1",),
    "nested": ("s.a > 1", "s.c.d IS NULL", "size(l) > 0", "m['k'] = 2", "l[0].e = 1"),
    "types": ("d > 2", "day < '2000-01-01'", "ts > '2020-01-01'", "b", "by = 1", "NOT b AND d = 3"),
}
_SET: Final = (
    {"n": "n + 1"},
    {"x": "x * 2", "name": "concat(name, '!')"},
    {"name": "NULL"},
    {"N": "1.9"},
    {"x": "n", "n": "x"},
    {"n": "CASE WHEN n > 2 THEN 0 ELSE n END"},
    {"id": "id * 10"},
    {"name": "n"},
    {"`x`": "id"},
    {"n": "id + 0.5"},
    {"name": "CASE WHEN n IS NULL THEN 'none' ELSE upper(name) END", "n": "n"},
    {"id": "NULL"},
    {"name": "aggregate(array(n, 1L), 0L, (all, each) -> all + each)"},
)
_WRONG: Final[tuple[dict[str, str] | str, ...]] = (
    {"nope": "1"},
    {"n": "nope"},
    {"n": "1", "N": "2"},
    {"n": "(SELECT max(1))"},
    {"n": "max(n)"},
    {"n": "rand()"},
    {"n": "'four'"},
    {"n": "array(1)"},
    {"n": "1 +"},
    {"id": "9999999999"},
    "nope = 1",
    "rand() > 2",
    "EXISTS (SELECT 1)",
    "sum(n) > 1",
    "n",
    "null",
    "n >",
    "1 / (n - n) > 0",
)
"""Values and conditions that are refused, mostly."""


def _step(draw: Draw) -> Step:
    choose, kind = draw.random.choice, draw.kind.name
    special = _SPECIAL_IF.get(kind, ())
    condition = choose(special) if special and draw.chance(0.5) else choose(_IF)
    values: dict[str, str] = {}
    if draw.chance(0.6):
        own = tuple(each for each in draw.special("update") if "t.day" not in each.values())
        values = dict(choose(own) if own and draw.chance(0.5) else choose(_SET))
    if draw.chance(0.15):
        wrong = choose(_WRONG)
        if isinstance(wrong, str):
            condition = wrong
        else:
            values = dict(wrong)
    aliased = draw.chance(0.25) or any(key.startswith("t.") for key in values)
    if aliased and condition == "n > 2":
        condition = "t.n > 2"
    return Step(condition, values, "t" if aliased else None)


def _drawn(draw: Draw) -> ChangeCase:
    rows = draw.table()
    half = len(rows) // 2
    steps = tuple(_step(draw) for _ in range(2))
    return ChangeCase(draw.name, draw.kind.name, [rows[:half], rows[half:]], steps)


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in values.items())


@cache
def _cases() -> tuple[ChangeCase, ...]:
    kinds = KINDS.values()
    return tuple(_drawn(Draw(kind, i, "change ")) for i in range(EACH) for kind in kinds)


CASES: Final = _cases()
