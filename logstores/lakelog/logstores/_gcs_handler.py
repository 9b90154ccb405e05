"""Google Cloud Storage as a pyarrow file system, on google-cloud-storage.

Paths are `bucket/key`. Folders do not exist: making one does nothing, and one that holds an object
is there. Bulk bytes are repeated by the SDK's own rules: nothing here decides who commits.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog.logstores._gcs_connection import connection_of
from lakelog.logstores._gcs_errors import translated
from lakelog.logstores._objects import KeyTakenError, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores._gcs_conf import GCSSettings

__all__ = ["GCSHandler"]

_IN_MEMORY: Final = 16 << 20
"""Bytes of a file on its way that are kept in memory; beyond, it is on the local disk."""
_READ_AHEAD: Final = 1 << 20
_REPLACED: Final = "gs://{} was replaced while it was read"


class GCSHandler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """What pyarrow calls. It holds settings only, so that it may be pickled."""

    def __init__(self, settings: GCSSettings, budget: float) -> None:
        """Connect at the first use.

        Args:
            settings: endpoint and credentials.
            budget: seconds that an operation may be repeated.
        """
        self._settings = settings
        self._budget = budget

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GCSHandler) and other._settings == self._settings

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._settings)

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return "gcs"

    def normalize_path(self, path: str) -> str:
        """Nothing but trailing slashes is optional."""
        return path.rstrip("/")

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """What is at each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What is in a folder, or below it."""
        base = selector.base_dir.rstrip("/")
        bucket, key = _split(base)
        prefix = f"{key}/" if key else ""
        with _asking(base, "storage.objects.list"):
            found = self._listed(bucket, prefix, None if selector.recursive else "/")
            blobs = list(found)
            names = {blob.name: blob for blob in blobs if blob.name != prefix}
            folders = set(found.prefixes)
        if selector.recursive:
            folders = {f for name in names for f in _parents(name, prefix)}
        folders |= {name for name in names if name.endswith("/")}
        infos = [
            pafs.FileInfo(f"{bucket}/{folder.rstrip('/')}", pafs.FileType.Directory)
            for folder in sorted(folders)
        ]
        infos += [_file(blob, bucket) for name, blob in names.items() if not name.endswith("/")]
        if not (infos or blobs or selector.allow_not_found):
            raise FileNotFoundError(base)
        return infos

    def create_dir(self, path: str, recursive: bool) -> None:
        """Do nothing: there are no folders."""

    def delete_dir(self, path: str) -> None:
        """Remove all below a folder, and its marker object if it has one."""
        self.delete_dir_contents(path, missing_dir_ok=False)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Remove all below a folder."""
        bucket, key = _split(path.rstrip("/"))
        if not key:
            raise PermissionError("a bucket is never emptied as a whole")
        with _asking(path, "storage.objects.list and storage.objects.delete"):
            blobs = list(self._listed(bucket, f"{key}/", None))
            for blob in blobs:
                blob.delete(retry=self._retry, timeout=self._timeouts)
        if not (blobs or missing_dir_ok):
            raise FileNotFoundError(path)

    def delete_root_dir_contents(self) -> None:
        """Refuse: the root holds every bucket of the account."""
        raise PermissionError("the buckets of an account are never emptied")

    def delete_file(self, path: str) -> None:
        """Remove an object."""
        with _asking(path, "storage.objects.delete"):
            self._blob(path).delete(retry=self._retry, timeout=self._timeouts)

    def move(self, src: str, dest: str) -> None:
        """Copy, then delete: not atomic, and it replaces what is there."""
        self.copy_file(src, dest)
        self.delete_file(src)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy on the server's side."""
        with _asking(f"{src} to {dest}", "storage.objects.create"):
            target, source, token = self._blob(dest), self._blob(src), None
            while True:
                token, _, _ = target.rewrite(
                    source, token=token, retry=self._retry, timeout=self._timeouts
                )
                if token is None:
                    return

    def open_input_stream(self, path: str) -> Any:
        """The object from its start; random access comes with it."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The object as it is now: a later one of its name fails the next read."""
        blob = self._blob(path)
        with _asking(path, "storage.objects.get"):
            blob.reload(projection="noAcl", retry=self._retry, timeout=self._timeouts)
        ranges = _Ranges(self, path, int(blob.generation or 0), int(blob.size or 0))
        return pa.PythonFile(io.BufferedReader(ranges, _READ_AHEAD), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
        """An object that appears whole when the stream is closed."""
        return pa.PythonFile(_Sink(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        """Refuse: objects can't be appended to."""
        raise NotImplementedError(f"{path}: an object of Google Cloud Storage has no append")

    def download(self, path: str, start: int, end: int, generation: int) -> bytes:
        """The bytes from `start` up to `end`, of one generation.

        Raises:
            OSError: there is another generation by now, or the service failed.
        """
        # One that has been looked at names the host to ask; the conf's endpoint is the one to use.
        blob = self._blob(path)
        with _asking(path, "storage.objects.get"):
            data: bytes = blob.download_as_bytes(
                start=start,
                end=end - 1,
                # Another generation has other bytes: better no file than half of each.
                if_generation_match=generation,
                retry=self._retry,
                timeout=self._timeouts,
            )
        if int(blob.generation or 0) != generation:  # not every emulator minds the condition
            raise OSError(_REPLACED.format(path))
        return data

    def publish(self, path: str, data: Any, size: int) -> None:
        """Upload an open file under a path."""
        with _asking(path, "storage.objects.create"):
            self._blob(path).upload_from_file(
                data,
                rewind=True,
                size=size,
                content_type="application/octet-stream",
                retry=self._retry,
                timeout=self._timeouts,
            )

    @property
    def _retry(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY

        return DEFAULT_RETRY.with_timeout(self._budget)

    @property
    def _timeouts(self) -> tuple[float, float]:
        return (self._settings.timeout, self._settings.timeout)

    def _blob(self, path: str) -> Any:
        bucket, key = _split(path)
        if not key:
            raise IsADirectoryError(path)
        return connection_of(self._settings).bucket(bucket).blob(key)

    def _listed(self, bucket: str, prefix: str, delimiter: str | None, most: int = 0) -> Any:
        connection = connection_of(self._settings)
        return connection.client.list_blobs(
            connection.bucket(bucket),
            prefix=prefix or None,
            delimiter=delimiter,
            max_results=most or None,
            retry=self._retry,
            timeout=self._timeouts,
        )

    def _info(self, path: str) -> Any:
        bucket, key = _split(path.rstrip("/"))
        with _asking(path, "storage.objects.get and storage.objects.list"):
            if key:
                blob = connection_of(self._settings).bucket(bucket).blob(key)
                if blob.exists(retry=self._retry, timeout=self._timeouts):
                    blob.reload(projection="noAcl", retry=self._retry, timeout=self._timeouts)
                    return _file(blob, bucket)
            prefix = f"{key}/" if key else ""
            inside = any(True for _ in self._listed(bucket, prefix, None, most=1))
        kind = pafs.FileType.Directory if inside else pafs.FileType.NotFound
        return pafs.FileInfo(path, kind)


class _Ranges(io.RawIOBase):
    """One generation of an object, read by ranges."""

    def __init__(self, owner: GCSHandler, path: str, generation: int, size: int) -> None:
        super().__init__()
        self._owner, self._path = owner, path
        self._generation, self._size = generation, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        end = min(self._at + len(view), self._size)
        if end <= self._at:
            return 0
        data = self._owner.download(self._path, self._at, end, self._generation)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Sink(io.RawIOBase):
    """Bytes on their way, uploaded at the close."""

    def __init__(self, owner: GCSHandler, path: str) -> None:
        super().__init__()
        self._owner, self._path = owner, path
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._spool.write(data)

    def tell(self) -> int:
        return self._spool.tell()

    def close(self) -> None:
        if not self.closed:
            try:
                self._owner.publish(self._path, self._spool, self._spool.tell())
            finally:
                self._spool.close()
                super().close()


@contextmanager
def _asking(path: str, permission: str) -> Iterator[None]:
    """Errors of the service as `OSError`s, which is what pyarrow passes on."""
    from google.api_core.exceptions import RetryError

    try:
        with translated(f"gs://{path}", permission, conditional=True):
            try:
                yield
            except RetryError as error:  # the SDK's budget is spent: say what it last saw
                if error.cause is None:
                    raise
                raise error.cause from None
    except TryAgainError as error:
        raise OSError(str(error)) from error
    except KeyTakenError:
        raise OSError(_REPLACED.format(path)) from None


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key.rstrip("/")


def _parents(name: str, prefix: str) -> Iterator[str]:
    parts = name[len(prefix) :].split("/")[:-1]
    for count in range(1, len(parts) + 1):
        yield prefix + "/".join(parts[:count])


def _file(blob: Any, bucket: str) -> Any:
    return pafs.FileInfo(
        f"{bucket}/{blob.name}",
        pafs.FileType.File,
        size=int(blob.size or 0),
        mtime_ns=int(blob.updated.timestamp() * 1e9) if blob.updated else None,
    )
