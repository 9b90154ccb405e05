"""Writing deletion vectors: bitmaps into files of several, and their descriptors for the log.

PROTOCOL.md, "Deletion Vectors". A file is `deletion_vector_<uuid>.bin` beside the table's data, as
delta-spark writes it: a version byte, then for each vector its size, the bitmap and a checksum.
Nothing here commits: a file that no commit names is an orphan that `VACUUM` may delete.
"""

from __future__ import annotations

import secrets
import string
import struct
import uuid
import zlib
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions import DeletionVectorDescriptor
from lakelog.core.actions.z85 import z85_encoded
from lakelog.core.deletion_vectors.roaring import bitmap_of
from lakelog.core.deletion_vectors.stored_vectors import FILE_VERSION
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.portable.arrival import check_arrived
from lakelog.core.portable.made_files import delete_made, make_folder
from lakelog.core.portable.syncing import sync_files
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.conf import DeltaConf
    from lakelog.core.features.table_properties import TableProperties
    from lakelog.logstores import LogStore

_LETTERS = string.ascii_letters + string.digits


class VectorWriter:
    """Takes vectors, and packs them into as few files as possible.

    Vectors of at most `spark.lakelog.deletionVectors.maxInlineBytes` (default 0: none) go into the
    log itself, which saves readers a request each and makes the log grow.
    """

    def __init__(
        self, store: LogStore, table: str, properties: TableProperties, conf: DeltaConf
    ) -> None:
        """Write nothing yet.

        Args:
            store: of the table.
            table: its URI.
            properties: `delta.randomizeFilePrefixes` gives each file a folder of its own.
            conf: `deletionVectors.packing.targetSize` ends a file (bytes, default 2 MiB).

        Raises:
            DeltaAnalysisError: a conf that is not a number of bytes.
        """
        self._filesystem = store.filesystem
        self._root = store.filesystem_path(table)
        self._prefix_length = (
            properties.random_prefix_length if properties.randomize_file_prefixes else 0
        )
        self._target = conf.read(keys.VECTOR_FILE_SIZE)
        self._max_inline = conf.read(store_keys.MAX_INLINE)
        if self._max_inline < 0:
            raise DeltaAnalysisError(
                f"the conf {store_keys.MAX_INLINE} must be a number of bytes, but it is "
                f"{self._max_inline}",
                key=store_keys.MAX_INLINE.name,
            )
        self._made: list[str] = []
        self._sizes: list[tuple[str, int]] = []
        self._content = bytearray()
        self._start()

    def add(self, marks: pa.BooleanArray) -> DeletionVectorDescriptor:
        """Take a vector; its file is there after `close`.

        Args:
            marks: for each row of the data file, by position, whether it is deleted; some are.
        """
        data = bitmap_of(marks)
        cardinality = marks.true_count
        # Off by default, as in Delta: what is inline is read and checkpointed by everybody who
        # opens the table.
        if len(data) <= self._max_inline:
            return DeletionVectorDescriptor(
                storage_type="i",
                path_or_inline_dv=z85_encoded(data),
                size_in_bytes=len(data),
                cardinality=cardinality,
            )
        # Several vectors in a file: an object store charges by the file, and a DELETE touches many
        # files a little.
        if self._content and len(self._content) + len(data) > self._target:
            self._end()
        self._content = self._content or bytearray([FILE_VERSION])
        found = DeletionVectorDescriptor(
            storage_type="u",
            path_or_inline_dv=self._prefix + z85_encoded(self._name.bytes),
            offset=len(self._content),
            size_in_bytes=len(data),
            cardinality=cardinality,
        )
        self._content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        return found

    def close(self) -> None:
        """Write what is left.

        Raises:
            OSError: the storage refused, or does not have a file although it was acknowledged.
        """
        if self._content:
            self._end()
        check_arrived(self._filesystem, self._sizes)
        self._sizes = []

    def abort(self) -> None:
        """Delete the files made so far. Never call it after a commit that may have landed."""
        self._content = bytearray()
        delete_made(self._filesystem, self._root, self._made)

    def _start(self) -> None:
        self._name = uuid.uuid4()
        self._prefix = "".join(secrets.choice(_LETTERS) for _ in range(self._prefix_length))

    def _end(self) -> None:
        name = f"deletion_vector_{self._name}.bin"
        path = f"{self._prefix}/{name}" if self._prefix else name
        local = self._filesystem.type_name == "local"
        if self._prefix and local:
            make_folder(self._filesystem, self._root, self._prefix)
        # Before the file is opened: one that fails half-way is there and has to be deleted too.
        self._made.append(path)
        with self._filesystem.open_output_stream(f"{self._root}/{path}") as sink:
            sink.write(bytes(self._content))
        self._sizes.append((f"{self._root}/{path}", len(self._content)))
        if local:
            # The commit is flushed to the disk; what it names must not be lost in the crash that it
            # survives.
            sync_files(self._root, [path])
        self._content = bytearray()
        self._start()
