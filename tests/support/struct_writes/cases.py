"""Structs written in every way, by position or by name, that differ from those of the table."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.struct_writes import script

if TYPE_CHECKING:
    from collections.abc import Collection

_SCRIPT: Final = Path(str(script.__file__)).read_text("utf-8")
_STRUCT: Final = "STRUCT<a: INT, b: STRING>"
_HOLDERS: Final = {
    "struct": (_STRUCT, "{}"),
    "array": (f"ARRAY<{_STRUCT}>", "array({})"),
    "map": (f"MAP<STRING, {_STRUCT}>", "map('k', {})"),
    "deep": (f"STRUCT<m: MAP<STRING, ARRAY<{_STRUCT}>>>", "named_struct('m', map('k', array({})))"),
    "nested": (f"STRUCT<n: {_STRUCT}, d: DOUBLE>", "named_struct('n', {}, 'd', 0.5D)"),
    "alike": ("STRUCT<a: INT, b: INT>", "{}"),
    "column": ("INT", "({}).a"),
    "list": ("NO NULLS IN ARRAY<INT>", "array(({}).a)"),
    "values": ("NO NULLS IN MAP<STRING, INT>", "map('k', ({}).a)"),
    "widened": (f"WIDENED {_STRUCT}", "{}"),
}
_GIVEN: Final = {
    "less": "named_struct('a', 1)",
    "more": "named_struct('a', 1, 'b', 'x', 'c', 2)",
    "order": "named_struct('b', 'x', 'a', 1)",
    "type": "named_struct('a', 1L, 'b', 'x')",
    "names": "struct(1, 'x')",
    "less, the last": "named_struct('b', 'x')",
    "less, no names": "struct(1)",
    "more, no names": "struct(1, 'x', 2)",
    "more, first": "named_struct('c', 2, 'a', 1, 'b', 'x')",
    "other": "named_struct('a', 1, 'c', 'x')",
    "case": "named_struct('A', 1, 'B', 'x')",
    "text": "named_struct('a', '1', 'b', 'x')",
    "no number": "named_struct('a', 'y', 'b', 'x')",
    "too large": "named_struct('a', 3000000000L, 'b', 'x')",
    "null": "CAST(NULL AS STRUCT<a: INT, b: STRING, c: INT>)",
    "void": "named_struct('a', NULL, 'b', 'x')",
    "swapped": "named_struct('b', 5, 'a', 7)",
    "swapped, wider": "named_struct('b', 5L, 'a', 7L)",
    "may be null": "named_struct('a', IF(id > 5, NULL, 1), 'b', 'x')",
    "is null": "named_struct('a', IF(id > 1, NULL, 1), 'b', 'x')",
}
_WAYS: Final = {
    "insert": "INSERT{e} INTO {t} {q}",
    "insert unnamed": "INSERT{e} INTO {t} SELECT id AS x, s AS y FROM ({q})",
    "insert columns": "INSERT{e} INTO {t} (id, s) {q}",
    "insert by name": "INSERT{e} INTO {t} BY NAME {q}",
    "overwrite": "INSERT{e} OVERWRITE {t} {q}",
    "saveAsTable": "",
    "merge columns": "MERGE{e} INTO {t} t USING ({q}) x ON t.id = x.id WHEN MATCHED THEN UPDATE "
    "SET s = x.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (x.id, x.s)",
    "insertInto": "",
    "save": "",
    "stream": "",
    "merge star": "MERGE{e} INTO {t} t USING ({q}) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *",
    "update": "UPDATE {t} SET s = {v}",
    "writeTo": "",
    "replace where": "INSERT{e} INTO {t} REPLACE WHERE id > 0 {q}",
}
_EVOLUTIONS: Final = ("", "conf", "asked")


@dataclass(frozen=True, slots=True)
class StructWrite:
    """One write."""

    way: str
    holder: str
    """What holds the struct."""
    given: str
    """How it differs."""
    evolution: str
    """What lets the schema grow: nothing, a conf, or the write itself."""

    @property
    def name(self) -> str:
        """Of the case."""
        return " / ".join((self.way, self.holder, self.given, self.evolution or "as it is"))

    def by(self, way: str) -> StructWrite:
        """The same by another way of writing."""
        return replace(self, way=way)

    def job(self) -> dict[str, Any]:
        """What the script is given."""
        kind, form = _HOLDERS[self.holder]
        asked = self.evolution == "asked"
        value = form.format(_GIVEN[self.given])
        text = "0" if self.holder == "alike" else "'o'"
        # One row is new to MERGE, the other is there.
        query = f"SELECT id, {value} AS s FROM VALUES (1), (2) AS i(id)"
        evolves = " WITH SCHEMA EVOLUTION" if asked else ""
        sql = _WAYS[self.way].format(e=evolves, t="{t}", q=query, v=value)
        return {
            "kind": kind,
            "there": form.format(f"named_struct('a', 0, 'b', {text})"),
            "conf": str(self.evolution == "conf").lower(),
            "write": {
                "way": self.way,
                "query": query,
                "sql": sql,
                "options": {"mergeSchema": "true"} if asked else {},
            },
        }

    def digest(self) -> str:
        """What changes when anything changes that an engine is shown."""
        text = f"{_SCRIPT} {json.dumps(self.job(), sort_keys=True)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_SOME: Final = ("less", "more", "order", "type", "names")
_OTHERS: Final = ("less, the last", "more, first", "null")
_OF_VALUES: Final = ("type", "text", "no number", "too large")
_NULLS: Final = ("may be null", "is null")
_SWAPPED: Final = ("swapped", "swapped, wider")
_INSERTS: Final = ("insert", "insert columns", "insert by name", "overwrite")
_FRAMES: Final = ("saveAsTable", "writeTo", "save", "insertInto", "stream")
_MAY_HAVE_NULLS: Final = ("insert", "save", "saveAsTable", "merge columns", "update")


def _played(way: str, holder: str, evolution: str) -> Collection[str]:
    """What is given by a way of writing: all by an INSERT in SQL, and of others what may differ."""
    if way == "update" and evolution == "asked":
        return ()
    if evolution == "conf" and (holder != "struct" or way not in _INSERTS):
        return ()
    if way == "insert unnamed" and holder not in ("struct", "array", "alike"):
        return ()
    match holder:
        case "alike":
            inserts = way in (*_INSERTS, "insert unnamed", "insertInto", "saveAsTable")
            return _SWAPPED if inserts and not evolution else ()
        case "column":
            return _OF_VALUES if way in _FRAMES and not evolution else ()
        case "list" | "values":
            return _NULLS if way in _MAY_HAVE_NULLS and not evolution else ()
        case "widened":
            return ("type",) if way not in ("overwrite", "replace where", "update") else ()
        case "nested":
            return _SOME if way in _INSERTS else ()
        case "deep" if way in _INSERTS:
            # delta-spark refuses what is new and has no names, there alone.
            unlike = {*_NULLS, *_SWAPPED, *(["more, no names"] if evolution else [])}
            return [each for each in _GIVEN if each not in unlike]
        case "deep":
            return _SOME[:3] if way not in ("stream", "replace where") else ()
        case "struct" if way in _INSERTS:
            return [each for each in _GIVEN if each not in (*_NULLS, *_SWAPPED)]
    if way == "insert unnamed":
        return _SOME
    if way == "stream":
        return (*_SOME, "text", "case") if holder in ("struct", "array") else ()
    if holder != "struct" or way == "replace where":
        return _SOME if holder == "struct" or way != "replace where" else ()
    return (*_SOME, *_OTHERS, *(() if evolution else ("case", "text", "no number")))


CASES: Final = tuple(
    StructWrite(way, holder, given, evolution)
    for way, holder, evolution in itertools.product(_WAYS, _HOLDERS, _EVOLUTIONS)
    for given in _played(way, holder, evolution)
)
