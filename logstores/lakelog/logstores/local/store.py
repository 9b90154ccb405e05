"""The log on a local file system: exclusive across threads, processes and store instances."""

# Pathlib costs more than the system calls on this path.
# ruff: noqa: PTH123

from __future__ import annotations

import errno
import os
from stat import S_ISDIR
from typing import TYPE_CHECKING

from lakelog.logstores import keys
from lakelog.logstores.contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores.deletion import delete_each
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.limits import check_length, log_limit
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog.logstores.local.file_creation import Draft, Folder, make_folders
from lakelog.logstores.locations import shown
from lakelog.logstores.systems import need

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow.fs

_CAPABILITIES = Capabilities(
    exclusive_create=Scope.HOST,
    partial_write_visible=False,
    atomic_overwrite=True,
    consistent_listing=True,
    durable=True,
)

_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)
"""Why a link can't be followed, whatever else the disk can do."""
_MOST_COMMITS = 1 << 16
"""Bytes."""


class LocalLogStore(LogStore):
    """A log on a local file system. The default for plain paths and `file:` URIs.

    A commit is written under no name, flushed, linked to its name by a call that refuses when
    the name is taken, and its folder is flushed. So exactly one writer of the host wins, no
    reader sees a part, a crash takes back nothing that was acknowledged, and a full disk leaves
    nothing behind. On NFS the link is made by the server, but nothing is promised beyond the
    host.

    It is for POSIX: Windows can't flush a folder, and its constructor refuses there.

    Reads no conf but `spark.lakelog.unsafe.singleWriter`, and that only on a file system that
    has neither hard links nor renameat2.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        need(os, "O_DIRECTORY", "a table on the local disk, whose folders are flushed")
        super().__init__(conf)

    def read(self, path: str) -> Iterator[str]:  # noqa: D102  # the contract says it
        return _read(local_path(path), log_limit(self.conf))

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        with open(local_path(path), "rb", buffering=0) as file:
            begin: bytes = file.read(_MOST_COMMITS)
            # To ask for the length of each commit would be a tenth of the time for a small one.
            rest = file.read(1)
            if not rest:
                return begin
            check_length(path, os.fstat(file.fileno()).st_size, log_limit(self.conf))
            return b"".join((begin, rest, file.readall()))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:  # noqa: D102
        target = local_path(path)
        folder_path, _, name = target.rpartition("/")
        if not name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        with Folder(folder_path) as folder:
            if not overwrite and folder.holds(name):  # losers of an old race flush nothing
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            # O_EXCL on the name itself would exclude other writers as well, but readers would see
            # the file while it grows, and a crash would leave half a commit under a name that no
            # later writer may take.
            with Draft(folder, name, anonymous=not overwrite) as draft:
                for chunk in encode_lines(lines):
                    draft.append(chunk)
                # Bytes first, then the name, then the folder: in any other order a crash may leave
                # a name without bytes, or take back a commit that was acknowledged.
                draft.flush()
                if overwrite:
                    draft.replace()
                else:
                    promised = keys.SINGLE_WRITER.name in self.conf
                    draft.publish(single_writer=promised and keys.SINGLE_WRITER.of(self.conf))
            # Behind the block: from here on the file is public, and a failure can't mean that
            # nothing was written.
            folder.keep(target)

    def list_from(self, path: str) -> Iterator[FileStatus]:  # noqa: D102
        # The spelling of the answer is that of the question, whatever the two spellings are.
        shown, slash, start = path.rpartition("/")
        folder = local_path(path).rpartition("/")[0] or "/"
        with os.scandir(folder) as entries:
            found = [(entry.name, entry) for entry in entries if entry.name >= start]
        found.sort(key=_first)
        return _statuses(shown + slash, found)

    @property
    def capabilities(self) -> Capabilities:  # noqa: D102
        return _CAPABILITIES

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:  # noqa: D102
        import pyarrow.fs

        return pyarrow.fs.LocalFileSystem()

    def filesystem_path(self, path: str) -> str:  # noqa: D102
        return local_path(path)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:  # noqa: D102
        return delete_each(paths, lambda path: os.unlink(local_path(path)))  # noqa: PTH108

    def create_folder(self, path: str) -> None:  # noqa: D102
        make_folders(local_path(path))


def local_path(uri: str) -> str:
    """Translate `file:/x`, `file:///x`, `file://localhost/x` to `/x`; leave `/x` as it is.

    Nothing is percent-decoded: `%20` in a URI of a store is those three characters.

    Raises:
        LogStoreConfError: another scheme, another host, or a relative path.
    """
    if uri.startswith("/"):
        return uri
    scheme, _, rest = uri.partition(":")
    if scheme.lower() == "file" and rest.startswith("/"):
        if not rest.startswith("//"):
            return rest
        host, slash, path = rest[2:].partition("/")
        if slash and host in ("", "localhost"):
            return "/" + path
    raise LogStoreConfError(
        f"{shown(uri)} is not a path of the local file system: give an absolute path, or file:///path"
    )


def _read(path: str, limit: int) -> Iterator[str]:
    with open(path, "rb", buffering=1 << 18) as file:
        check_length(path, os.fstat(file.fileno()).st_size, limit)
        yield from decode_lines(file)


def _first(pair: tuple[str, os.DirEntry[str]]) -> str:
    return pair[0]


def _statuses(prefix: str, found: list[tuple[str, os.DirEntry[str]]]) -> Iterator[FileStatus]:
    """Stat only what the caller consumes: a log of 10 000 commits is mostly skipped."""
    for name, entry in found:
        try:
            stat = _stat(entry)
        except FileNotFoundError:  # removed since it was listed
            continue
        is_directory = S_ISDIR(stat.st_mode)
        length = 0 if is_directory else stat.st_size
        yield FileStatus(prefix + name, length, stat.st_mtime_ns // 1_000_000, is_directory)


def _stat(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat()
    except OSError as error:
        if error.errno not in _LEADS_NOWHERE or not entry.is_symlink():
            raise
        return entry.stat(follow_symlinks=False)  # such a link still takes the name
