"""Which files are live, which are tombstones: replay of file actions over columns.

A state is a base and the commits after it. Nothing is computed until somebody asks for the
files; a writer that only appends never does. Asking walks back to the nearest state that has
been computed, and applies what came after it:

    live       = base.live       minus every key of the tail, plus the tail's last adds
    tombstones = base.tombstones minus every key of the tail, plus the tail's last removes

The base is reconciled already, so only the keys of the tail are ever hashed (PROTOCOL.md,
"Action Reconciliation"). The key of a file is its canonical path and the id of its deletion
vector.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.file_keys import file_keys, rows_without
from lakelog.core.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.commit_file import Commit

__all__ = ["FileState"]


# From here on a hash aggregation of Arrow beats a dict, and is worth the import of its engine.
_MANY_KEYS = 100_000
# Every update adds a chunk, and every scan pays for each.
_MANY_CHUNKS = 256


_NO_FILES: Callable[[], pa.Table] = FILE_SCHEMA.empty_table
_NO_TOMBSTONES: Callable[[], pa.Table] = TOMBSTONE_SCHEMA.empty_table


class FileState:
    """The files of one version; immutable to its users, and safe for threads."""

    def __init__(
        self,
        table: str,
        *,
        live: Callable[[], pa.Table] = _NO_FILES,
        tombstones: Callable[[], pa.Table] = _NO_TOMBSTONES,
    ) -> None:
        """Make a base.

        Args:
            table: the table's URI.
            live: reads the base's files, once, when asked for.
            tombstones: reads the base's tombstones, likewise.
        """
        self._live = _Chain(table, is_live=True, read=live)
        self._tombstones = _Chain(table, is_live=False, read=tombstones)

    def after(self, commits: Sequence[Commit]) -> FileState:
        """The state that these commits, ascending, make of this one."""
        if not commits:
            return self
        state = object.__new__(FileState)
        state._live = self._live.after(commits)
        state._tombstones = self._tombstones.after(commits)
        return state

    @property
    def live(self) -> pa.Table:
        """The live files: rows of `FILE_SCHEMA`."""
        return self._live.get()

    @property
    def is_at_hand(self) -> bool:
        """Whether `live` needs nothing of the storage: it is computed, or all commits are here."""
        return self._live.is_at_hand

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
        parent: _Chain | None = None,
        commits: tuple[Commit, ...] = (),
    ) -> None:
        self._table = table
        self._is_live = is_live
        self._read = read
        self._parent = parent
        self._commits = commits
        self._rows: pa.Table | None = None
        self._lock = threading.Lock()

    def after(self, commits: Sequence[Commit]) -> _Chain:
        return _Chain(self._table, is_live=self._is_live, parent=self, commits=tuple(commits))

    @property
    def is_at_hand(self) -> bool:
        if self._rows is not None:
            return True
        base = self if self._read is not None else self._nearest()[0]
        return base._rows is not None or base._read is _NO_FILES

    def get(self) -> pa.Table:
        with self._lock:
            if self._rows is None:
                self._rows = self._compute()
                # What came before is needed no more; a chain of a thousand updates must not
                # keep a thousand tables. `_parent` goes first: see `_nearest`.
                self._parent = None
                self._read = None
                self._commits = ()
            return self._rows

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


def _apply(table: str, base: pa.Table, commits: Sequence[Commit], *, is_live: bool) -> pa.Table:
    # Within a commit removes come first: a file with a new deletion vector is a remove and an
    # add of one path, and a commit that names one key twice means the file to stay.
    blocks = [
        (rows, is_add)
        for commit in commits
        for rows, is_add in ((commit.removed(), False), (commit.added(), True))
        if rows.num_rows
    ]
    if not blocks:
        return base
    chunks = [chunk for rows, _ in blocks for chunk in file_keys(table, rows).chunks]
    keys = pa.chunked_array(chunks, pa.string())
    kept = _last_of_each(keys)
    parts, start = [rows_without(table, base, keys)], 0
    for rows, is_add in blocks:
        if is_add == is_live:
            mask = None if kept is None else kept.slice(start, rows.num_rows)
            parts.append(rows if mask is None else rows.filter(mask))
        start += rows.num_rows
    return _joined(parts)


def _last_of_each(keys: pa.ChunkedArray) -> pa.Array | None:
    """Mark the last row of every key; `None` where no key comes twice."""
    count = len(keys)
    if count < _MANY_KEYS:
        last: Any = dict(zip(keys.to_pylist(), range(count), strict=True)).values()
    else:
        if pc.count_distinct(keys).as_py() == count:
            return None
        rows = pa.table({"key": keys, "row": pa.array(range(count), pa.int64())})
        last = rows.group_by("key").aggregate([("row", "max")])["row_max"].to_pylist()
    if len(last) == count:
        return None
    marks = bytearray(count)
    for row in last:
        marks[row] = 1
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(marks)]).cast(pa.bool_())


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    joined = pa.concat_tables([part for part in parts if part.num_rows] or parts[:1])
    # `combine_chunks` splits by itself where a column of text would pass 2 GB.
    return joined.combine_chunks() if joined["path"].num_chunks > _MANY_CHUNKS else joined
