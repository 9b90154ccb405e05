"""Which appends a job's condition concerns: partition values of every type and spelling."""

from __future__ import annotations

from typing import Any, Final

from support.differential.lines import add, remove
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    reads,
    replaces_partitions_of,
    wins,
)

_TYPED: Final = Table(
    by=("n", "day", "at", "amount", "flag", "name"),
    columns={
        "id": "long",
        "n": "integer",
        "day": "date",
        "at": "timestamp",
        "amount": "decimal(10,2)",
        "flag": "boolean",
        "name": "string",
    },
)
_VALUES: Final[dict[str, Any]] = {
    "n": "7",
    "day": "2024-02-29",
    "at": "2024-02-29 12:30:00",
    "amount": "12.50",
    "flag": "true",
    "name": "Köln / 1",
}
_NULLS: Final[dict[str, Any]] = dict.fromkeys(_VALUES)

_MATCHES: Final = [
    "n = 7",
    "n > 7",
    "n IN (1, 7)",
    "n NOT IN (1, 7)",
    "n >= 5 AND n <= 9",
    "n <> 7",
    "NOT (n = 7)",
    "n = 7 AND day = DATE '2024-02-29'",
    "n = 8 OR day = DATE '2024-02-29'",
    "n = 8 OR day = DATE '2024-02-28'",
    "(n = 8 AND id > 3L) OR day = DATE '2024-02-28'",
    "day = '2024-02-29'",
    "day < DATE '2024-03-01'",
    "at = TIMESTAMP '2024-02-29 12:30:00'",
    "at >= TIMESTAMP '2024-02-29 12:30:01'",
    "amount = 12.5",
    "amount < 12.50",
    "flag",
    "NOT flag",
    "name = 'Köln / 1'",
    "name LIKE 'K%'",
    "name LIKE 'B%'",
    "upper(name) = 'BONN'",
    "n IS NULL",
    "n IS NOT NULL",
    "n <=> NULL",
    "name = 'Köln / 1' AND id > 1000L",
    "true",
    "false",
]

_SPELLINGS: Final = [
    # The same value, as other writers spell it.
    ({"n": "07"}, "n = 7"),
    ({"n": "+7"}, "n = 8"),
    ({"at": "2024-02-29T12:30:00.000000Z"}, "at = TIMESTAMP '2024-02-29 12:30:00'"),
    ({"at": "2024-02-29 12:30:00.000000"}, "at > TIMESTAMP '2024-02-29 12:30:00'"),
    ({"amount": "12.5"}, "amount = 12.50"),
    ({"flag": "TRUE"}, "flag"),
    # The empty text is null for every type.
    ({"name": ""}, "name IS NULL"),
    ({"name": ""}, "name = ''"),
    ({"n": ""}, "n IS NULL"),
]


def _case(condition: str, values: dict[str, Any], what: str) -> Scenario:
    return Scenario(
        f"{condition} and an append to {what}",
        _TYPED,
        reads(condition),
        wins(add("w", **values), blind=True),
        commits("UPDATE", add("new", **_VALUES)),
    )


_PLAIN: Final = Table(
    by=("p",), files=(add("a", p="1"), add("b", p="2", ids=(11, 19)), add("c", p="2", ids=None))
)
# Skipping by statistics decides which removed files a job has read.
_SKIPPING: Final = ["id > 10L", "id < 10L", "id = 15L", "id IS NULL", "id > 10L AND p = '1'"]

_REPLACED: Final[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
    ("null", {"p": None}, {"p": None}),
    ("null, appended beside", {"p": None}, {"p": "1"}),
    ("the empty text", {"p": ""}, {"p": None}),
    ("text with other cases", {"p": "Köln"}, {"p": "köln"}),
]
_BY_TIME: Final = Table(
    by=("at",),
    columns={"id": "long", "at": "timestamp"},
    files=(add("a", at="2024-02-29 12:30:00"), add("b", at="2024-02-29T12:30:00.000000Z")),
)
_NEW_AT: Final = add("new", at="2024-02-29 12:30:00.000000")
_OVERWRITES: Final = [
    *(
        Scenario(
            f"a dynamic overwrite of {name}",
            Table(by=("p",)),
            replaces_partitions_of(add("new", **mine)),
            wins(add("w", **others), blind=True),
            commits("WRITE", add("new", **mine)),
        )
        for name, mine, others in _REPLACED
    ),
    *(
        Scenario(
            f"a dynamic overwrite of one moment, and an append at {at}",
            _BY_TIME,
            replaces_partitions_of(_NEW_AT),
            wins(add("w", at=at), blind=True),
            commits("WRITE", _NEW_AT),
        )
        for at in ("2024-02-29 12:30:00", "2024-02-29T12:30:00Z", "2024-02-29 12:30:01")
    ),
    Scenario(
        "a dynamic overwrite of a table without partitions",
        Table(files=(add("a"),)),
        replaces_partitions_of(add("new")),
        wins(add("w"), blind=True),
        commits("WRITE", remove("a"), add("new")),
    ),
    Scenario(
        "a dynamic overwrite with no file, and an append",
        Table(by=("p",), files=(add("a", p="1"),)),
        replaces_partitions_of(),
        wins(add("w", p="1"), blind=True),
        commits("WRITE"),
    ),
]

PREDICATES: Final = [
    *_OVERWRITES,
    *(_case(condition, _VALUES, "a partition") for condition in _MATCHES),
    *(_case(condition, _NULLS, "the partition of nulls") for condition in _MATCHES[::3]),
    *(
        _case(condition, {**_VALUES, **other}, f"the partition spelled {other}")
        for other, condition in _SPELLINGS
    ),
    *(
        Scenario(
            f"{condition} and a delete of {path}",
            _PLAIN,
            reads(condition),
            wins(remove(path, p=p), operation="DELETE"),
            commits("UPDATE", add("new", p="1")),
        )
        for condition in _SKIPPING
        for path, p in (("a", "1"), ("b", "2"), ("c", "2"))
    ),
]
