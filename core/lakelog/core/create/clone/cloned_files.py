"""Where a clone finds its files: at the source, or in copies of its own."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from lakelog.core.actions.z85 import z85_encoded
from lakelog.core.data.file_locations import DataPlaces
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError
from lakelog.core.paths import data_path, encode_path, is_local
from lakelog.core.portable.arrival import check_arrived
from lakelog.core.portable.made_files import make_folder
from lakelog.core.portable.partition_text import fitting_folder
from lakelog.core.progress import Progress
from lakelog.logstores.threads import WRITES, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import AddFile, DeletionVectorDescriptor
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.table_log import TableLog

_BARE: Final = "/!$&'()*+,;=:@~-._"
_CHUNK: Final = 8 << 20


def file_uri(place: str) -> str:
    """The `path` of an action for a file anywhere, as Spark spells it: `file:/x`, `s3a://b/x`."""
    if is_local(place):
        return "file:" + quote(place.removeprefix("file:"), safe=_BARE)
    root, slashes, rest = place.partition("://")
    authority, slash, path = rest.partition("/")
    if not slashes:
        return quote(place, safe=_BARE)
    return f"{root}://{authority}{slash}{quote(path, safe=_BARE)}"


def absolute_file(source: str, add: AddFile) -> AddFile:
    """A file of the source, with paths that lead there from anywhere.

    Args:
        source: the source's URI.
        add: as the source's log has it.
    """
    vector = add.deletion_vector
    if vector is not None:
        place = vector_path(_as_stored(vector), source)
        if place is not None:
            vector = replace(vector, storage_type="p", path_or_inline_dv=file_uri(place))
    return replace(add, path=file_uri(data_path(source, add.path)), deletion_vector=vector)


def _as_stored(vector: DeletionVectorDescriptor) -> dict[str, object]:
    return {"storageType": vector.storage_type, "pathOrInlineDv": vector.path_or_inline_dv}


def check_same_storage(source: TableLog, target: TableLog) -> None:
    """Refuse a shallow clone whose readers could not open the files of the source.

    Raises:
        DeltaAnalysisError: the two tables lie on different storages.
    """
    if _storage(source.table) == _storage(target.table):
        return
    raise DeltaAnalysisError(
        f"{target.table} can't be a shallow clone of {source.table}: its readers would have to "
        "open files of another storage. Clone to the same one, or copy the files with "
        "shallow=False.",
        table=target.table,
        source=source.table,
    )


def _storage(table: str) -> str:
    """The scheme, and the account or bucket."""
    if is_local(table):
        return "file"
    root, _, rest = table.partition("://")
    return f"{root}://{rest.partition('/')[0]}"


class FileCopies:
    """Copies the files of a source into the folder of a clone."""

    def __init__(self, source: TableLog, target: TableLog) -> None:
        """Copy nothing yet.

        Args:
            source: has the files.
            target: where they go.
        """
        self._source = source
        self._target = target
        self._vectors: dict[str, str] = {}
        self.paths: list[str] = []
        """What is or will be written, relative to the target; known after `planned`."""
        self._jobs: list[tuple[str, str]] = []

    def planned(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """The files as the clone will have them; each gets a name that nothing else has."""
        return [self._planned(each) for each in adds]

    def _planned(self, add: AddFile) -> AddFile:
        (place,) = DataPlaces(self._source.table).resolve([add.path])
        name = f"{uuid.uuid4()}-{place.rpartition('/')[2]}"
        folder = "" if add.path.startswith("/") or ":/" in add.path else _folder(add.path)
        fitting = fitting_folder(unquote(folder.rstrip("/")))
        if fitting != unquote(folder.rstrip("/")):  # the source's storage took more
            folder = f"{encode_path(fitting)}/"
        vector = add.deletion_vector
        if vector is not None:
            vector = self._vector(vector)
        path = f"{folder}{encode_path(name)}"
        self._job(place, data_path(self._target.table, path))
        return replace(add, path=path, deletion_vector=vector)

    def _vector(self, vector: DeletionVectorDescriptor) -> DeletionVectorDescriptor:
        place = vector_path(_as_stored(vector), self._source.table)
        if place is None:
            return vector
        if place not in self._vectors:
            new = uuid.uuid4()
            self._vectors[place] = z85_encoded(new.bytes)
            self._job(place, f"{self._target.table.rstrip('/')}/deletion_vector_{new}.bin")
        return replace(vector, storage_type="u", path_or_inline_dv=self._vectors[place])

    def _job(self, source: str, target: str) -> None:
        self._jobs.append((source, target))
        self.paths.append(target.removeprefix(f"{self._target.table.rstrip('/')}/"))

    def run(self, report: ProgressCallback) -> int:
        """Copy the files, several at once; return how many bytes.

        Args:
            report: called after each file.

        Raises:
            DataFileMissingError: the source lists a file that the storage does not have.
            OSError: a storage failed, or does not have a copy although it was acknowledged.
        """
        sizes = []
        copies = in_order(self._copy, self._jobs, WRITES, "lakelog-clone")
        for done, size in enumerate(copies, 1):
            sizes.append(size)
            report(Progress(text="copying", done=done, total=len(self._jobs), unit="files"))
        ours = self._target.store
        places = (ours.filesystem_path(target) for _, target in self._jobs)
        check_arrived(ours.filesystem, list(zip(places, sizes, strict=True)))
        return sum(sizes)

    def _copy(self, job: Sequence[str]) -> int:
        source, target = job
        theirs, ours = self._source.store, self._target.store
        place = ours.filesystem_path(target)
        root = ours.filesystem_path(self._target.table.rstrip("/"))
        make_folder(ours.filesystem, root, place[len(root) + 1 :].rpartition("/")[0])
        size = 0
        try:
            reader = theirs.filesystem.open_input_stream(theirs.filesystem_path(source))
        except FileNotFoundError:
            raise DataFileMissingError(
                f"the file {source} of {self._source.table} is missing, so the table can't be "
                "copied. Clone another version, or restore the file.",
                table=self._source.table,
                path=source,
            ) from None
        with reader, ours.filesystem.open_output_stream(place) as writer:
            while data := reader.read(_CHUNK):
                writer.write(data)
                size += len(data)
        return size


def _folder(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder + slash
