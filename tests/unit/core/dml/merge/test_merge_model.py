"""Random MERGEs, against a model that goes through rows in plain Python."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, merge, table_changes, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}
KINDS: tuple[dict[str, str], ...] = ({}, VECTORS, FEED, VECTORS | FEED, VECTORS | FEED | IDS, IDS)
TARGET = pa.schema([("k", pa.int64()), ("p", pa.string()), ("a", pa.int64()), ("b", pa.string())])
SOURCE = pa.schema([("k", pa.int32()), ("p", pa.string()), ("a", pa.int64()), ("c", pa.string())])

Row = dict[str, Any]
Pair = tuple[Row | None, Row | None]


@dataclass(frozen=True)
class Expr:
    """SQL, and the same in Python; null is None."""

    sql: str
    of: Callable[[Any, Any], Any]


def _equal(x: Any, y: Any) -> bool | None:
    return None if x is None or y is None else x == y


def _above(x: Any, y: Any) -> bool | None:
    return None if x is None or y is None else x > y


def _all(*parts: bool | None) -> bool | None:
    return False if False in parts else None if None in parts else True


ON = [
    Expr("t.k = s.k", lambda t, s: _equal(t["k"], s["k"])),
    Expr("s.k <=> t.k", lambda t, s: t["k"] == s["k"]),
    Expr(
        "t.k = s.k AND t.p = s.p",
        lambda t, s: _all(_equal(t["k"], s["k"]), _equal(t["p"], s["p"])),
    ),
    Expr(
        "(s.p <=> t.p AND s.k <=> t.k)",
        lambda t, s: t["k"] == s["k"] and t["p"] == s["p"],
    ),
    Expr(
        "t.k = s.k + 1 AND t.a > 2 AND s.c IS NOT NULL",
        lambda t, s: _all(
            _equal(t["k"], None if s["k"] is None else s["k"] + 1),
            _above(t["a"], 2),
            s["c"] is not None,
        ),
    ),
    Expr(
        "t.k = s.k AND t.a > s.a",
        lambda t, s: _all(_equal(t["k"], s["k"]), _above(t["a"], s["a"])),
    ),
    Expr("t.a > s.a", lambda t, s: _above(t["a"], s["a"])),
    Expr("false", lambda t, s: False),
    Expr("t.p = 'x' AND t.k = s.k", lambda t, s: _all(_equal(t["p"], "x"), _equal(t["k"], s["k"]))),
]
OF_BOTH = [
    Expr("s.a > t.a", lambda t, s: _above(s["a"], t["a"])),
    Expr("b IS NULL", lambda t, s: t["b"] is None),
    Expr("s.c = 'u'", lambda t, s: _equal(s["c"], "u")),
    Expr("t.k > 2", lambda t, s: _above(t["k"], 2)),
]
OF_SOURCE = [
    Expr("s.a > 2", lambda t, s: _above(s["a"], 2)),
    Expr("c = 'u'", lambda t, s: _equal(s["c"], "u")),
]
OF_TARGET = [
    Expr("t.a > 2", lambda t, s: _above(t["a"], 2)),
    Expr("b IS NOT NULL", lambda t, s: t["b"] is not None),
]
SET = {
    "matched": {
        "a": [
            Expr("s.a", lambda t, s: s["a"]),
            Expr("t.a + 10", lambda t, s: None if t["a"] is None else t["a"] + 10),
        ],
        "b": [
            Expr("concat(b, c)", lambda t, s: None if None in (t["b"], s["c"]) else t["b"] + s["c"])
        ],
        "p": [Expr("s.p", lambda t, s: s["p"]), Expr("'z'", lambda t, s: "z")],
        "k": [Expr("s.k", lambda t, s: s["k"])],
    },
    "not matched": {
        "a": [Expr("a", lambda t, s: s["a"]), Expr("7", lambda t, s: 7)],
        "b": [Expr("upper(c)", lambda t, s: s["c"] and s["c"].upper())],
        "p": [Expr("s.p", lambda t, s: s["p"])],
        "k": [Expr("s.k", lambda t, s: s["k"])],
    },
    "not matched by source": {
        "a": [Expr("-1", lambda t, s: -1), Expr("k", lambda t, s: t["k"])],
        "b": [Expr("NULL", lambda t, s: None)],
    },
}


@dataclass(frozen=True)
class Clause:
    when: str
    action: str
    condition: Expr | None
    values: tuple[tuple[str, Expr], ...] | None = None
    """None for all columns."""

    def applies(self, pair: Pair) -> bool:
        return self.condition is None or self.condition.of(*pair) is True

    def new(self, pair: Pair) -> Row:
        old, source = pair
        row = dict(old) if old is not None else dict.fromkeys(TARGET.names)
        if self.values is None:
            assert source is not None
            return {**row, **source}
        return {**row, **{name: value.of(*pair) for name, value in self.values}}

    def add_to(self, builder: Any) -> Any:
        what = self.when.replace(" ", "_")
        method = getattr(builder, f"when_{what}_{self.action}" + ("_all" if self.is_all else ""))
        where = None if self.condition is None else self.condition.sql
        if self.values is None:
            return method(where=where)
        return method({name: value.sql for name, value in self.values}, where=where)

    @property
    def is_all(self) -> bool:
        return self.values is None and self.action != "delete"


@st.composite
def clauses_of(draw: Any, when: str, conditions: list[Expr]) -> list[Clause]:
    actions = ["insert"] if when == "not matched" else ["update", "delete"]
    count = draw(st.integers(0, 2))
    found = []
    for i in range(count):
        last = i == count - 1
        condition = draw(st.sampled_from([*conditions, *([None] if last else [])]))
        action = draw(st.sampled_from(actions))
        values = None
        if action != "delete" and (when == "not matched by source" or draw(st.booleans())):
            pool = SET[when]
            names = draw(st.lists(st.sampled_from(sorted(pool)), min_size=1, unique=True))
            values = tuple((name, draw(st.sampled_from(pool[name]))) for name in names)
        found.append(Clause(when, action, condition, values))
    return found


@st.composite
def merges(draw: Any) -> list[Clause]:
    kinds = [
        draw(clauses_of("matched", OF_BOTH)),
        draw(clauses_of("not matched", OF_SOURCE)),
        draw(clauses_of("not matched by source", OF_TARGET)),
    ]
    found = list(itertools.chain(*draw(st.permutations(kinds))))
    return found or [Clause("matched", "delete", None)]


NUMBERS = st.one_of(st.none(), st.integers(0, 5))
LETTERS = st.sampled_from([None, "x", "y", "it's=%"])
TARGET_ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": NUMBERS, "p": LETTERS, "a": NUMBERS, "b": st.sampled_from([None, "b"])}
    ),
    max_size=7,
)
SOURCE_ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": NUMBERS, "p": LETTERS, "a": NUMBERS, "c": st.sampled_from([None, "u", "v"])}
    ),
    max_size=5,
    unique_by=lambda row: row["k"],
)


@dataclass
class Outcome:
    rows: list[Row]
    changes: Counter[Any]
    counts: Counter[str]


class TooManyMatchesError(Exception):
    pass


def model(target: list[Row], source: list[Row], on: Expr, clauses: list[Clause]) -> Outcome:
    by_kind = {when: [c for c in clauses if c.when == when] for when in SET}
    matched = by_kind["matched"]
    sure = len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None
    many_allowed = sure or all(c.when == "not matched" for c in clauses)
    used: set[int] = set()
    found = Outcome([], Counter(), Counter())

    def note(kind: str, row: Row) -> None:
        found.changes[(kind, *_values(row))] += 1

    for old in target:
        partners = [i for i, s in enumerate(source) if on.of(old, s) is True]
        used.update(partners)
        if len(partners) > 1 and not many_allowed:
            raise TooManyMatchesError
        if partners:
            pairs: list[Pair] = [(old, source[i]) for i in partners]
            able = by_kind["matched"]
        else:
            pairs = [(old, None)]
            able = by_kind["not matched by source"]
        chosen = next(((c, p) for p in pairs for c in able if c.applies(p)), None)
        if chosen is None:
            found.rows.append(old)
            continue
        clause, pair = chosen
        found.counts[f"{clause.when} {clause.action}"] += 1
        if clause.action == "delete":
            note("delete", old)
            continue
        new = clause.new(pair)
        found.rows.append(new)
        note("update_preimage", old)
        note("update_postimage", new)
    for i, each in enumerate(source):
        inserting = next((c for c in by_kind["not matched"] if c.applies((None, each))), None)
        if i not in used and inserting is not None:
            new = inserting.new((None, each))
            found.rows.append(new)
            found.counts["not matched insert"] += 1
            note("insert", new)
    return found


def _values(row: Row) -> tuple[Any, ...]:
    """With the column that `*` adds to the table too."""
    return tuple(row.get(name) for name in (*TARGET.names, "c"))


def _counted(rows: list[Row]) -> Counter[Any]:
    return Counter(map(_values, rows))


@settings(max_examples=examples(20), deadline=None)
@given(
    target=TARGET_ROWS,
    source=SOURCE_ROWS,
    twice=st.booleans(),
    on=st.sampled_from(ON),
    clauses=merges(),
    kind=st.sampled_from(KINDS),
    partitioned=st.booleans(),
    files=st.integers(1, 2),
)
def test_a_merge_does_what_the_model_does(
    target, source, twice, on, clauses, kind, partitioned, files
):
    if twice and source:
        source = [*source, {**source[0], "a": 3}]
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        by = ["p"] if partitioned else None
        for part in range(files):
            data = pa.Table.from_pylist(target[part::files], TARGET)
            write_arrow(uri, data, mode="append", properties=kind, partition_by=by)
        before = DeltaLog.for_table(uri).snapshot
        builder = merge(
            uri,
            pa.Table.from_pylist(source, SOURCE),
            on.sql,
            target_alias="t",
            source_alias="s",
            with_schema_evolution=any(each.is_all for each in clauses),
        )
        for each in clauses:
            builder = each.add_to(builder)
        try:
            expected = model(target, source, on, clauses)
        except TooManyMatchesError:
            with pytest.raises(DeltaAnalysisError, match="MULTIPLE_SOURCE_ROW_MATCHING"):
                builder.execute()
            assert DeltaLog.for_table(uri).snapshot.version == before.version
            return
        done = builder.execute()
        after = DeltaLog.for_table(uri).snapshot
        assert _counted(after.to_arrow().to_pylist()) == _counted(expected.rows)
        counts, metrics = expected.counts, done.metrics
        assert {
            "numSourceRows": len(source),
            "numTargetRowsInserted": counts["not matched insert"],
            "numTargetRowsMatchedUpdated": counts["matched update"],
            "numTargetRowsMatchedDeleted": counts["matched delete"],
            "numTargetRowsNotMatchedBySourceUpdated": counts["not matched by source update"],
            "numTargetRowsNotMatchedBySourceDeleted": counts["not matched by source delete"],
        }.items() <= metrics.items()
        if not counts:
            assert done.version is None or "c" in after.schema.names
        elif "delta.enableChangeDataFeed" in kind:
            feed = table_changes(uri, done.version, done.version).read_all().to_pylist()
            assert expected.changes == Counter((row["_change_type"], *_values(row)) for row in feed)
