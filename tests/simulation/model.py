"""The protocol as a list of commits: what a table is, and who may commit behind whom.

This is the judge of the simulated histories, so it shares no code with `lakelog.core` and is
written to be checked by eye. The numbers of the rules are those of the matrix of Delta's
`ConflictChecker`; where several rules are broken the first one names the conflict.

A table here has at most one partition column, `p`. A file is its path and the value of `p`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SERIALIZABLE = "Serializable"
WRITE_SERIALIZABLE = "WriteSerializable"
SNAPSHOT = "SnapshotIsolation"
LEVEL_KEY = "delta.isolationLevel"

CHANGES_ROWS = frozenset({"WRITE", "DELETE", "UPDATE", "CREATE TABLE AS SELECT"})
"""The operations, of those that the histories use, that change rows by their nature."""


@dataclass(frozen=True, kw_only=True)
class Deed:
    """What one transaction read, and what it wants to write."""

    operation: str
    read_version: int
    # What it read.
    parts: frozenset[str] = frozenset()
    """Values of `p` that some condition names."""
    everything: bool = False
    """Whether it read without a condition."""
    whole_table: bool = False
    """Whether it declared that it depends on the whole table (`readWholeTable`)."""
    files: frozenset[str] = frozenset()
    """The live files that it looked into."""
    apps_read: Mapping[str, int] = field(default_factory=dict)
    # What it writes.
    adds: Mapping[str, str] = field(default_factory=dict)
    """Path -> the value of `p`."""
    removes: frozenset[str] = frozenset()
    data_change: bool = True
    settings: Mapping[str, str] | None = None
    """Properties that it sets, where it changes the metadata."""
    only_switches: bool = False
    """Whether these only switch on what others may go by without knowing."""
    features: frozenset[str] | None = None
    """All features of the protocol, where it changes the protocol."""
    apps: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)

    @property
    def read_something(self) -> bool:
        return bool(self.parts or self.everything or self.whole_table or self.files)

    @property
    def is_blind_append(self) -> bool:
        """3.8: all its file actions add, and no content was read."""
        return not self.removes and not self.read_something


@dataclass(frozen=True)
class State:
    """A table at one version."""

    partitioned: bool
    files: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    apps: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)

    def after(self, deed: Deed) -> State:
        """The table once the deed is committed."""
        kept = {path: part for path, part in self.files.items() if path not in deed.removes}
        return State(
            self.partitioned,
            {**kept, **deed.adds},
            {**self.settings, **(deed.settings or {})},
            self.features if deed.features is None else deed.features,
            {**self.apps, **deed.apps},
            {**self.domains, **deed.domains},
        )

    def matching(self, part: str | None) -> frozenset[str]:
        """The files that may hold rows of one value of `p`; `None` for all rows.

        Without partitioning, any file may.
        """
        if part is None or not self.partitioned:
            return frozenset(self.files)
        return frozenset(path for path, value in self.files.items() if value == part)

    def read_again(self, deed: Deed) -> frozenset[str]:
        """The files of all that the deed read, if it read now."""
        if deed.everything or deed.whole_table:
            return self.matching(None)
        return frozenset().union(*(self.matching(part) for part in deed.parts))


def replay(partitioned: bool, deeds: Iterable[Deed]) -> list[State]:
    """The states of all versions, from 0 on."""
    states = [State(partitioned)]
    for deed in deeds:
        states.append(states[-1].after(deed))
    return states[1:]


def level_of(deed: Deed, settings: Mapping[str, str]) -> str:
    """3.7: the level that a commit is judged at.

    Args:
        deed: the commit.
        settings: the properties of the table that it read.
    """
    level = {**settings, **(deed.settings or {})}.get(LEVEL_KEY, SERIALIZABLE)
    only_files = deed.settings is None and deed.features is None
    only_files = only_files and not deed.apps and not deed.domains
    changes_rows = deed.data_change and bool(deed.adds or deed.removes)
    if not only_files or changes_rows:
        return level
    if level == WRITE_SERIALIZABLE and deed.operation in CHANGES_ROWS:
        return level
    return SNAPSHOT


def verdict(deed: Deed, level: str, partitioned: bool, winner: Deed) -> str | None:
    """Why the deed must not be committed behind this winner; `None` if it may.

    Args:
        deed: the commit that came too late.
        level: its isolation level.
        partitioned: whether the table is.
        winner: a commit that was made after the deed's read.

    Returns:
        The name of Delta's exception.
    """
    if winner.features is not None and deed.features is not None:  # 1b
        return "ProtocolChangedException"
    harmless = winner.only_switches and deed.settings is None  # 2c
    if winner.settings is not None and not harmless:  # 2a, 2d
        return "MetadataChangedException"
    if winner.domains.keys() & deed.domains.keys():  # 3a
        return "ConcurrentTransactionException"
    if winner.apps.keys() & deed.apps_read.keys():  # 4a; 4b is no conflict
        return "ConcurrentTransactionException"
    if winner.adds and _appends_matter(deed, level, winner) and _covers(deed, partitioned, winner):
        return "ConcurrentAppendException"  # 10a to 10g
    if winner.removes & deed.files or (winner.removes and deed.whole_table):  # 11a, 11b
        return "ConcurrentDeleteReadException"
    if winner.removes & deed.removes:  # 12
        return "ConcurrentDeleteDeleteException"
    return None


def _appends_matter(deed: Deed, level: str, winner: Deed) -> bool:
    if level == SNAPSHOT or deed.is_blind_append:  # 10d
        return False
    ignores_blind = level == WRITE_SERIALIZABLE and deed.settings is None  # 10b, 10c
    return not (ignores_blind and winner.is_blind_append)


def _covers(deed: Deed, partitioned: bool, winner: Deed) -> bool:
    if not partitioned or deed.whole_table or deed.everything:  # 10e, 10f
        return True
    return any(part in deed.parts for part in winner.adds.values())


def broken_promise(
    deed: Deed, level: str, read: State, before: State, between: Iterable[Deed]
) -> str | None:
    """Whether a commit fits its place in the log, whatever rule let it in.

    This asks for the promise and not for the rules: a commit is what it would have been, had it
    read just before it was committed.

    Args:
        deed: the commit.
        level: its isolation level.
        read: the state that it read.
        before: the state that it was committed on.
        between: the commits after the one and up to the other.

    Returns:
        What is wrong; `None` if nothing is.
    """
    gone = sorted((deed.files | deed.removes) - before.files.keys())
    if gone:
        return f"it read or removes {gone}, which was gone"
    switched = {k for each in between if each.only_switches for k in each.settings or {}}
    if {**before.settings, **{k: read.settings.get(k) for k in switched}} != {
        **read.settings,
        **{k: read.settings.get(k) for k in switched},
    }:
        return "the metadata had changed"
    for app, seen in deed.apps_read.items():
        if before.apps.get(app, -1) != seen:
            return f"the progress of {app} had changed"
    if level == SNAPSHOT:
        return None
    then, now = read.read_again(deed), before.read_again(deed)
    if level == WRITE_SERIALIZABLE and deed.settings is None:
        # Blind appends may be taken to have come later.
        now -= {path for each in between if each.is_blind_append for path in each.adds}
    if then != now:
        return f"it read {sorted(then)}, and at its place in the log that is {sorted(now)}"
    return None
