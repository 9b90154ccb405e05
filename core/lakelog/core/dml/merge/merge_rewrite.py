"""The second half of a MERGE: new rows, and what becomes of the files whose rows are touched.

Files are gone through one by one, and a file by pieces.
"""

from __future__ import annotations

import bisect
from collections import deque
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lakelog.core import keys
from lakelog.core.arrow.encodings import taken
from lakelog.core.compute import pc
from lakelog.core.dml.file_rewrite import FileRewrite
from lakelog.core.dml.merge.metrics import MergeMetrics
from lakelog.core.dml.merge.positions import Positions
from lakelog.core.dml.merge.sides import side_by_side
from lakelog.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from lakelog.core.data.row_reader import Piece
    from lakelog.core.dml.merge.build import RowBuilder
    from lakelog.core.dml.merge.clauses import MergeClause
    from lakelog.core.dml.merge.matching import Hits
    from lakelog.core.dml.merge.sides import Sides
    from lakelog.core.dml.merge.source import SourceRows
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction


class MergeRewrite(FileRewrite[MergeMetrics]):
    """Writes the files and actions of one MERGE.

    Call `apply` and `insert`, then `actions`; `abort` where it fails before, or the commit is
    refused.
    """

    def __init__(
        self,
        txn: OptimisticTransaction,
        now_ms: int,
        schema: StructType,
        sides: Sides,
        source: SourceRows,
        clauses: Sequence[MergeClause],
        builders: Sequence[RowBuilder | None],
    ) -> None:
        """Prepare the rewrite; no file is opened yet.

        Args:
            txn: has a snapshot, and the metadata that the table will have.
            now_ms: when rows are deleted, epoch milliseconds.
            schema: of the table as it will be, as files are read.
            sides: the columns that expressions name.
            source: all of its rows.
            clauses: all of them.
            builders: makes the new rows of each; `None` for one that deletes.
        """
        super().__init__(txn, now_ms, MergeMetrics(), keys.MERGE_VECTORS, schema)
        self._sides = sides
        self._source = source
        self._clauses = clauses
        self._builders = builders
        self._moved = False

    @property
    def keeps_row_ids(self) -> bool:
        """Whether every row that is left has the id that it had."""
        return self._ids is not None or not self._moved

    def apply(self, hits: Sequence[Hits], report: ProgressCallback | None = None) -> None:
        """Update and delete the rows that clauses apply to.

        Args:
            hits: the files that have such rows.
            report: called after each file.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            DataFileMissingError: a file vanished.
            OSError: the storage refused.
        """
        copies = not self._by_vectors and not all(each.touched.is_whole for each in hits)
        updates = any(self._updates(each) for each in hits)
        self._moved = copies or updates
        # Readers take change files alone: they hold all changes of the commit, or there are none.
        self._has_changes = self._has_feed and self._moved
        rewritten = [
            each
            for each in hits
            if self._has_changes or self._updates(each) or (copies and not each.touched.is_whole)
        ]
        with closing(self._files.pieces_ahead(each.touched.file for each in rewritten)) as pieces:
            by_file = groupby(pieces, itemgetter(0))
            left = deque(rewritten)
            for done, each in enumerate(hits, 1):
                self._take_out(each.touched)
                if left and left[0] is each:
                    left.popleft()
                    self._rewrite_file(each, (piece for _, piece in next(by_file)[1]))
                else:
                    self._count(each.clauses)
                if report is not None:
                    report(Progress(text="rewriting", done=done, total=len(hits), unit="files"))

    def _updates(self, hits: Hits) -> bool:
        numbers = pc.unique(hits.clauses).to_pylist()
        return any(self._clauses[number].action == "update" for number in numbers)

    def _count(self, clauses: pa.Array[Any]) -> None:
        for each in pc.value_counts(clauses).to_pylist():
            self.metrics.count_rows(self._clauses[each["values"]], each["counts"])

    def _rewrite_file(self, hits: Hits, pieces: Iterable[Piece]) -> None:
        """Write what becomes of the rows of a file."""
        touched, start, first = hits.touched, 0, 0
        for piece in pieces:
            rows = piece.rows
            assert rows is not None  # nothing is pruned
            here, start = start, start + piece.count
            end = bisect.bisect_left(Positions(hits.positions), start)
            mine, first = slice(first, end), end
            if self._by_vectors and mine.start == mine.stop:
                continue
            if self._ids is not None:
                rows = self._ids.with_row_ids(rows, touched.add, here)
            if not self._by_vectors:
                kept = rows.filter(pc.invert(touched.masked[here:start]))
                self._data.write(kept)
                self.metrics.copied += kept.num_rows
            if mine.start < mine.stop:
                places = pc.subtract_checked(hits.positions[mine], here)
                self._change(rows, places, hits.sources[mine], hits.clauses[mine])

    def _change(
        self, rows: pa.Table, places: pa.Array[Any], sources: pa.Array[Any], clauses: Any
    ) -> None:
        """Write the new rows of some rows of one piece, and the changes."""
        for number in sorted(pc.unique(clauses).to_pylist()):
            mine = pc.equal(clauses, number)
            old = taken(rows, places.filter(mine))
            clause, builder = self._clauses[number], self._builders[number]
            self.metrics.count_rows(clause, old.num_rows)
            if builder is None:
                if self._has_changes:
                    self._changes.write(old, "delete")
                continue
            new = builder.build(self._pairs(builder, old, sources.filter(mine)))
            self._write_updated(old, new)

    def _pairs(self, builder: RowBuilder, old: pa.Table | None, sources: pa.Array[Any]) -> pa.Table:
        sides = self._sides
        theirs = [
            n for n in self._source.table.column_names if sides.source.named(n) in builder.names
        ]
        taken = self._source.take(theirs, sources)
        mine = None
        if old is not None:
            known = sides.target.schema.names
            mine = old.select([n for n in known if sides.target.named(n) in builder.names])
        return side_by_side(sides, mine, taken, len(sources))

    def insert(self, number: int, sources: pa.Array[Any]) -> None:
        """Insert rows of the source by a clause; `apply` comes before.

        Args:
            number: of the clause.
            sources: the numbers of the source rows.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            OSError: the storage refused.
        """
        builder = self._builders[number]
        assert builder is not None  # it inserts
        new = builder.build(self._pairs(builder, None, sources))
        self.metrics.count_rows(self._clauses[number], new.num_rows)
        self._data.write(new if self._ids is None else self._ids.without_ids(new))
        self.write_inserted(new)
