"""The first half of a MERGE: which rows of which files match, and which clause applies to them.

Only the columns that conditions name are read, files by a few threads at once. What is kept of a
file are two bits a row, and three numbers for each row that a clause applies to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.encodings import taken
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.dml.merge.clauses import takes_many_matches
from lakelog.core.dml.merge.positions import mask_of, numbers
from lakelog.core.dml.merge.sides import side_by_side
from lakelog.core.dml.merge.source import SourceRows
from lakelog.core.dml.merge.source_index import SourceIndex, comparable
from lakelog.core.dml.touched_files import TouchedFile, empty_mask
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.values.char_texts import fitted
from lakelog.core.portable.shown_values import python_value
from lakelog.core.progress import Progress
from lakelog.core.schema import StructType
from lakelog.logstores.threads import in_order, readers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.dml.merge.arrow_expressions import ArrowBound
    from lakelog.core.dml.merge.clauses import MergeClause
    from lakelog.core.dml.merge.search_condition import SearchCondition
    from lakelog.core.dml.merge.sides import Bound, Sides
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.state.snapshot import Snapshot

_MOST_PAIRS = 1 << 20
"""Pairs that are looked at together where a condition has no keys."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Hits:
    """The rows of a file that clauses apply to, in the order of the file."""

    touched: TouchedFile
    positions: pa.Array[Any]
    sources: pa.Array[Any]
    """The number of each one's source row; null where it matches none."""
    clauses: pa.Array[Any]
    """The number of the clause that applies."""


class Matcher:
    """Matches the rows of files with those of the source."""

    def __init__(
        self,
        snapshot: Snapshot,
        sides: Sides,
        source: SourceRows,
        search: SearchCondition,
        clauses: Sequence[MergeClause],
        conditions: Sequence[Bound | ArrowBound | None],
    ) -> None:
        """Index the source; no file is read yet.

        Args:
            snapshot: the target.
            sides: the columns of both tables.
            source: all of its rows.
            search: what rows are matched by.
            clauses: all of them.
            conditions: of each clause, resolved.
        """
        self._snapshot = snapshot
        self._sides = sides
        self._search = search
        self._clauses = clauses
        self._conditions = conditions
        self._matched = [i for i, each in enumerate(clauses) if each.when == "matched"]
        self._by_source = [
            i for i, each in enumerate(clauses) if each.when == "not matched by source"
        ]
        self._takes_many = takes_many_matches(clauses)
        self.reads_all: bool = bool(self._by_source)
        """Whether rows that match nothing matter."""
        self._used = self._source_columns(source)
        self._candidates = self._possible()
        names = {
            each.name
            for each in sides.target.schema
            if sides.target.named(each.name) in self._target_names()
        }
        self._read = StructType(tuple(f for f in sides.target.schema if f.name in names))
        self._files = TableFileReader(snapshot, self._read)
        self.keys: list[Any] = self._keys()
        """Of each key of the search condition, the values that the source has."""
        self._index = self._indexed()
        self._found: list[pa.Array[Any]] = []

    def _needed(self) -> set[str]:
        conditions = [c for c in self._conditions if c is not None]
        names = {name for each in conditions for name in each.names}
        return (
            names
            | self._search.columns(self._sides, of_target=True)
            | self._search.columns(self._sides, of_target=False)
        )

    def _target_names(self) -> set[str]:
        return {name for name in self._needed() if self._sides.side_of(name) is self._sides.target}

    def _source_columns(self, source: SourceRows) -> SourceRows:
        """What conditions need of the source, side by side names included."""
        sides = self._sides
        table = source.table
        names = [n for n in table.column_names if sides.source.named(n) in self._needed()]
        return SourceRows(side_by_side(sides, None, table.select(names), table.num_rows))

    def _possible(self) -> pa.Array[Any]:
        """The numbers of the source rows that can match a row at all."""
        mask: Any = None
        for each in self._search.source_only:
            found = each.true_for(self._used.table)
            mask = found if mask is None else pc.and_(mask, found)
        count = self._used.num_rows
        if mask is None:
            return numbers(count)
        return pc.indices_nonzero(mask).cast(pa.int64())

    @property
    def candidates(self) -> int:
        """How many source rows can match at all."""
        return len(self._candidates)

    def _keys(self) -> list[Any]:
        whole = len(self._candidates) == self._used.num_rows
        keys = self._search.keys
        used = {name for each in keys for name in each.source.names}
        names = [name for name in self._used.table.column_names if name in used]
        rows = self._used.table if whole else self._used.take(names, self._candidates)
        found = [each.source.evaluate(rows, each.data_type) for each in keys]
        return [
            fitted(values, each.char_length) if each.char_length else values
            for each, values in zip(keys, found, strict=True)
        ]

    def _indexed(self) -> SourceIndex | None:
        if not self.keys:
            return None
        safe = [each.null_safe for each in self._search.keys]
        return SourceIndex([comparable(each) for each in self.keys], safe)

    def hits(self, files: pa.Table, report: ProgressCallback | None = None) -> Iterator[Hits]:
        """The files with rows that a clause applies to, one after another.

        Args:
            files: rows of `FILE_SCHEMA` that may hold such rows.
            report: called after each file.

        Raises:
            DeltaAnalysisError: several source rows match one row.
            DataFileMissingError: the log lists a file that the storage does not have.
        """
        places = self._files.find(files)
        adds = to_add_files(files)
        found = in_order(
            self._of_file, list(zip(adds, places, strict=True)), readers(), "lakelog-scan"
        )
        for done, (hits, sources) in enumerate(found, 1):
            if report is not None:
                report(Progress(text="searching", done=done, total=len(adds), unit="files"))
            if len(sources):
                self._found.append(sources)
            if hits is not None:
                yield hits

    def unmatched(self) -> pa.Array[Any]:
        """The numbers of the source rows that match no row; known when all files are read."""
        everything = numbers(self._used.num_rows)
        if not self._found:
            return everything
        known = pc.unique(pa.chunked_array(self._found))
        return everything.filter(pc.invert(pc.is_in(everything, value_set=known)))

    def _of_file(self, file: tuple[AddFile, DataFile]) -> tuple[Hits | None, pa.Array[Any]]:
        """What clauses apply to in a file, and the source rows that match; by its pieces."""
        add, place = file
        deleted = self._files.deleted(place)
        gone = empty_mask(0)
        start = 0
        parts: list[pa.Table] = []
        matched: list[pa.Array[Any]] = []
        for piece in self._files.pieces(place):
            if not start:
                gone = empty_mask(piece.total) if deleted is None else deleted(piece.total)
            alive = pc.indices_nonzero(pc.invert(gone.slice(start, piece.count)))
            rows = side_by_side(
                self._sides, piece.rows if self._read.fields else None, None, piece.count
            )
            found, sources = self._of_piece(rows, alive.cast(pa.int64()))
            matched.append(sources)
            if found.num_rows:
                places = pc.add(found["position"], start)
                parts.append(found.set_column(0, "position", places))
            start += piece.count
        known = pc.unique(pa.chunked_array(matched, pa.int64()))
        if not parts:
            return None, known
        table = _first_of_each(pa.concat_tables(parts))
        hit = mask_of(table["position"].combine_chunks(), start)
        touched = TouchedFile(add, place, gone, hit)
        columns = [table[name].combine_chunks() for name in table.column_names]
        return Hits(touched, *columns), known

    def _of_piece(self, rows: pa.Table, alive: pa.Array[Any]) -> tuple[pa.Table, pa.Array[Any]]:
        """The same for the needed columns of some rows; positions are counted from the first."""
        positions, sources = self._matching(rows, alive)
        # Before clauses choose: Delta counts pairs that match, whether a clause applies or not. A
        # row of the table is in one piece only, so that its pairs are all here.
        if not self._takes_many:
            self._refuse_many(rows, positions)
        parts = [self._applied(rows, positions, sources, self._matched)]
        if self._by_source:
            others = alive.filter(pc.invert(pc.is_in(alive, value_set=pc.unique(positions))))
            nothing = pa.nulls(len(others), pa.int64())
            parts.append(self._applied(rows, others, nothing, self._by_source))
        return pa.concat_tables(parts), pc.unique(sources)

    def _matching(
        self, rows: pa.Table, alive: pa.Array[Any]
    ) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """Each pair of a row and a source row that match, in the order of the rows."""
        for each in self._search.target_only:
            mask = each.true_for(taken(rows, alive))
            alive = alive.filter(mask.combine_chunks())
        if not len(alive) or not len(self._candidates):
            nothing = pa.nulls(0, pa.int64())
            return nothing, nothing
        if self._index is None:
            return self._nested(rows, alive)
        whole = len(alive) == rows.num_rows
        living = rows if whole else taken(rows, alive)
        keys = [
            comparable(each.target.evaluate(living, each.data_type)) for each in self._search.keys
        ]
        places, found = self._index.pairs(keys)
        return self._kept(rows, alive.take(places), self._candidates.take(found))

    def _nested(self, rows: pa.Table, alive: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """Every row with every source row, a part at a time: there are no keys."""
        step = max(_MOST_PAIRS // len(self._candidates), 1)
        parts = []
        for start in range(0, len(alive), step):
            mine = alive.slice(start, step)
            bounds = array_of([0, len(self._candidates)], pa.int32())
            every = pa.ListArray.from_arrays(bounds, self._candidates)
            lists = every.take(pa.repeat(scalar_of(0, pa.int64()), len(mine)))
            parents = pc.list_parent_indices(lists)
            parts.append(self._kept(rows, mine.take(parents), lists.flatten()))
        positions, sources = zip(*parts, strict=True)
        return pa.concat_arrays(positions), pa.concat_arrays(sources)

    def _kept(
        self, rows: pa.Table, positions: pa.Array[Any], sources: pa.Array[Any]
    ) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """The pairs for which what is left of the condition is true."""
        for each in self._search.pairs:
            mask = each.true_for(self._pairs(rows, positions, sources, [each]))
            mask = mask.combine_chunks()
            positions, sources = positions.filter(mask), sources.filter(mask)
        return positions, sources

    def _pairs(
        self,
        rows: pa.Table,
        positions: pa.Array[Any],
        sources: pa.Array[Any],
        needing: Sequence[Bound | ArrowBound],
    ) -> pa.Table:
        """Pairs as rows, with the columns that some expressions need."""
        names = {name for each in needing for name in each.names}
        mine = [name for name in rows.column_names if name in names]
        theirs = [name for name in self._used.table.column_names if name in names]
        columns = dict(zip(mine, taken(rows.select(mine), positions).columns, strict=True))
        columns |= zip(theirs, self._used.take(theirs, sources).columns, strict=True)
        return pa.table(columns or {"": pa.nulls(len(positions))})

    def _applied(
        self,
        rows: pa.Table,
        positions: pa.Array[Any],
        sources: pa.Array[Any],
        clauses: Sequence[int],
    ) -> pa.Table:
        """The pairs that some clause applies to, with the first that does."""
        parts = []
        for number in clauses:
            condition = self._conditions[number]
            taken, rest = _ALL, _NONE
            if condition is not None:
                pairs = self._pairs(rows, positions, sources, [condition])
                taken = condition.true_for(pairs).combine_chunks()
                rest = pc.invert(taken)
            chosen = positions if taken is _ALL else positions.filter(taken)
            of = sources if taken is _ALL else sources.filter(taken)
            number_of = pa.repeat(scalar_of(number, pa.int32()), len(chosen))
            parts.append(pa.table({"position": chosen, "source": of, "clause": number_of}))
            if rest is _NONE:
                break
            positions, sources = positions.filter(rest), sources.filter(rest)
        return pa.concat_tables(parts) if parts else _NO_HITS

    def _refuse_many(self, rows: pa.Table, positions: pa.Array[Any]) -> None:
        if len(positions) < 2 or pc.count_distinct(positions).as_py() == len(positions):
            return
        counted = pc.value_counts(positions)
        many = counted.filter(pc.greater(counted.field("counts"), 1))
        names = sorted({name for each in self._search.keys for name in each.target.names})
        first = rows.select(names or rows.column_names[:1]).take(many.field("values")[:_SHOWN])
        counts = many.field("counts").to_pylist()
        shown = [
            ", ".join(f"{name} = {python_value(first[name][i])!r}" for name in first.column_names)
            + f" ({counts[i]} source rows)"
            for i in range(first.num_rows)
        ]
        more = f" and {len(many) - len(shown)} more" if len(many) > len(shown) else ""
        raise DeltaAnalysisError(
            "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge as "
            "multiple source rows matched and attempted to modify the same target row in the "
            f"Delta table in possibly conflicting ways: the rows with {'; '.join(shown)}{more}. "
            "Keep one source row for each key before the merge.",
            table=self._snapshot.table,
            rows=len(many),
            keys=shown,
        )


_ALL: Any = object()
_NONE: Any = object()
_NO_HITS = pa.table(
    {
        "position": pa.nulls(0, pa.int64()),
        "source": pa.nulls(0, pa.int64()),
        "clause": pa.nulls(0, pa.int32()),
    }
)


def _first_of_each(hits: pa.Table) -> pa.Table:
    """In the order of the rows, each row once: a deleted one may match several source rows."""
    hits = hits.sort_by("position")
    positions = hits["position"].combine_chunks()
    if pc.count_distinct(positions).as_py() == len(positions):
        return hits
    new = pc.not_equal(positions[1:], positions[:-1])
    return hits.filter(pa.concat_arrays([array_of([True], pa.bool_()), new]))
