"""Deletion vectors: where one is stored, and which rows of its data file are left.

PROTOCOL.md, "Deletion Vectors". Imports pyarrow only, for the engines' workers that read files.
"""

from __future__ import annotations

import posixpath
import struct
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.actions.z85 import z85_decoded
from lakelog.core.deletion_vectors.roaring import rows_marked
from lakelog.core.errors import READ_NEWER, DataFileError, listed_file
from lakelog.core.paths import data_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyarrow.fs import FileSystem

UUID_CHARACTERS = 20

_BITMAP_HEAD = 1 << 10

_CONTAINER_ROWS = 1 << 16

_CONTAINER_BYTES = 1 << 18
"""Twice what the rows of a container take where a writer stores them in the longest form."""

FILE_VERSION = 1
"""The first byte of a file of vectors."""


def vector_path(descriptor: Mapping[str, Any], table: str) -> str | None:
    """Where the storage has a vector's file; `None` for a vector that the log itself holds.

    Args:
        descriptor: a value of `lakelog.core.actions.file_table.DELETION_VECTOR`.
        table: the table's URI.

    Raises:
        ValueError: a kind of storage that the protocol does not have, or an invalid name.
    """
    kind, text = descriptor["storageType"], descriptor["pathOrInlineDv"]
    match kind:
        case "i":
            return None
        case "p":
            return data_path(table, text)
        case "u" if len(text) >= UUID_CHARACTERS:
            prefix = text[:-UUID_CHARACTERS]
            if "/" in prefix or prefix in (".", ".."):
                raise ValueError(f"its prefix {prefix!r} is not a folder of the table")
            name = uuid.UUID(bytes=z85_decoded(text[-UUID_CHARACTERS:]))
            return posixpath.join(table, prefix, f"deletion_vector_{name}.bin")
    raise ValueError(
        f"storage type {kind!r} with {text!r} is not the location of a deletion vector"
    )


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """One vector, found but not read."""

    table: str
    """For messages, as is `version`."""
    version: int
    data_file: str
    """Whose rows it deletes."""
    path: str | None
    """Where the storage has it; `None`: inline."""
    place: str
    """`path` as its file system writes it; for an inline vector its text."""
    offset: int
    size: int
    """Bytes of the bitmap."""
    cardinality: int

    @classmethod
    def from_descriptor(
        cls, descriptor: Mapping[str, Any], place: str, table: str, version: int, data_file: str
    ) -> DeletionVector:
        """Make one of a value of `DELETION_VECTOR`, whose `vector_path` is at `place`."""
        path = vector_path(descriptor, table)
        return cls(
            table=table,
            version=version,
            data_file=data_file,
            path=path,
            place=descriptor["pathOrInlineDv"] if path is None else place,
            offset=descriptor["offset"] or 0,
            size=descriptor["sizeInBytes"],
            cardinality=descriptor["cardinality"],
        )

    def deleted(self, filesystem: FileSystem, rows: int) -> pa.BooleanArray:
        """For each row of the data file, by position, whether it is deleted.

        Args:
            filesystem: has the vector's file; not used for an inline vector.
            rows: of the data file.

        Raises:
            DataFileMissingError: the vector's file does not exist.
            DataFileError: the vector is damaged, or is of another data file.
        """
        try:
            # Before the memory is asked for: sizes in a log may be anything.
            self._check_size(rows)
            data = self._inline() if self.path is None else self._stored(filesystem)
            marks, count = rows_marked(data, rows)
            # The last check, after size and checksum: it also finds a whole bitmap that is another
            # file's.
            if count != self.cardinality:
                raise ValueError(f"it has {count} rows, but the log says {self.cardinality}")
        except ValueError as exc:
            where = "in the log" if self.path is None else f"{self.path} at byte {self.offset}"
            raise DataFileError(
                f"the deletion vector ({where}) of the data file {self.data_file}, in version "
                f"{self.version} of {self.table}, can't be trusted: {exc}. Without it, deleted "
                "rows would come back; restore the file, or read another version.",
                table=self.table,
                path=self.path or self.data_file,
                version=self.version,
            ) from exc
        return marks

    def _check_size(self, rows: int) -> None:
        """Refuse a size in the log that no bitmap of so many rows can have."""
        most = _BITMAP_HEAD + (rows // _CONTAINER_ROWS + 1) * _CONTAINER_BYTES
        if not 0 <= self.size <= most or self.offset < 0:
            raise ValueError(
                f"the log says that it has {self.size} bytes at byte {self.offset}, but one for "
                f"{rows} rows has at most {most}"
            )

    def _inline(self) -> bytes:
        data = z85_decoded(self.place)
        if not 0 <= len(data) - self.size < 4:
            raise ValueError(f"it has {len(data)} bytes, but the log says {self.size}")
        return data[: self.size]

    def _stored(self, filesystem: FileSystem) -> bytes:
        # The size precedes the bitmap and a checksum follows it; the first vector of a file follows
        # the file's version, which is read with it at no extra request.
        start = self.offset if self.offset > 1 else 0
        what = f"deletion vector {self.path} of the data file {self.data_file}"
        with (
            listed_file(self.path, self.table, self.version, READ_NEWER, what=what),
            filesystem.open_input_file(self.place) as file,
        ):
            # The memory asked for is allocated before the file turns out to be shorter.
            ends, length = self.offset + self.size + 8, file.size()
            if ends > length:
                raise ValueError(f"its file ends within it, after {length} bytes")
            data: bytes = file.read_at(ends - start, start)
        if start == 0 and self.offset:
            if data[:1] and data[0] != FILE_VERSION:
                raise ValueError(
                    f"its file is of version {data[0]}, but only {FILE_VERSION} is supported"
                )
            data = data[1:]
        if len(data) < self.size + 8:
            raise ValueError(f"its file ends within it, after {start + len(data)} bytes")
        (size,) = struct.unpack_from(">i", data)
        if size != self.size:
            raise ValueError(f"its file says {size} bytes, but the log says {self.size}")
        bitmap = data[4 : 4 + size]
        (checksum,) = struct.unpack_from(">I", data, 4 + size)
        if zlib.crc32(bitmap) != checksum:
            raise ValueError("its checksum does not match")
        return bitmap
