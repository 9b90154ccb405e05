"""The keys of replay as columns: canonical path, and id of the deletion vector."""

from __future__ import annotations

import re
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.z85 import z85_encoded
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.paths import canonical_path, path_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.actions.objects import DeletionVectorDescriptor

# A URI path has none unencoded, and a decoded one can't be in a file's name.
_SEPARATOR = "\0"

# Up to this many, a loop is cheaper than the import of Arrow's functions.
_FEW_PATHS = 1000

# Up to this many, cutting the rows out is cheaper than copying the rest.
_FEW_ROWS = 32


def file_keys(table: str, rows: pa.Table) -> pa.ChunkedArray[Any]:
    """The key of each row: equal for two rows exactly if they mean the same file.

    Args:
        table: the table's URI.
        rows: of `FILE_SCHEMA` or `TOMBSTONE_SCHEMA`.
    """
    paths = canonical_paths(table, rows["path"])
    return _with_vectors(table, paths, rows["deletion_vector"])


def canonical_paths(table: str, paths: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """`canonical_path` of each.

    Args:
        table: the table's URI.
        paths: a column of `path`s of actions.
    """
    mask = _may_need_decoding(paths)
    return paths if mask is None else _canonical(table, paths, mask)


def are_among(
    table: str, paths: pa.ChunkedArray[Any], files: Iterable[str]
) -> pa.ChunkedArray[Any]:
    """Whether each path means one of some files, however either is spelled.

    Args:
        table: the table's URI.
        paths: a column of `path`s of actions.
        files: `path`s too.
    """
    wanted = set()
    for path in files:
        place = path_key(table, path)
        wanted |= {place, place.removeprefix(f"{table.rstrip('/')}/")}
    paths = canonical_paths(table, paths)
    return _in(paths, pa.chunked_array([array_of(sorted(wanted), pa.string())]))


def vector_key(table: str, vector: DeletionVectorDescriptor | None) -> str | None:
    """The part of `file_keys` for a deletion vector."""
    if vector is None:
        return None
    at = "" if vector.offset is None else f"@{vector.offset}"
    return vector_file_key(table, vector.storage_type, vector.path_or_inline_dv) + at


def rows_without(table: str, rows: pa.Table, keys: pa.ChunkedArray[Any]) -> pa.Table:
    """The rows whose key is not among `keys`; much cheaper than `file_keys` of all rows."""
    if not rows.num_rows or not len(keys):
        return rows
    paths = rows["path"]
    mask = _may_need_decoding(paths)
    if mask is not None:
        # Decoding is slow, and most rows are ruled out without it: a file's name is rarely escaped.
        # The vector goes first: its id may hold slashes too.
        last = pc.replace_substring_regex(keys, r"(?s)\x00.*$", "")
        last = pc.replace_substring_regex(last, r"(?s)^.*/", "")
        names = pc.replace_substring_regex(paths, r"(?s)^.*/", "")
        near = pc.or_(_in(names, last), pc.match_substring_regex(names, r"%|^[.]{0,2}$"))
        paths = _canonical(table, paths, pc.and_(mask, near))
    own = _with_vectors(table, paths, rows["deletion_vector"])
    if len(own) + len(keys) <= _FEW_PATHS:
        wanted = set(keys.to_pylist())
        few = [row for row, key in enumerate(own.to_pylist()) if key in wanted]
        if len(few) <= _FEW_ROWS:
            return _sliced_without(rows, few) if few else rows
    gone = _in(own, keys)
    found = pc.indices_nonzero(gone)
    if len(found) > _FEW_ROWS:
        return rows.filter(pc.invert(gone))
    return _sliced_without(rows, found.to_pylist())


def _sliced_without(rows: pa.Table, gone: list[int]) -> pa.Table:
    """Leave rows out without copying the others."""
    bounds = [-1, *gone, rows.num_rows]
    parts = [
        rows.slice(start + 1, end - start - 1) for start, end in pairwise(bounds) if end - start > 1
    ]
    return pa.concat_tables(parts) if parts else rows.slice(0, 0)


def _in(values: pa.ChunkedArray[Any], wanted: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    return pc.is_in(values, value_set=wanted)


def _may_need_decoding(paths: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any] | None:
    """Whether each path may differ from its canonical spelling; `None` if none does."""
    data = [_raw_bytes(chunk) for chunk in paths.chunks]
    escaped = any(b"%" in each for each in data)
    scheme = any(b":/" in each for each in data)
    dotted = any(b"/." in each or b"//" in each for each in data)
    # Without `pyarrow.compute`, whose import is a tenth of what opening a small table takes.
    few = len(paths) <= _FEW_PATHS and not (escaped or scheme or dotted)
    if few and not any(path and path[0] in "/." for path in paths.to_pylist()):
        return None
    rooted = pc.or_(pc.starts_with(paths, "/"), pc.starts_with(paths, "."))
    if not (escaped or scheme or dotted or pc.any(rooted).as_py()):
        return None
    if dotted:
        rooted = pc.or_(rooted, pc.match_substring_regex(paths, "//|/[.]"))
    if escaped:
        rooted = pc.or_(rooted, pc.match_substring(paths, "%"))
    return pc.or_(rooted, pc.match_substring(paths, ":/")) if scheme else rooted


def _raw_bytes(chunk: pa.StringArray) -> bytes:
    """All text of a chunk: `in` over it is many times faster than a kernel row by row."""
    data = chunk.buffers()[2]
    if data is None or not len(chunk):
        return b""
    # A slice shares its buffer; other rows' text must not be read again for each slice.
    offsets = memoryview(chunk.buffers()[1]).cast("i")
    return bytes(memoryview(data)[offsets[chunk.offset] : offsets[chunk.offset + len(chunk)]])


def _canonical(
    table: str, paths: pa.ChunkedArray[Any], mask: pa.ChunkedArray[Any]
) -> pa.ChunkedArray[Any]:
    decoded = [canonical_path(table, path) for path in paths.filter(mask).to_pylist()]
    # `replace_with_mask` wants the mask in the shape of the values.
    flat = paths.combine_chunks() if paths.num_chunks != 1 else paths.chunk(0)
    mask = mask.combine_chunks() if mask.num_chunks != 1 else mask.chunk(0)
    return _chunked(pc.replace_with_mask(flat, mask, array_of(decoded, pa.string())))


def _with_vectors(
    table: str, paths: pa.ChunkedArray[Any], vectors: pa.ChunkedArray[Any]
) -> pa.ChunkedArray[Any]:
    if vectors.null_count == len(vectors):
        return paths
    flat = _chunked(vectors).combine_chunks()
    offset = pc.struct_field(flat, "offset").cast(pa.string())
    at = pc.if_else(
        offset.is_valid(), pc.binary_join_element_wise("@", pc.fill_null(offset, ""), ""), ""
    )
    ids = pc.binary_join_element_wise(_vector_files(table, flat), at, "")
    plain = _chunked(paths).combine_chunks()
    keyed = pc.binary_join_element_wise(plain, pc.fill_null(ids, ""), _SEPARATOR)
    return _chunked(pc.if_else(flat.is_valid(), keyed, plain))


def _vector_files(table: str, vectors: pa.Array[Any]) -> pa.Array[Any]:
    """`vector_file_key` of every row."""
    kinds, texts = (
        pc.struct_field(vectors, "storageType"),
        pc.struct_field(vectors, "pathOrInlineDv"),
    )
    keys = pc.binary_join_element_wise(kinds, texts, "")
    named = pc.fill_null(pc.equal(kinds, "p"), False)
    if not named.true_count:
        return keys
    # Many files share a file of vectors.
    own = texts.filter(named).dictionary_encode()
    files = [vector_file_key(table, "p", text) for text in own.dictionary.to_pylist()]
    return pc.replace_with_mask(keys, named, array_of(files, pa.string()).take(own.indices))


def _chunked(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


_VECTOR_NAME = re.compile(
    r"(?P<prefix>[^/]*)/?deletion_vector_"
    r"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.bin"
)


def vector_file_key(table: str, kind: str, text: str) -> str:
    """A key that is equal for all names of one file of vectors; for an inline vector its text.

    A vector named by its path (`p`) is the same as one named by its id (`u`), where the path is
    that of the table's own file.

    Args:
        table: the table's URI.
        kind: the descriptor's `storageType`.
        text: its `pathOrInlineDv`.
    """
    if kind != "p":
        return kind + text
    path = path_key(table, text)
    own = _VECTOR_NAME.fullmatch(path.removeprefix(f"{table.rstrip('/')}/"))
    if own is None:
        return kind + path
    return f"u{own['prefix']}{z85_encoded(uuid.UUID(own['id']).bytes)}"
