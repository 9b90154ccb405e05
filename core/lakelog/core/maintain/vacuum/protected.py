"""The files that have to stay, under every name that a storage may have for them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.actions.file_keys import canonical_paths
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.errors import CorruptLogError
from lakelog.core.paths import is_local
from lakelog.core.portable.made_files import link_on_the_way

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_PLACE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+:)?(?://[^/]*)?")


class ProtectedFiles:
    """Files of a table that must not be deleted; `in` takes a path relative to its folder.

    In doubt a file is among them. The log may name the table's own files by absolute paths, and
    their scheme, host or mount need not be those by which the table was opened; a path may be
    percent-encoded or, by mistake, not; a file system may not tell upper case from lower.
    """

    def __init__(self, table: str) -> None:
        """Protect nothing yet.

        Args:
            table: its URI.
        """
        self._table = table
        self._start = f"{table.rstrip('/')}/"
        self._ends = {_PLACE.sub("", self._start, count=1)}
        if is_local(table):
            self._ends.add(f"{os.path.realpath(table).rstrip('/')}/")
        self._straight: set[str] = set()
        """Folders that no link leads to."""
        self._new_paths: list[Any] = []
        self._new_vectors: list[Any] = []
        """Columns that were added and not looked at yet."""
        self._paths: set[str] = set()
        self._names: set[str] = set()
        """Of files elsewhere, or so it seems."""
        self._folded: pa.Array[Any] | None = None
        self._folders: set[str] | None = None

    def add(self, rows: pa.Table) -> None:
        """Protect what file actions name, and their deletion vectors.

        They are looked at when one of the others is used, together: a million files for which
        nothing would go cost nothing.

        Args:
            rows: with `path` and `deletion_vector`, as of `FILE_SCHEMA` or `TOMBSTONE_SCHEMA`.
        """
        self.add_paths(rows["path"])
        self.add_vectors(rows["deletion_vector"])

    def add_vectors(self, vectors: pa.ChunkedArray[Any]) -> None:
        """Protect the files of deletion vectors; see `add`."""
        self._new_vectors += vectors.chunks

    def add_paths(self, paths: pa.ChunkedArray[Any]) -> None:
        """Protect files by the `path` of their actions; see `add`."""
        self._new_paths += paths.chunks

    @property
    def paths(self) -> set[str]:
        """What to look a relative path up in.

        Raises:
            CorruptLogError: a deletion vector has no file that could be named.
        """
        if self._new_paths or self._new_vectors:
            self._folded = self._folders = None
            self._take_paths(pa.chunked_array(self._new_paths, pa.string()))
            if self._new_vectors:
                self._take_vectors(pa.chunked_array(self._new_vectors))
            # Not before: who asks again after an error gets it again.
            self._new_paths, self._new_vectors = [], []
        return self._paths

    def _take_vectors(self, vectors: pa.ChunkedArray[Any]) -> None:
        if vectors.null_count < len(vectors):
            # Many files share a file of vectors.
            named = vectors.filter(vectors.is_valid()).combine_chunks()
            kinds, texts = (pc.struct_field(named, n) for n in ("storageType", "pathOrInlineDv"))
            stored = pc.fill_null(pc.not_equal(kinds, "i"), True)
            pairs = zip(
                kinds.filter(stored).to_pylist(), texts.filter(stored).to_pylist(), strict=True
            )
            for kind, text in set(pairs):
                self._add_vector(kind, text)

    def _take_paths(self, paths: pa.ChunkedArray[Any]) -> None:
        canonical = canonical_paths(self._table, paths)
        self._paths.update(canonical.to_pylist())
        elsewhere = pc.or_(pc.starts_with(canonical, "/"), pc.match_substring(canonical, ":/"))
        for path in canonical.filter(elsewhere).to_pylist():
            self._add_place(path)
        if is_local(self._table):
            self._add_linked(canonical)
        # A writer that forgot to encode has a file of exactly this name.
        self._paths.update(paths.filter(pc.match_substring(paths, "%")).to_pylist())

    def _add_linked(self, paths: pa.ChunkedArray[Any]) -> None:
        """Protect files in folders that are links, as readers find them there, by their places."""
        inner = paths.filter(pc.match_substring(paths, "/"))
        folders = pc.replace_substring_regex(inner, "/[^/]*$", "")
        for folder in pc.unique(folders).to_pylist():
            if not folder or folder in self._straight or ":" in folder or folder.startswith("/"):
                continue
            if link_on_the_way(self._table, folder) is None:
                self._straight.add(folder)
                continue
            for path in inner.filter(pc.equal(folders, folder)).to_pylist():
                self._add_real(f"{self._start}{path}")

    def _add_vector(self, kind: str, text: str) -> None:
        try:
            place = vector_path({"storageType": kind, "pathOrInlineDv": text}, self._table)
        except (ValueError, TypeError) as error:
            raise CorruptLogError(
                f"the log of {self._table} names a deletion vector that can't be found: {error}. "
                "Nothing was deleted, because its file could have been among those.",
                table=self._table,
            ) from error
        if place is not None:
            self._add_place(place)

    def _add_place(self, place: str) -> None:
        """Protect a file by its absolute path, decoded."""
        if place.startswith(self._start):
            self._paths.add(place[len(self._start) :])
            return
        path = _PLACE.sub("", place, count=1)
        for end in self._ends:
            if path.startswith(end):
                self._paths.add(path[len(end) :])
        if is_local(self._table) and is_local(place):
            self._add_real(path)
        # A mount, an alias of the host, an access point: no spelling can be ruled out.
        self._names.add(place.rpartition("/")[2])

    def _add_real(self, path: str) -> None:
        real = os.path.realpath(path)
        self._paths.update(real[len(e) :] for e in self._ends if real.startswith(e))

    def __contains__(self, path: object) -> bool:
        """Whether a file has to stay."""
        return path in self.paths

    def without_doubt(self, paths: Iterable[str]) -> set[str]:
        """Those of some relative paths that mean none of the files, however they are spelled."""
        wanted = [*paths]
        if not wanted:
            return set()
        kept = self.paths
        found = {path for path in wanted if path not in kept}
        if self._names:
            found = {path for path in found if path.rpartition("/")[2] not in self._names}
        if not found or not is_local(self._table):
            return found
        if self._folded is None:
            self._folded = _folded(kept)
        likely = pc.is_in(_folded(found), value_set=self._folded)
        if not pc.any(likely).as_py():
            return found
        return {
            path for path, is_likely in zip(found, likely.to_pylist(), strict=True) if not is_likely
        }

    def needs_folder(self, folder: str) -> bool:
        """Whether a file that has to stay is in a folder, or should be."""
        kept = self.paths
        if self._folders is None:
            self._folders = set()
            for path in kept:
                while (path := path.rpartition("/")[0]) and path not in self._folders:
                    self._folders.add(path)
        return folder in self._folders


def _folded(paths: Collection[str]) -> pa.Array[Any]:
    return pc.utf8_lower(pc.utf8_normalize(array_of(list(paths), pa.string()), form="NFC"))
