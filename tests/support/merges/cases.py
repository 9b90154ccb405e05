"""MERGEs drawn by a seed: clauses × nulls × duplicates × types × evolution × kinds of tables."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import random
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.input.given_types import schema_from
from support.merges.kinds import BASE, KINDS, Kind

if TYPE_CHECKING:
    from lakelog.core.schema import StructType

EACH: Final = 34
"""Cases of each kind of table."""
_FORMAT: Final = 1
"""Changes when the cases are drawn in another way."""
NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN."""

    kind: str
    """`matched`, `not_matched` or `by_source`."""
    action: str
    """`update`, `update_all`, `delete`, `insert`, `insert_all`."""
    condition: str | None = None
    values: dict[str, str] = field(default_factory=dict)

    def sql(self) -> str:
        """As people would write it."""
        kind = {"matched": "MATCHED", "not_matched": "NOT MATCHED"}.get(
            self.kind, "NOT MATCHED BY SOURCE"
        )
        also = "" if self.condition is None else f" AND {self.condition}"
        sets = ", ".join(f"{k} = {v}" for k, v in self.values.items())
        return f"WHEN {kind}{also} THEN {self.action.upper()} {sets}".rstrip()


@dataclass(frozen=True, slots=True)
class MergeCase:
    """A table, a source, and what to do."""

    name: str
    kind: str
    files: list[list[dict[str, Any]]]
    source_ddl: str
    source: list[dict[str, Any]]
    condition: str
    clauses: tuple[Clause, ...]
    evolution: bool = False

    def source_schema(self) -> StructType:
        """The columns of the source."""
        return schema_from(self.source_ddl)

    def digest(self) -> str:
        """What changes when anything changes that an engine is shown."""
        shown = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(shown.encode()).hexdigest()[:16]

    def story(self) -> str:
        """The case, for people."""
        lines = [f"{self.name}: table {self.kind}", *(f"  file {rows}" for rows in self.files)]
        lines += [f"  source ({self.source_ddl})", *(f"    {row}" for row in self.source)]
        evolution = " WITH SCHEMA EVOLUTION" if self.evolution else ""
        lines += [f"  MERGE{evolution} ON {self.condition}"]
        return "\n".join([*lines, *(f"    {each.sql()}" for each in self.clauses)])


_ON: Final = (
    *["t.id = s.id"] * 12,
    "t.id <=> s.id",
    "t.id = s.id AND t.n > 1",
    "t.id = s.id AND s.n > 2",
    "t.name = s.name",
    "t.x = s.x",
    "t.id = s.id + 1",
    "t.id = s.id OR t.name = s.name",
    "t.id > s.id",
    "false",
    "CAST(NULL AS BOOLEAN)",
    "t.id = s.id AND t.name IS NOT NULL AND s.name LIKE '%a%'",
)
_MATCHED_IF: Final = (
    *[None] * 3,
    "s.n > t.n",
    "t.n > 2",
    "s.name IS NULL",
    "t.name <=> s.name",
    "s.x < 2 OR t.x < 2",
    "CAST(NULL AS BOOLEAN)",
    "true",
    "t.id % 2 = 0",
)
_NOT_MATCHED_IF: Final = (*[None] * 3, "s.n > 2", "s.name IS NOT NULL", "s.id % 2 = 1", "false")
_BY_SOURCE_IF: Final = (*[None] * 2, "t.n > 2", "t.name IS NULL", "t.x > 1", "t.id % 2 = 0")
_UPDATES: Final = (
    *[{}] * 5,  # UPDATE *
    {"n": "s.n + t.n"},
    {"t.name": "concat(s.name, '!')", "x": "t.x * 2"},
    {"n": "s.n", "name": "s.name", "x": "s.x"},
    {"name": "NULL"},
    {"N": "1.9", "`x`": "s.id"},
    {"n": "CASE WHEN s.n > 2 THEN s.n ELSE t.n END"},
    {"id": "s.id * 10"},
    {"x": "t.n", "n": "t.x"},
    {"name": "s.n"},
)
_INSERTS: Final = (
    *[{}] * 5,  # INSERT *
    {"id": "s.id", "name": "s.name"},
    {"id": "s.id", "n": "s.n + 1", "x": "s.x", "name": "upper(s.name)"},
    {"id": "s.id", "n": "7"},
    {"t.id": "s.id", "x": "s.n"},
    {"id": "s.n", "name": "'new'", "n": "s.id"},
)
_BY_SOURCE_UPDATES: Final = (
    {"n": "t.n - 1"},
    {"name": "'gone'"},
    {"x": "t.x + t.n", "name": "concat(t.name, '?')"},
    {"n": "null"},
)
_WRONG: Final = (
    ("values", {"nope": "1"}),
    ("values", {"n": "s.nope"}),
    ("values", {"n": "t.nope"}),
    ("values", {"n": "id"}),
    ("values", {"n": "1", "N": "2"}),
    ("values", {"n": "(SELECT max(1))"}),
    ("values", {"n": "max(s.n)"}),
    ("values", {"n": "rand()"}),
    ("values", {"n": "s.name"}),
    ("values", {"s.n": "1"}),
    ("condition", "nope = 1"),
    ("condition", "s.nope = 1"),
    ("condition", "rand() > 2"),
    ("condition", "EXISTS (SELECT 1)"),
    ("condition", "sum(s.n) > 1"),
    ("condition", "s.n"),
    ("condition", "null"),
    ("condition", "s.n >"),
    ("on", "t.id = s.nope"),
    ("on", "id = s.id"),
    ("on", "t.id = s.id AND rand() < 2"),
    ("on", "t.id = (SELECT 1)"),
    ("on", "t.id"),
    ("on", "max(t.id) = 1"),
    ("order", None),
    ("none", None),
)
"""Things that are refused, mostly: where they stand, and what."""
_SHAPES: Final = (
    *["same"] * 8,
    "wider",
    "narrower",
    "texts",
    "lacking",
    "upper",
    "turned",
    "more",
    "more",
    "none",
)
_SHAPED: Final = {
    "wider": "id BIGINT, name STRING, n DECIMAL(20,2), x DOUBLE",
    "narrower": "id SMALLINT, name STRING, n INT, x FLOAT",
    "texts": "id INT, name STRING, n STRING, x STRING",
    "lacking": "id INT, name STRING, n BIGINT, x DOUBLE",
    "upper": "ID INT, Name STRING, N BIGINT, X DOUBLE",
    "turned": "x DOUBLE, n BIGINT, name STRING, id INT",
    "more": "id INT, name STRING, n BIGINT, x DOUBLE, more STRING",
}


class Draw:
    """Draws one case."""

    def __init__(self, kind: Kind, number: int, what: str = "") -> None:
        """Begin.

        Args:
            kind: of the table.
            number: of the case among those of its kind.
            what: is drawn, if that is no MERGE.
        """
        self.kind = kind
        self.random = random.Random(f"{what}{_FORMAT} {kind.name} {number}")
        self.name = f"{kind.name}-{number}"
        self.keys = list(range(1, 10))

    def chance(self, of: float) -> bool:
        """True, with this probability."""
        return self.random.random() < of

    def table(self) -> list[dict[str, Any]]:
        """The rows that the table begins with."""
        draw, keys = self.random, self.keys
        draw.shuffle(keys)
        count = draw.choice((0, 4, 6, 8)) if self.chance(0.3) else 6
        target = [self._row(self.kind.given(), keys[i % 9]) for i in range(count)]
        for row in target:
            # A table keeps its own rules from the beginning.
            row["name"] = "x" if row["name"] == "bad" else row["name"]
        if target and self.chance(0.2):
            target[0]["id"] = None
        if len(target) > 1 and self.chance(0.15):
            target[1]["id"] = target[0]["id"]
        return target

    def case(self) -> MergeCase:
        """A MERGE."""
        draw, target, keys = self.random, self.table(), self.keys
        ddl = self._source_ddl()
        schema = _schema(ddl)
        draw.shuffle(keys)
        rows = draw.choice((0, 1, 3, 5, 8)) if self.chance(0.4) else 5
        source = [self._row(schema, keys[i]) for i in range(rows)]
        id_name = next(f.name for f in schema if f.name.lower() == "id")
        if source and self.chance(0.15):
            source[0][id_name] = None
        if len(source) > 1 and self.chance(0.15):
            source[1][id_name] = source[0][id_name]
        condition, clauses = self._merge()
        where: str | None = None
        wrong: Any = None
        if self.chance(0.12):
            where, wrong = draw.choice(_WRONG)
        if where == "on":
            condition = wrong
        elif where is not None:
            clauses = self._spoiled(clauses, where, wrong)
        half = len(target) // 2
        return MergeCase(
            self.name,
            self.kind.name,
            [target[:half], target[half:]],
            ddl,
            source,
            condition,
            tuple(clauses),
            evolution=self.chance(0.5 if "more" in ddl or "lacking" in ddl else 0.1),
        )

    def _source_ddl(self) -> str:
        shape = self.random.choice(_SHAPES)
        ddl = _SHAPED.get(shape, BASE)
        if shape == "lacking":
            gone = self.random.choice((", x DOUBLE", ", n BIGINT"))
            ddl = ddl.replace(gone, "")
        extra = [f for f in self.kind.extra if f.name in self.kind.own or self.chance(0.25)]
        if self.chance(0.2):
            extra = extra[1:]
        ddl += "".join(f", `{f.name}` {_ddl(f.data_type)}" for f in extra)
        return ddl

    def _row(self, schema: StructType, key: int) -> dict[str, Any]:
        row = {f.name: self._value(f.name, f.data_type) for f in schema}
        for name in row:
            if name.lower() == "id":
                row[name] = key
        return row

    def _value(self, name: str, kind: Any) -> Any:
        draw = self.random
        own = self.kind.own.get(name)
        if name == "must":
            return draw.choice((1, 2, 3)) if not self.chance(0.03) else 7
        if own:
            text = draw.choice((*own, None))
            return int(text) if text is not None and str(kind) in ("int", "integer") else text
        match str(kind):
            case "integer" | "int" | "long" | "bigint" | "short" | "smallint" | "byte" | "tinyint":
                return draw.choice((0, 1, 2, 3, 4, 5, None))
            case "string" if name.lower() in ("n", "x"):
                return draw.choice(("1", "2", "3", None, "four" if self.chance(0.2) else "4"))
            case "string":
                return draw.choice(
                    ("a", "b", "ba", "", None, "ü", "bad" if self.chance(0.1) else "x")
                )
            case "double" | "float":
                return draw.choice((0.5, 1.0, 1.5, -0.0, 2.5, None, NAN))
            case "date":
                return draw.choice((dt.date(2024, 2, 29), dt.date(1969, 1, 1), None))
            case "timestamp":
                return draw.choice((dt.datetime(2024, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC), None))
            case "boolean":
                return draw.choice((True, False, None))
            case text if text.startswith("decimal"):
                return draw.choice((decimal.Decimal("1.50"), decimal.Decimal("3.00"), None))
        return self._nested(name, kind)

    def _nested(self, name: str, kind: Any) -> Any:
        if self.chance(0.2):
            return None
        if name == "l":
            return [{f.name: self._value(f.name, f.data_type) for f in kind.element_type}]
        if name == "m":
            return [("k", self._value("v", kind.value_type))]
        return {f.name: self._value(f.name, f.data_type) for f in kind}

    def _merge(self) -> tuple[str, list[Clause]]:
        draw = self.random
        clauses = self._clauses("matched", draw.choice((0, 1, 1, 1, 2, 3)))
        clauses += self._clauses("not_matched", draw.choice((0, 0, 1, 1, 1, 2)))
        clauses += self._clauses("by_source", draw.choice((0, 0, 0, 1, 2)))
        if not clauses:
            clauses = [Clause("matched", "update_all"), Clause("not_matched", "insert_all")]
        return draw.choice(_ON), clauses

    def _clauses(self, kind: str, count: int) -> list[Clause]:
        made: list[Clause] = []
        conditions = {
            "matched": _MATCHED_IF,
            "not_matched": _NOT_MATCHED_IF,
            "by_source": _BY_SOURCE_IF,
        }[kind]
        for left in reversed(range(count)):
            some = conditions if not left else tuple(c for c in conditions if c is not None)
            made.append(self._clause(kind, self.random.choice(some)))
        return made

    def _clause(self, kind: str, condition: str | None) -> Clause:
        draw = self.random
        if kind != "not_matched" and self.chance(0.25):
            return Clause(kind, "delete", condition)
        values = dict(
            draw.choice(
                {"matched": _UPDATES, "not_matched": _INSERTS, "by_source": _BY_SOURCE_UPDATES}[
                    kind
                ]
            )
        )
        special = self.special(kind)
        if special and self.chance(0.45):
            values |= draw.choice(special)
            if kind == "not_matched":
                values.setdefault("id", "s.id")
        if kind == "not_matched" and "must" in self.kind.own and values and self.chance(0.9):
            values["must"] = "1"
        action = "insert" if kind == "not_matched" else "update"
        return Clause(kind, action if values else f"{action}_all", condition, values)

    def special(self, kind: str) -> tuple[dict[str, str], ...]:
        """What clauses set in tables of this kind alone."""
        inserts = kind == "not_matched"
        match self.kind.name:
            case "partitioned":
                return ({"p": "'new'"}, {"p": "NULL"}, {"p": "''"})
            case "feed_partitioned":
                return ({"p": "3"}, {"p": "NULL"}, {"p": "2.7"})
            case "mapped":
                return ({"`odd name`": "'y'"}, {"`Odd Name`": "NULL"})
            case "generated":
                return ({"g": "4"}, {"n": "3", "g": "6"}, {"g": "NULL"}, {"n": "5"})
            case "identity":
                return ({"no": "4"}, {"name": "'numbered'"})
            case "identity_by_default":
                return ({"no": "400"}, {"name": "'numbered'"})
            case "defaults":
                return ({"c": "'given'"}, {"c": "DEFAULT"}, {"name": "'c unset'"})
            case "checked":
                return ({"n": "-1"}, {"name": "'bad'"}, {"n": "NULL"})
            case "not_null":
                return ({"must": "NULL"}, {"must": "4"}, {"must": "NULL"})
            case "nested" if inserts:
                return (
                    {"s": "named_struct('a', 1, 'b', 'two', 'c', named_struct('d', 3))"},
                    {"s.a": "1"},
                    {"s": "named_struct('b', 'two', 'a', 1)"},
                    {"l": "array(named_struct('e', 5L))", "m": "map('z', 26L)"},
                )
            case "nested":
                return (
                    {"s.a": "1"},
                    {"t.s.b": "'two'", "s.c.d": "3"},
                    {"s.c": "named_struct('d', 4)"},
                    {"s": "named_struct('a', 1, 'b', 'two', 'c', named_struct('d', 3))"},
                    {"s": "NULL"},
                    {"s": "named_struct('c', NULL, 'a', 2L)"},
                    {"s.a": "1", "s": "NULL"},
                    {"l": "array(named_struct('e', 5L))", "m": "map('z', 26L)"},
                    {"l.e": "1"},
                    {"s.nope": "1"},
                )
            case "types":
                return (
                    {"d": "12345678.999", "by": "100"},
                    {"d": "123456789012", "by": "1"},
                    {"by": "1000"},
                    {"day": "'2024-03-01'", "b": "'true'"},
                    {"day": "TIMESTAMP'2024-03-01 23:00:00'", "ts": "DATE'2024-03-01'"},
                    {"day": "1", "b": "2"},
                    {"ts": "'epoch'"},
                    {"name": "t.day" if not inserts else "current_date() > DATE'2000-01-01'"},
                )
        return ()

    def _spoiled(self, clauses: list[Clause], where: str, wrong: Any) -> list[Clause]:
        at = self.random.randrange(len(clauses))
        one = clauses[at]
        if where == "none":
            return []
        if where == "order":
            return [*clauses[:at], Clause(one.kind, one.action, None, one.values), *clauses[at:]]
        if where == "condition":
            spoiled = Clause(one.kind, one.action, wrong, one.values)
        else:
            action = "insert" if one.kind == "not_matched" else "update"
            spoiled = Clause(one.kind, action, one.condition, wrong)
        return [*clauses[:at], spoiled, *clauses[at + 1 :]]


def _ddl(kind: Any) -> str:
    from lakelog.core.schema import ArrayType, MapType, StructType

    match kind:
        case StructType():
            return f"STRUCT<{', '.join(f'{f.name}: {_ddl(f.data_type)}' for f in kind)}>"
        case ArrayType():
            return f"ARRAY<{_ddl(kind.element_type)}>"
        case MapType():
            return f"MAP<{_ddl(kind.key_type)}, {_ddl(kind.value_type)}>"
    return {"long": "BIGINT", "integer": "INT", "byte": "TINYINT"}.get(str(kind), str(kind).upper())


@cache
def _schema(ddl: str) -> StructType:
    """A few texts are drawn again and again, and parsing them takes longer than the rest."""
    return schema_from(ddl)


@cache
def _cases() -> tuple[MergeCase, ...]:
    return tuple(Draw(kind, i).case() for i in range(EACH) for kind in KINDS.values())


CASES: Final = _cases()
