"""Deletion vectors for Spark's own reader: bitmaps that are joined to the rows by their places.

Spark's Parquet reader gives each row's position in its file (`_metadata.row_index`), whatever it
pruned. The driver reads the vectors and sends them as pieces of bitmaps, which every executor
holds; a row is left out where its bit is set. No Python runs for it.

Rows find their piece by the size of their file, as the log has it and as Spark sees it
(`_metadata.file_size`), where no two of the files are of one size: to hash a long path for each
row is a fifth of what a scan of few columns costs. Else by the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from lakelog.core.engine.scan import ScanPlan
from lakelog.core.engine.values import array_of, integers, scalar_of
from lakelog.logstores import keys as store_keys
from lakelog.logstores.threads import REQUESTS, in_order
from lakelog.spark.reading.row_positions import FILE, ROW, SIZE
from lakelog.spark.types.path_forms import file_path_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import Snapshot

_CHUNK_BITS = 14
_CHUNK = 1 << _CHUNK_BITS
"""Rows of a piece: 2 KiB of bits. Spark may copy a piece for each row that it joins, where it
generates no code."""
_WORD_BITS = 6
_FILE, _PIECE, _WORDS = "__lakelog_vector_file", "__lakelog_piece", "__lakelog_words"
_KEY = "__lakelog_vector_key"
_PIECE_BITS = 20
"""Of a key by size; more pieces than files with vectors of a read may have rows for."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The deletion vectors of some files."""

    pieces: pa.Table
    """A row for each run of rows of every file."""
    by_size: bool
    """Whether rows find their piece by `SIZE`, not by `FILE`."""


def read_vectors(snapshot: Snapshot, files: pa.Table) -> Vectors:
    """The deletion vectors of some files, in pieces.

    Args:
        snapshot: the version.
        files: rows of its `file_table`, each with a vector and with a count of rows.

    Raises:
        CorruptLogError: the log does not say where a vector is.
        DataFileMissingError: the storage does not have it.
        DataFileError: it is damaged, or is of another data file.
    """
    plan = ScanPlan(snapshot, files)
    paths, sizes = plan.paths, files["size"].to_pylist()
    by_size = _tell_files_apart(sizes)

    def pieces(number: int) -> pa.Table:
        words = _words(plan.gone(number))
        numbers = range(len(words))
        columns = {
            _FILE: pa.repeat(scalar_of(file_path_uri(paths[number]), pa.string()), len(words)),
            _PIECE: integers(numbers, pa.int64()),
            _WORDS: words,
        }
        if by_size:
            first = sizes[number] << _PIECE_BITS
            columns[_KEY] = integers((first | piece for piece in numbers), pa.int64())
        return pa.table(columns)

    found = pa.concat_tables(in_order(pieces, range(files.num_rows), REQUESTS, "lakelog-vectors"))
    return Vectors(found, by_size)


def _tell_files_apart(sizes: list[int | None]) -> bool:
    """Whether each file has a size of its own that a key has room for."""
    most = 1 << (63 - _PIECE_BITS)
    return all(size is not None and 0 < size < most for size in sizes) and (
        len(set(sizes)) == len(sizes)
    )


def _words(deleted: pa.BooleanArray) -> pa.ListArray:
    """The bits as 64-bit words, in lists of a piece each; null for a piece without a set bit."""
    rows = len(deleted)
    pieces = max(1, -(-rows // _CHUNK))
    if deleted.offset:
        deleted = pa.concat_arrays([deleted])
    bits = deleted.buffers()[1].to_pybytes()[: -(-rows // 8)]
    per_piece = _CHUNK // 64
    lists = []
    for number in range(pieces):
        piece = bits[number * _CHUNK // 8 : (number + 1) * _CHUNK // 8].ljust(_CHUNK // 8, b"\0")
        if number == pieces - 1 and rows % _CHUNK:
            piece = _cut(piece, rows % _CHUNK)
        lists.append(piece if any(piece) else None)
    kept = [each for each in lists if each is not None]
    values = pa.Array.from_buffers(
        pa.int64(), len(kept) * per_piece, [None, pa.py_buffer(b"".join(kept))]
    )
    offsets, end = [], 0
    for each in lists:
        offsets.append(None if each is None else end)
        end += 0 if each is None else per_piece
    return pa.ListArray.from_arrays(array_of([*offsets, end], pa.int32()), values)


def _cut(piece: bytes, rows: int) -> bytes:
    """A piece without the bits after its last row, whose values Arrow leaves open."""
    number = int.from_bytes(piece, "little") & ((1 << rows) - 1)
    return number.to_bytes(len(piece), "little")


def without_deleted(spark: SparkSession, rows: DataFrame, vectors: Vectors) -> DataFrame:
    """The rows whose bits are not set.

    Rows find their piece by one 64-bit key, by which Spark joins faster than by a text: the size
    of its file and its number, or a hash of path and number. A row that finds none fails the job,
    for the deleted rows of its file would come back: the file has another size or more rows than
    the log says, or is spelled in another way than it was read by. So does a row that finds the
    piece of another place, by a hash or by a size that the log has wrong.

    Args:
        spark: the session of the rows.
        rows: have `FILE`, `ROW` and, where rows are found by it, `SIZE`.
        vectors: from `read_vectors`.
    """
    pieces = spark.createDataFrame(vectors.pieces)
    piece = sf.shiftright(sf.col(ROW), _CHUNK_BITS)
    if vectors.by_size:
        place = sf.shiftleft(sf.col(SIZE), _PIECE_BITS).bitwiseOR(piece)
    else:
        place = sf.xxhash64(sf.col(FILE), piece)
        pieces = pieces.withColumn(_KEY, sf.xxhash64(_FILE, _PIECE))
    kept = sf.expr(
        f"CASE WHEN {_FILE} IS NULL OR {_FILE} <> {FILE} "
        f"OR {_PIECE} <> shiftright({ROW}, {_CHUNK_BITS}) THEN CAST(raise_error(concat("
        f"'lakelog: no deletion vector for row ', {ROW}, ' of ', {FILE}, "
        f"': the log has another size, fewer rows or another spelling of it. If the file is what "
        f"was written, {store_keys.READ_PATH.name}=arrow reads it')) AS BOOLEAN) "
        f"WHEN {_WORDS} IS NULL THEN true ELSE "
        f"bit_get(get({_WORDS}, CAST(shiftright({ROW} & {_CHUNK - 1}, {_WORD_BITS}) AS INT)), "
        f"CAST({ROW} & 63 AS INT)) = 0 END"
    )
    joined = rows.join(sf.broadcast(pieces), place == sf.col(_KEY), "left")
    return joined.where(kept).drop(_FILE, _PIECE, _WORDS, _KEY)
