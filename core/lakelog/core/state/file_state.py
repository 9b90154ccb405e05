"""Which files are live, which are tombstones: replay of file actions over columns.

A state is a base and the commits after it. Nothing is computed until the files are asked for, which
a writer that only appends never does. Asking walks back to the nearest state that has been
computed, and applies what came after it:

    live       = base.live       minus every key of the tail, plus the tail's last adds
    tombstones = base.tombstones minus every key of the tail, plus the tail's last removes

The base is reconciled already, so only the keys of the tail are ever hashed (PROTOCOL.md,
"Action Reconciliation"). The key of a file is its canonical path and the id of its deletion
vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_keys import rows_without, vector_file_key
from lakelog.core.actions.file_table import NO_FILES, NO_TOMBSTONES
from lakelog.core.forks import lock_of
from lakelog.core.paths import canonical_path
from lakelog.core.state.reconcile import reconciled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.log.commit_file import Commit
    from lakelog.core.state.file_selection import FileSelection

# Every update adds a chunk, and every scan pays for each.
_MANY_CHUNKS = 256

# Up to so many, a dict knows which files are live sooner than Arrow has made columns of them.
_FEW_ACTIONS = 20


def _no_files() -> pa.Table:
    return NO_FILES


def _no_tombstones() -> pa.Table:
    return NO_TOMBSTONES


class FileState:
    """The files of one version; immutable to its users, and safe for threads."""

    def __init__(
        self,
        table: str,
        *,
        live: Callable[[], pa.Table] = _no_files,
        tombstones: Callable[[], pa.Table] = _no_tombstones,
        select: Callable[[FileSelection], pa.Table] | None = None,
    ) -> None:
        """Make a base.

        Args:
            table: the table's URI.
            live: reads the base's files, once, when asked for.
            tombstones: reads the base's tombstones, likewise.
            select: reads some of the base's files without reading all of them here, where that
                is possible.
        """
        self._live = _Chain(table, is_live=True, read=live, select=select)
        self._tombstones = _Chain(table, is_live=False, read=tombstones)

    def after(self, commits: Sequence[Commit]) -> FileState:
        """The state after these commits, ascending, on top of this one."""
        if not commits:
            return self
        state = object.__new__(FileState)
        # Live files and tombstones apart: a writer or a reader hardly ever asks for tombstones,
        # which may be more than the files.
        state._live = self._live.after(commits)
        state._tombstones = self._tombstones.after(commits)
        return state

    @property
    def live(self) -> pa.Table:
        """The live files: rows of `FILE_SCHEMA`."""
        return self._live.get()

    def selected(self, selection: FileSelection) -> pa.Table | None:
        """Some of the live files; `None` where they are best chosen from `live`."""
        return self._live.selected(selection)

    def selected_by(self, selection: FileSelection) -> pa.Table:
        """Some of the live files, without reading the others here if possible.

        Raises:
            InvalidPredicateError: the filter names an unknown column.
        """
        found = self.selected(selection)
        return selection.select(self.live) if found is None else found

    @property
    def held(self) -> int:
        """How many commits are in memory for a table that has not been used yet."""
        return max(self._live.held, self._tombstones.held)

    def lighter(self, reread: FileState) -> FileState:
        """The same files, by way of whatever holds fewer commits.

        Args:
            reread: the same version, read again.
        """
        state = object.__new__(FileState)
        state._live = min(self._live, reread._live, key=lambda chain: chain.held)
        state._tombstones = min(self._tombstones, reread._tombstones, key=lambda chain: chain.held)
        return state

    @property
    def is_at_hand(self) -> bool:
        """Whether `live` needs no storage: it is computed, or all commits are in memory."""
        return self._live.is_at_hand

    def few_live(self) -> list[dict[str, Any]] | None:
        """The live files as JSON values of their `add`, in any order, without Arrow.

        `None` where they are not certain to be few, and all of the log in memory: ask `live` then.
        """
        return self._live.few()

    @property
    def tombstones(self) -> pa.Table:
        """The removed files: rows of `TOMBSTONE_SCHEMA`, expired ones included."""
        return self._tombstones.get()


class _Chain:
    """One of the two tables of a state, and how to get it."""

    def __init__(
        self,
        table: str,
        *,
        is_live: bool,
        read: Callable[[], pa.Table] | None = None,
        select: Callable[[FileSelection], pa.Table] | None = None,
        parent: _Chain | None = None,
        commits: tuple[Commit, ...] = (),
    ) -> None:
        self._table = table
        self._is_live = is_live
        self._read = read
        self._select = select
        self._parent = parent
        self._commits = commits
        self._rows: pa.Table | None = None
        self._held = len(commits) + (0 if parent is None else parent.held)
        self._lock = lock_of(self)

    def after(self, commits: Sequence[Commit]) -> _Chain:
        return _Chain(self._table, is_live=self._is_live, parent=self, commits=tuple(commits))

    @property
    def held(self) -> int:
        """How many commits are applied once the rows are asked for."""
        return 0 if self._rows is not None else self._held

    @property
    def is_at_hand(self) -> bool:
        if self._rows is not None:
            return True
        base = self if self._read is not None else self._nearest()[0]
        return base._rows is not None or base._read is _no_files

    def get(self) -> pa.Table:
        with self._lock:
            if self._rows is None:
                self._rows = self._compute()
                # What came before is no longer needed; a chain of a thousand updates must not
                # keep a thousand tables. `_parent` goes first: see `_nearest`.
                self._parent = None
                self._read = None
                self._commits = ()
            return self._rows

    def few(self) -> list[dict[str, Any]] | None:
        with self._lock:
            if self._rows is not None or self._read is not None:
                return None
            base, commits = self._nearest()
        # A base that is read from a checkpoint may have any number of files; one that is computed
        # has its columns already.
        if base._rows is not None or base._read is not _no_files:
            return None
        return _few_live(self._table, commits)

    def selected(self, selection: FileSelection) -> pa.Table | None:
        with self._lock:
            if self._rows is not None:
                return None
            base, commits = (self, []) if self._read is not None else self._nearest()
        if base._rows is not None or base._select is None:
            return None
        # What the selection leaves out of the base, it would leave out afterwards as well.
        rows = _apply(self._table, base._select(selection), commits, is_live=True)
        return selection.select(rows) if commits else rows

    def _compute(self) -> pa.Table:
        if self._read is not None:
            return self._read()
        base, commits = self._nearest()
        return _apply(self._table, base.get(), commits, is_live=self._is_live)

    def _nearest(self) -> tuple[_Chain, list[Commit]]:
        """The closest ancestor that is computed, or the base; and the commits after it."""
        chunks = [self._commits]
        chain = self._parent
        assert chain is not None  # only a base has none, and it has `_read`
        while chain._rows is None and chain._read is None:
            # Another thread may finish `chain` between these lines. Then its parent is gone,
            # and `chain` itself is the base; that its commits are in the list does no harm,
            # because applying them twice gives the same.
            chunks.append(chain._commits)
            parent = chain._parent
            if parent is None:
                break
            chain = parent
        return chain, [commit for chunk in reversed(chunks) for commit in chunk]


def _few_live(table: str, commits: Sequence[Commit]) -> list[dict[str, Any]] | None:
    """What `_apply` leaves of an empty table, by a dict: to set up Arrow costs more than few rows.

    `None` for more, and for rows that are columns already.
    """
    if sum(len(each.adds) + len(each.removes) for each in commits) > _FEW_ACTIONS:
        return None
    live: dict[tuple[str, str | None], dict[str, Any]] = {}
    for commit in commits:
        removes, adds = commit.removes, commit.adds
        if isinstance(removes, pa.Table) or isinstance(adds, pa.Table):
            return None
        # As in `reconciled`: of one commit the removes come first.
        for row in removes:
            live.pop(_key(table, row), None)
        for row in adds:
            live[_key(table, row)] = row
    return list(live.values())


def _key(table: str, row: dict[str, Any]) -> tuple[str, str | None]:
    """The same as `file_keys` gives it."""
    vector = row.get("deletionVector")
    if vector is None:
        return canonical_path(table, row["path"]), None
    own = vector_file_key(table, vector["storageType"], vector["pathOrInlineDv"])
    offset = vector.get("offset")
    # Some clients write 1.0.
    return canonical_path(table, row["path"]), own if offset is None else f"{own}@{int(offset)}"


def _apply(table: str, base: pa.Table, commits: Sequence[Commit], *, is_live: bool) -> pa.Table:
    tail = reconciled(table, commits)
    if tail is None:
        return base
    return _joined([rows_without(table, base, tail.keys), tail.added if is_live else tail.removed])


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    joined = pa.concat_tables([part for part in parts if part.num_rows] or parts[:1])
    # `combine_chunks` splits by itself where a column of text would pass 2 GB.
    return joined.combine_chunks() if joined["path"].num_chunks > _MANY_CHUNKS else joined
