"""Where the rows are that a MERGE changes: as they are where they are few, as bitmaps else.

A row that is fetched is the URI of its file, its position and two numbers: a hundred bytes and
more, so that a few million are more than `spark.driver.maxResultSize` lets through. A bitmap is
4 KiB for 32,768 rows of a file, however many of them are in it. To make bitmaps is a shuffle, which
takes longer than to fetch a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

from lakelog.core.engine.dml import touched_at, touched_rows
from lakelog.core.engine.values import integers, pc
from lakelog.spark.dml.matching_positions import bitmaps
from lakelog.spark.dml.merge.changed_rows import CLAUSE, NO_CLAUSE
from lakelog.spark.dml.merge.numbered_source import NUMBER
from lakelog.spark.reading.row_positions import FILE, ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from lakelog.core import Snapshot
    from lakelog.core.engine.dml import TouchedFile

FEW_PLACES = 1 << 17
"""Up to so many rows are fetched."""
_SHOWN = 5
_COUNT = "__lakelog_count"


@dataclass(frozen=True, slots=True)
class ManyMatches:
    """Rows of the table that several rows of the source match."""

    rows: int
    numbers: list[int]
    """Of some of these rows of the source, one for each row of the table."""


@dataclass(frozen=True, slots=True)
class Places:
    """The rows that clauses apply to, each once."""

    counts: Mapping[int, int]
    """Clause -> rows that it updates or deletes."""
    many: ManyMatches | None
    touched: Callable[[Snapshot, pa.Table], list[TouchedFile]]
    """Gives the files with such rows, of a version and rows of its `file_table`."""


def places_of(
    pairs: DataFrame, numbers: Mapping[str, int], *, source_rows: int, one_match: bool
) -> Places:
    """Look where rows are.

    Args:
        pairs: `FILE`, `ROW`, `NUMBER` and `CLAUSE` of rows that match or that a clause applies to,
            one for each match; evaluated, since it may be looked at more than once.
        numbers: of the files, by the values of `FILE`.
        source_rows: how many the source has.
        one_match: whether it matters that rows match several times.
    """
    if source_rows <= FEW_PLACES:
        # A source row may still match any number of the table's.
        found = pairs.select(FILE, ROW, NUMBER, CLAUSE).limit(FEW_PLACES + 1).toArrow()
        if found.num_rows <= FEW_PLACES:
            return _fetched(found, numbers, one_match)
    return _aggregated(pairs, numbers, one_match)


def _fetched(pairs: pa.Table, numbers: Mapping[str, int], one_match: bool) -> Places:
    many = _many_fetched(pairs) if one_match else None
    applied = pairs.filter(pc.not_equal(pairs[CLAUSE], NO_CLAUSE))
    once = applied.group_by([FILE, ROW]).aggregate([(CLAUSE, "min")])
    known = pc.value_counts(once[f"{CLAUSE}_min"]).to_pylist()
    counts = {each["values"]: each["counts"] for each in known}
    files = integers([numbers[key] for key in once[FILE].to_pylist()], pa.int64())
    rows = pa.table({"file": files, "row": once[ROW]})
    return Places(counts, many, partial(touched_rows, rows=rows))


def _aggregated(pairs: DataFrame, numbers: Mapping[str, int], one_match: bool) -> Places:
    matches = sf.count(NUMBER).alias(_COUNT)
    found = bitmaps(pairs.select(FILE, ROW, NUMBER, CLAUSE), [CLAUSE], [matches]).toArrow()
    found = found.sort_by(CLAUSE)
    hits: dict[int, dict[int, bytes]] = {}
    matched: dict[tuple[str, int], tuple[int, int]] = {}
    counts: dict[int, int] = {}
    for file, clause, start, count, bits in zip(
        *(each.to_pylist() for each in found.columns), strict=True
    ):
        if count:
            pairs_before, rows_before = matched.get((file, start), (0, 0))
            matched[file, start] = pairs_before + count, rows_before | _int(bits)
        if clause == NO_CLAUSE:
            continue
        of_file = hits.setdefault(numbers[file], {})
        known = _int(of_file.get(start, b""))
        fresh = _int(bits) & ~known
        counts[clause] = counts.get(clause, 0) + fresh.bit_count()
        of_file[start] = (known | fresh).to_bytes(len(bits), "little")
    # A row that matches twice is one bit, and counts twice.
    is_repeated = any(count > rows.bit_count() for count, rows in matched.values())
    many = _many_aggregated(pairs) if one_match and is_repeated else None
    return Places({k: n for k, n in counts.items() if n}, many, partial(touched_at, hits=hits))


def _int(bits: bytes) -> int:
    return int.from_bytes(bits, "little")


def _many_fetched(pairs: pa.Table) -> ManyMatches | None:
    matches = pairs.filter(pc.is_valid(pairs[NUMBER]))
    per_row = matches.group_by([FILE, ROW]).aggregate([(NUMBER, "count"), (NUMBER, "min")])
    repeated = per_row.filter(pc.greater(per_row[f"{NUMBER}_count"], 1))
    if not repeated.num_rows:
        return None
    first = pc.unique(repeated[f"{NUMBER}_min"])[:_SHOWN].to_pylist()
    return ManyMatches(repeated.num_rows, first)


def _many_aggregated(pairs: DataFrame) -> ManyMatches:
    least = f"{NUMBER}_min"
    repeated = (
        pairs.where(sf.col(NUMBER).isNotNull())
        .groupBy(FILE, ROW)
        .agg(sf.count(NUMBER).alias(_COUNT), sf.min(NUMBER).alias(least))
        .where(sf.col(_COUNT) > 1)
    )
    first: Any = repeated.select(least).distinct().limit(_SHOWN).toArrow()[least]
    return ManyMatches(repeated.count(), first.to_pylist())
