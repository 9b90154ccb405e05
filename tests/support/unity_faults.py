"""Commits to a table of Unity Catalog by a client of it whose requests for them meet faults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import CatalogError, CommitOutcomeUnknownError
from lakelog.core.hooks.background import wait_for_all
from support.delta_spark_peer import DeltaSparkError
from support.fault_proxy import FaultProxy
from support.unity_judges import JudgeError

if TYPE_CHECKING:
    import random
    from collections import Counter
    from collections.abc import Callable, Iterable, Sequence

    from support.unity_server import UnityServer

FAULTS: Final = (
    *("drop_reply", "tear_reply", "cut_reply", "twice", "tell:500", "tell:503", "page:502"),
    *("tell:400", "tell:403", "tell:409", "tell:429", "drop_request", "reset", "refuse:503"),
)
"""What a network and the proxies in it do to a request for a commit, and to its reply."""
_COMMITS: Final = re.compile(rb"^POST \S+/tables/[^/ ]+ ")


@dataclass
class Told:
    """What a client says of its commits, each of one row."""

    said: list[int] = field(default_factory=list)
    """The ids of those that it calls done."""
    unsaid: dict[int, str] = field(default_factory=dict)
    """The ids of those that ended by an error, and what that says."""
    met: dict[int, str] = field(default_factory=dict)
    """The ids of those whose requests met a fault, and which."""


def plan(drawn: random.Random, commits: int) -> list[str]:
    """A fault for every other commit."""
    return [drawn.choice(FAULTS) if number % 2 else "" for number in range(commits)]


def commit_through(
    proxy: FaultProxy, first: int, faults: Sequence[str], append: Callable[[int], object]
) -> Told:
    """Make commits by a client that reaches its server through the proxy.

    Args:
        proxy: of no other client.
        first: the id of the first row; each commit has the next one.
        faults: of each commit the fault that the first request for it meets, or nothing.
        append: makes a commit of one row.
    """
    told = Told()
    for number, fault in enumerate(faults, first):
        before = len(proxy.fired)
        if fault:
            proxy.arm(fault, _COMMITS)
        try:
            append(number)
        except (CommitOutcomeUnknownError, CatalogError, DeltaSparkError, JudgeError) as exc:
            told.unsaid[number] = str(exc)
        else:
            told.said.append(number)
        proxy.disarm()
        if len(proxy.fired) > before:
            told.met[number] = fault
    return told


def commit_by_lakelog(server: UnityServer, table: str, first: int, faults: Sequence[str]) -> Told:
    """`commit_through` by lakelog, which goes on until all it began in the background has ended."""
    catalog = table.partition(".")[0]
    with FaultProxy(server.url) as proxy:
        conf = server.conf(catalog) | {f"spark.sql.catalog.{catalog}.uri": proxy.url}
        log = DeltaLog.for_table(table, conf)
        told = commit_through(
            proxy, first, faults, lambda number: write_arrow(log, {"id": [number]}, mode="append")
        )
        assert wait_for_all(60)
    return told


def check_told(told: Iterable[Told], present: Counter[int]) -> None:
    """What clients say of their commits has to be so: none lost, none doubled."""
    for each in told:
        assert all(present[number] == 1 for number in each.said)
        assert all(present[number] <= 1 for number in each.unsaid)
