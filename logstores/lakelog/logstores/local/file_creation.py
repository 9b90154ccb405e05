"""How a file comes to its name on a POSIX file system: whole, once, and for good.

Notation: F the folder, D(N) the draft of the file N in F.

1. WRITE    fill D(N), which no reader can mistake for N
2. FLUSH    fsync D(N): a name must never point to bytes that a crash can take back
3. PUBLISH  give D(N) the name N by a call that refuses when N exists
4. KEEP     fsync F: the name itself must survive a crash too

Step 3 has a ladder, because file systems differ. Each rung is one atomic system call:

    linkat of an anonymous file (O_TMPFILE)    a crash leaves nothing at all behind
    link of a named draft                      NFS, older overlay file systems, macOS
    renameat2 with RENAME_NOREPLACE            no hard links: vfat, exFAT, some FUSE

Below that the store refuses: plain rename(2) silently replaces a rival's file.
"""

# Pathlib has no descriptor-relative calls, and they are the point here.
# ruff: noqa: PTH102, PTH112, PTH120

from __future__ import annotations

import errno
import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from lakelog.logstores.errors import CommitOutcomeUnknownError, UnsafeLogStoreError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_O_TMPFILE: int = getattr(os, "O_TMPFILE", 0)
_O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
_RENAME_NOREPLACE = 1

_NO_ANONYMOUS_FILES = {errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOTSUP, errno.EOPNOTSUPP}
_NOT_SUPPORTED = {
    errno.EPERM,  # link(2): the file system has no hard links
    errno.EXDEV,
    errno.EINVAL,  # renameat2: the file system doesn't know the flag
    errno.ENOSYS,
    errno.EMLINK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
}
# FUSE and CIFS mounts answer so to the fsync of a folder; there is no better answer from them.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

_without_anonymous: set[int] = set()
"""Devices that refused the first rung. Advice only: a wrong entry costs a microsecond."""


def named(error: OSError, path: str) -> OSError:
    """The same error, of the same class, with the path that the user knows in its message."""
    return OSError(error.errno, error.strerror, path)


def sync(fd: int) -> None:
    """Bring a file to the disk. fsync on macOS stops at the disk's cache; F_FULLFSYNC doesn't."""
    import fcntl

    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
            return
        except OSError as error:
            # A network mount may lack it. A disk's error might not be said a second time.
            if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
                raise
    os.fsync(fd)


class Folder:
    """An open folder. Every call below is relative to it, so renaming it causes no race."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd: int = os.open(path or "/", os.O_RDONLY | os.O_DIRECTORY | _O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)

    @property
    def device(self) -> int:
        """The number of the file system that the folder lies on."""
        return os.fstat(self.fd).st_dev

    def holds(self, name: str) -> bool:
        """Whether the name is taken, by an entry of any kind."""
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def sync(self) -> None:
        """Bring the names in it to the disk.

        Raises:
            OSError: the disk refused.
        """
        try:
            sync(self.fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise named(error, self.path) from error

    def keep(self, target: str) -> None:
        """Step 4, after `target` got its name.

        Raises:
            CommitOutcomeUnknownError: the disk refused. Readers see the file already, so it
                can't be taken back, yet a crash may.
        """
        try:
            self.sync()
        except OSError as error:
            evidence = f"the file is in its folder, but flushing the folder failed ({error})"
            raise CommitOutcomeUnknownError(target, evidence) from error


class Draft:
    """The bytes of a file that has no name yet. Leaving the block discards what isn't named."""

    def __init__(self, folder: Folder, name: str, *, anonymous: bool) -> None:
        self._folder = folder
        self._name = name
        self.target: str = f"{folder.path}/{name}"
        self._temp: str | None = None
        self._fd = -1
        try:
            self._fd = self._open(anonymous)
        except OSError as error:
            raise named(error, self.target) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
        if self._temp is not None:
            with suppress(OSError):
                os.unlink(self._temp, dir_fd=self._folder.fd)

    def _open(self, anonymous: bool) -> int:
        device = self._folder.device
        if anonymous and _O_TMPFILE and device not in _without_anonymous:
            # A file without a name goes with its process: a killed writer leaves nothing to clean
            # up.
            flags = _O_TMPFILE | os.O_RDWR | _O_CLOEXEC
            try:
                return os.open(".", flags, 0o666, dir_fd=self._folder.fd)
            except OSError as error:
                if error.errno not in _NO_ANONYMOUS_FILES:
                    raise
                _without_anonymous.add(device)
        return self._open_named()

    def _open_named(self) -> int:
        # A leading dot sorts before every digit, so that listings of versions skip it.
        label = self._name if len(os.fsencode(self._name)) < 200 else "long"
        temp = f".{label}.{uuid.uuid4()}.tmp"
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | _O_CLOEXEC
        fd = os.open(temp, flags, 0o666, dir_fd=self._folder.fd)
        self._temp = temp
        return fd

    def append(self, data: bytes) -> None:
        """Step 1."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            raise named(error, self.target) from error

    def flush(self) -> None:
        """Step 2."""
        try:
            sync(self._fd)
        except OSError as error:
            raise named(error, self.target) from error

    def publish(self, *, single_writer: bool = False) -> None:
        """Step 3: take the name, or find it taken.

        Args:
            single_writer: the user guarantees it, so on a file system that has no exclusive
                call a look and a rename may do.

        Raises:
            FileExistsError: another writer has the name.
            UnsafeLogStoreError: no rung of the ladder holds on this file system.
        """
        refused: list[str] = []
        # Each refuses where the name is taken, in the kernel or in the server. rename(2) is not
        # among them: it replaces what another writer has just made.
        for rung in (self._link_anonymous, self._link, self._rename):
            try:
                if rung():
                    return
            except OSError as error:
                # NFS: the call may have worked and its answer got lost; a repeated request
                # then meets its own file.
                if self._has_name():
                    return
                if error.errno not in _NOT_SUPPORTED:
                    raise named(error, self.target) from error
                refused.append(f"{rung.__name__.strip('_')}: {error.strerror}")
        if not single_writer:
            raise _refusal(self.target, refused)
        self.take_name_unless_seen()

    def replace(self) -> None:
        """Step 3 of an overwrite: swap whole contents."""
        try:
            self._name_draft()
            os.replace(
                str(self._temp),
                self._name,
                src_dir_fd=self._folder.fd,
                dst_dir_fd=self._folder.fd,
            )
        except OSError as error:
            raise named(error, self.target) from error
        self._temp = None

    def take_name_unless_seen(self) -> None:
        """Look, then rename: for a single writer only."""
        if self._folder.holds(self._name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.target)
        self.replace()

    def _link_anonymous(self) -> bool:
        if self._temp is not None:
            return False
        try:
            # With dst_dir_fd CPython calls linkat(AT_SYMLINK_FOLLOW); without it, link(2),
            # which would link the symlink under /proc itself: EXDEV.
            source = f"/proc/self/fd/{self._fd}"
            os.link(source, self._name, dst_dir_fd=self._folder.fd, follow_symlinks=True)
        except FileNotFoundError:  # no /proc; or F is gone, which the next rung will meet
            return False
        return True

    def _link(self) -> bool:
        self._name_draft()
        here = self._folder.fd
        os.link(str(self._temp), self._name, src_dir_fd=here, dst_dir_fd=here)
        return True

    def _rename(self) -> bool:
        _rename_no_replace(self._folder.fd, str(self._temp), self._name)
        self._temp = None
        return True

    def _name_draft(self) -> None:
        """Turn an anonymous draft into a named one, for the rungs that need a name."""
        if self._temp is not None:
            return
        _without_anonymous.add(self._folder.device)
        source = self._fd
        self._fd = self._open_named()
        try:
            os.lseek(source, 0, os.SEEK_SET)
            while data := os.read(source, 1 << 20):
                self.append(data)
        finally:
            os.close(source)
        self.flush()

    def _has_name(self) -> bool:
        try:
            # By inode and not by name or bytes: two writers may commit the same lines.
            there = os.stat(self._name, dir_fd=self._folder.fd, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._fd))


def _refusal(target: str, refused: list[str]) -> UnsafeLogStoreError:
    return UnsafeLogStoreError(
        f"{target}: its file system can't create a file so that exactly one of several writers "
        f"succeeds ({'; '.join(refused)}). Put the table on a file system with hard links or "
        "renameat2(RENAME_NOREPLACE), or, if only one process ever writes it, set "
        "spark.lakelog.unsafe.singleWriter=true."
    )


def _rename_no_replace(folder: int, source: str, target: str) -> None:
    """renameat2(RENAME_NOREPLACE), which Python does not offer."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:  # macOS, or a C library older than 2018
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), target)
    ctypes.set_errno(0)
    if call(folder, os.fsencode(source), folder, os.fsencode(target), _RENAME_NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def make_folders(path: str) -> None:
    """Make a folder and its parents, each flushed into the folder that holds it.

    Raises:
        OSError: it can't be made, or something else has the name.
    """
    path = path.rstrip("/") or "/"
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folders(parent)
    try:
        os.mkdir(path)
    except FileExistsError:  # another writer was first, and may not have flushed it yet
        if not os.path.isdir(path):
            raise
    with Folder(parent) as folder:
        folder.sync()
