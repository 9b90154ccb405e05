"""What is done with CHAR and VARCHAR columns: written, compared, merged, altered, at any depth."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.char_columns import script

_SCRIPT: Final = Path(str(script.__file__)).read_text("utf-8")
_PLAIN: Final = (
    "CREATE TABLE {t} (id INT, c CHAR(3), v VARCHAR(3), d CHAR(5), s STRING) USING delta"
)
_ROWS: Final = (
    "INSERT INTO {t} VALUES (1, 'a', 'a', 'a', 'a'), (2, 'b  ', 'b ', 'b', 'b  '), "
    "(3, 'abc', 'abc', 'abc', 'abc'), (4, NULL, NULL, NULL, NULL)"
)
_NESTED: Final = (
    "CREATE TABLE {t} (id INT, l ARRAY<CHAR(3)>, m MAP<CHAR(2), VARCHAR(3)>, "
    "n STRUCT<c: CHAR(3), l: ARRAY<VARCHAR(2)>>) USING delta"
)
_NESTED_ROW: Final = (
    "INSERT INTO {t} VALUES (1, array('a', NULL), map('k', 'v'), "
    "named_struct('c', 'a', 'l', array('x')))"
)
_SHORT: Final = "CREATE TABLE {t} (id INT, c STRING, v STRING) USING delta"
_SHORT_ROWS: Final = "INSERT INTO {t} VALUES (1, 'a', 'a'), (2, 'b ', 'b')"
_LAYOUTS: Final = {
    "data": "",
    "partitions": " PARTITIONED BY (c)",
    "partitions of a longer one": " PARTITIONED BY (d, v)",
}
_CONDITIONS: Final = (
    "c = 'a'", "c = 'a  '", "c = 'a     '", "c <> 'a'", "c > 'a'", "c < 'ab'", "c IN ('a', 'b')",
    "c IN ('a', 'abcd')", "c = d", "c = v", "c = s", "d >= c", "v = 'a'", "v = 'b'", "v = 'b '",
    "c BETWEEN 'a' AND 'b'", "c LIKE 'a'", "c LIKE 'a%'", "upper(c) = 'A'", "upper(c) = 'A  '",
    "length(c) = 3", "c <=> 'a'", "CASE c WHEN 'a' THEN true ELSE false END", "concat(c, '') = 'a'",
)  # fmt: skip
_IN_NESTED: Final = (
    "n.c = 'a'", "n.c = 'a  '", "l[0] = 'a'", "l[0] = 'a  '", "array_contains(l, 'a  ')",
    "m['k '] = 'v'", "m['k'] = 'v'", "n = named_struct('c', 'a  ', 'l', array('x'))",
)  # fmt: skip
_TOO_LONG: Final = {
    "a char": "(5, 'abcd', 'a', 'a', 'a')",
    "a char by spaces": "(5, 'abc  ', 'a', 'a', 'a')",
    "a varchar": "(5, 'a', 'abcd', 'a', 'a')",
    "a varchar by spaces": "(5, 'a', 'abc  ', 'a', 'a')",
}
_TOO_LONG_WITHIN: Final = {
    "a list": "(5, array('abcd'), NULL, NULL)",
    "a key": "(5, NULL, map('abc', 'v'), NULL)",
    "a value": "(5, NULL, map('a', 'abcd'), NULL)",
    "a struct": "(5, NULL, NULL, named_struct('c', 'abcd', 'l', NULL))",
    "a list of a struct": "(5, NULL, NULL, named_struct('c', 'a', 'l', array('a', 'abc')))",
}
_ALL: Final = "SELECT * FROM {t}"


@dataclass(frozen=True, slots=True)
class CharCase:
    """Statements on one table, `{t}`."""

    name: str
    statements: tuple[str, ...]

    def digest(self) -> str:
        """What changes when anything changes that an engine is shown."""
        return hashlib.sha256(f"{_SCRIPT} {self.statements}".encode()).hexdigest()[:16]


def _cases() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for kind, by in _LAYOUTS.items():
        made = (f"{_PLAIN}{by}", _ROWS)
        found[f"{kind} / rows"] = (*made, _ALL)
        for condition in _CONDITIONS if kind != "partitions of a longer one" else _CONDITIONS[:14]:
            found[f"{kind} / {condition}"] = (*made, f"SELECT id FROM {{t}} WHERE {condition}")
        for condition in ("c = 'a'", "v = 'b '", "c = d"):
            update = f"UPDATE {{t}} SET s = 'u' WHERE {condition}"
            found[f"{kind} / UPDATE {condition}"] = (*made, update, _ALL)
            delete = f"DELETE FROM {{t}} WHERE {condition}"
            found[f"{kind} / DELETE {condition}"] = (*made, delete, _ALL)
        for key in ("c", "v", "d"):
            merge = (
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'a', 'a'), (7, 'q', 'q') "
                f"AS x(i, k, w)) x ON t.{key} = x.k WHEN MATCHED THEN UPDATE SET v = x.w, s = 'm' "
                "WHEN NOT MATCHED THEN INSERT (id, c, v) VALUES (x.i, x.k, x.w)"
            )
            found[f"{kind} / MERGE ON {key}"] = (*made, merge, _ALL)
        for what, row in _TOO_LONG.items():
            found[f"{kind} / too long: {what}"] = (*made, f"INSERT INTO {{t}} VALUES {row}", _ALL)
        longer = "UPDATE {t} SET c = concat(s, 'xyz') WHERE id = 1"
        found[f"{kind} / UPDATE to what is too long"] = (*made, longer, _ALL)
    for condition in _IN_NESTED:
        ask = f"SELECT id FROM {{t}} WHERE {condition}"
        found[f"nested / {condition}"] = (_NESTED, _NESTED_ROW, ask)
    found["nested / rows"] = (_NESTED, _NESTED_ROW, _ALL)
    for what, row in _TOO_LONG_WITHIN.items():
        insert = f"INSERT INTO {{t}} VALUES {row}"
        found[f"nested / too long: {what}"] = (_NESTED, _NESTED_ROW, insert, _ALL)
    for what, change in {
        "UPDATE": "UPDATE {t} SET l = array('z')",
        "UPDATE a field": "UPDATE {t} SET n.c = 'z'",
        "UPDATE to what is too long": "UPDATE {t} SET m = map('k', 'long')",
        "MERGE": "MERGE INTO {t} t USING (SELECT 1 AS i, array('y') AS y) x ON t.id = x.i "
        "WHEN MATCHED THEN UPDATE SET l = x.y",
    }.items():
        found[f"nested / {what}"] = (_NESTED, _NESTED_ROW, change, _ALL)
    for column, kind in (("c", "char(3)"), ("v", "varchar(3)")):
        short = (_SHORT, _SHORT_ROWS, f"MARK {column} {kind}")
        found[f"not padded {kind} / rows"] = (
            *short,
            f"SELECT id, length({column}) AS n FROM {{t}}",
        )
        for value in ("a", "a  ", "b", "b "):
            ask = f"SELECT id FROM {{t}} WHERE {column} = '{value}'"
            found[f"not padded {kind} / = '{value}'"] = (*short, ask)
    for column in ("c", "v"):
        for kind in ("VARCHAR(5)", "VARCHAR(2)", "CHAR(5)", "STRING"):
            alter = f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {kind}"
            row = f"INSERT INTO {{t}} (id, {column}) VALUES (9, 'abcd')"
            found[f"ALTER {column} / {kind}"] = (_PLAIN, _ROWS, alter, row, _ALL)
    supported = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    for kind, value in (("CHAR(3)", "'a'"), ("CHAR(3)", "'abcd'"), ("VARCHAR(3)", "'abcd'")):
        with_default = (
            f"CREATE TABLE {{t}} (id INT, c {kind} DEFAULT {value}) USING delta {supported}"
        )
        found[f"default {kind} {value}"] = (with_default, "INSERT INTO {t} (id) VALUES (1)", _ALL)
    return found


CASES: Final = tuple(CharCase(name, statements) for name, statements in _cases().items())
