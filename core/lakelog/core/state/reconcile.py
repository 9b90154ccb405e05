"""The file actions of many commits, as rows: converted together, and reconciled together.

A log of ten thousand commits holds ten thousand lists of one or two actions. Made into a table one
by one, each would cost a hundred times what its row costs in a table of all of them.
"""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lakelog.core.actions.file_keys import file_keys
from lakelog.core.actions.file_table import NO_FILES, NO_TOMBSTONES
from lakelog.core.compute import pc
from lakelog.core.errors import CorruptCommitError
from lakelog.core.log.commit_file import action_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.log.commit_file import Commit

# From here on a hash aggregation of Arrow beats a dict, and is worth the import of its engine.
_MANY_KEYS = 100_000
# A place in the log: which commit, whether it adds, and in the lower bits the row.
_ROW_BITS = 40
_MAPS = ("partitionValues", "tags")


class Reconciled:
    """Some commits, reconciled: each file's last action, and the keys of all files they name."""

    def __init__(self, keys: pa.ChunkedArray[Any], added: pa.Table, removed: pa.Table) -> None:
        """Keep the parts."""
        self.keys = keys
        """Every file that an action names, some of them more than once."""
        self.added = added
        """The files whose last action adds them, in the order of the log: of `FILE_SCHEMA`."""
        self.removed = removed
        """Those whose last action removes them: of `TOMBSTONE_SCHEMA`."""


def reconciled(table: str, commits: Sequence[Commit]) -> Reconciled | None:
    """Reconcile commits, which are ascending; `None` where they have no file action.

    Within a commit removes come first: a file with a new deletion vector is a remove and an add of
    one path, and a commit that names one key twice means the file to stay.

    Args:
        table: the table's URI.
        commits: any number.

    Raises:
        CorruptCommitError: an action is malformed.
    """
    # All commits at once: the last action on a file wins, so that what is between need not be
    # replayed in steps.
    removed, added = _rows(commits, "remove"), _rows(commits, "add")
    count = removed.num_rows + added.num_rows
    if not count:
        return None
    chunks = [*file_keys(table, removed).chunks, *file_keys(table, added).chunks]
    keys = pa.chunked_array(chunks, pa.string())
    last = _last_of_each(keys, commits)
    if last is not None:
        removed, added = (
            removed.filter(last.slice(0, removed.num_rows)),
            added.filter(last.slice(removed.num_rows)),
        )
    return Reconciled(keys, added, removed)


def _rows(commits: Sequence[Commit], kind: Literal["add", "remove"]) -> pa.Table:
    tables = [NO_FILES if kind == "add" else NO_TOMBSTONES]
    # Held once: another thread may convert a commit's rows meanwhile.
    held = ((commit, commit.adds if kind == "add" else commit.removes) for commit in commits)
    some = ((commit, rows) for commit, rows in held if len(rows))
    for shape, run in groupby(some, lambda each: _shape(each[1])):
        found = list(run)
        if shape is None or len(found) == 1:
            tables += _apart(found, kind)
            continue
        (first, _), (last, _) = found[0], found[-1]
        try:
            every = [row for _, rows in found for row in rows]
            tables.append(action_rows(kind, every, first.path, last.version))
        except CorruptCommitError:
            # One of them is malformed, and has to be named.
            tables += _apart(found, kind)
    return pa.concat_tables(tables)


def _apart(commits: Sequence[tuple[Commit, Any]], kind: str) -> list[pa.Table]:
    return [commit.added() if kind == "add" else commit.removed() for commit, _ in commits]


def _shape(rows: Any) -> tuple[Any, ...] | None:
    """Equal for commits whose actions can be read together; `None` for those that can't.

    The maps' keys must be the same: read together, an absent one would be taken for null.
    """
    if isinstance(rows, pa.Table):
        return None
    try:
        shapes = {
            tuple(None if row.get(name) is None else (*row[name],) for name in _MAPS)
            for row in rows
        }
    except TypeError:
        return None
    return shapes.pop() if len(shapes) == 1 else None


def _last_of_each(keys: pa.ChunkedArray[Any], commits: Sequence[Commit]) -> pa.Array[Any] | None:
    """Mark the last row of every key; `None` where no key comes twice.

    Args:
        keys: of all removes, then of all adds.
        commits: whose they are.
    """
    count = len(keys)
    if count >= _MANY_KEYS:
        if pc.count_distinct(keys).as_py() == count:
            return None
        rows = pa.table({"key": keys, "place": _places(commits)})
        found = rows.group_by("key").aggregate([("place", "max")])["place_max"]
        last: Any = pc.bit_wise_and(found, (1 << _ROW_BITS) - 1).to_pylist()
    else:
        last = _last_by_dict(keys.to_pylist(), commits).values()
    if len(last) == count:
        return None
    marks = bytearray(count)
    for row in last:
        marks[row] = 1
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(marks)]).cast(pa.bool_())


def _spans(commits: Sequence[Commit]) -> Iterator[tuple[int, int, int]]:
    """Where the rows of each kind of each commit are, in the order of the log."""
    removed, added = 0, sum(len(commit.removes) for commit in commits)
    for number, commit in enumerate(commits):
        yield 2 * number, removed, removed + len(commit.removes)
        yield 2 * number + 1, added, added + len(commit.adds)
        removed += len(commit.removes)
        added += len(commit.adds)


def _last_by_dict(keys: list[str], commits: Sequence[Commit]) -> dict[str, int]:
    last: dict[str, int] = {}
    for _, start, end in _spans(commits):
        if start < end:
            last.update(zip(keys[start:end], range(start, end), strict=True))
    return last


def _places(commits: Sequence[Commit]) -> pa.Array[Any]:
    places = array("q", bytes(8 * sum(len(c.adds) + len(c.removes) for c in commits)))
    for block, start, end in _spans(commits):
        base = block << _ROW_BITS
        places[start:end] = array("q", range(base + start, base + end))
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
