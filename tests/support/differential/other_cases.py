"""Domains, spellings of paths, append-only tables, files twice, many winners."""

from __future__ import annotations

from typing import Final

from support.differential.lines import add, domain, remove
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    reads,
    wins,
)

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_APPENDS: Final = commits("WRITE", add("new", p="1"))

_DOMAINS: Final = Table(by=("p",), features=("domainMetadata",), files=_FILES)
_DOMAIN_CASES: Final = [
    Scenario(
        "both set one domain",
        _DOMAINS,
        wins(domain("d", "theirs")),
        commits("Manual Update", domain("d", "ours")),
    ),
    Scenario(
        "both set one domain to the same",
        _DOMAINS,
        wins(domain("d", "same")),
        commits("Manual Update", domain("d", "same")),
    ),
    Scenario(
        "each sets a domain of its own",
        _DOMAINS,
        wins(domain("d1", "theirs")),
        commits("Manual Update", domain("d2", "ours")),
    ),
    Scenario(
        "a domain is removed while the job sets it",
        _DOMAINS,
        wins(domain("d", "", removed=True)),
        commits("Manual Update", domain("d", "ours")),
    ),
    Scenario(
        "a domain is set while the job removes it",
        Table(features=("domainMetadata",), files=(domain("d", "old"),)),
        wins(domain("d", "theirs")),
        commits("Manual Update", domain("d", "", removed=True)),
    ),
    Scenario(
        "a domain is set while the job appends",
        _DOMAINS,
        wins(domain("d", "theirs")),
        _APPENDS,
    ),
    Scenario(
        "one commit sets a domain twice",
        _DOMAINS,
        commits("Manual Update", domain("d", "1"), domain("d", "2")),
    ),
    Scenario(
        "a domain without the feature",
        Table(),
        commits("Manual Update", domain("d", "ours")),
    ),
]

_ODD_PATHS: Final = [
    Scenario(
        f"{one} removed while the job removes {other}",
        Table(files=(add(one),)),
        reads(),
        wins(remove(one), operation="DELETE"),
        commits("DELETE", remove(other)),
    )
    for one, other in (
        ("a%20b.parquet", "a%20b.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("s3://bucket/a.parquet", "s3://bucket/a.parquet"),
    )
]

_APPEND_ONLY: Final = Table(properties={"delta.appendOnly": "true"}, files=(add("a"),))
_OTHER_CASES: Final = [
    Scenario("an append-only table loses rows", _APPEND_ONLY, commits("DELETE", remove("a"))),
    Scenario(
        "an append-only table is compacted",
        _APPEND_ONLY,
        reads(),
        wins(add("w"), blind=True),
        commits("OPTIMIZE", remove("a", data_change=False), add("new", data_change=False)),
    ),
    Scenario("one file twice", Table(), commits("WRITE", add("new"), add("new"))),
    Scenario(
        "one file added and removed at once", Table(), commits("WRITE", add("new"), remove("new"))
    ),
    Scenario(
        "both add a file of one name",
        Table(),
        wins(add("same"), blind=True),
        commits("WRITE", add("same")),
    ),
    Scenario(
        "the job re-adds a file that another removed",
        Table(files=(add("a"),)),
        wins(remove("a"), operation="DELETE"),
        commits("RESTORE", add("a")),
    ),
    Scenario(
        "many winners, the last one conflicts",
        Table(by=("p",), files=_FILES),
        reads("p = '1'"),
        *(wins(add(f"w{n}", p="2"), blind=True) for n in range(5)),
        wins(add("w", p="1"), blind=True),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "many winners, none conflicts",
        Table(by=("p",), files=_FILES),
        reads("p = '1'"),
        *(wins(add(f"w{n}", p="2"), blind=True) for n in range(12)),
        commits("DELETE", remove("a", p="1")),
    ),
]

OTHER_CASES: Final = [*_DOMAIN_CASES, *_ODD_PATHS, *_OTHER_CASES]
