"""Stores that break one promise each when they die, are shared, stage files, or tell of errors.

`breaks` names the check of the kit that must catch the store. They are built on the stores that
keep all promises, and break theirs in the place where real ones did.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from lakelog.logstores import FileStatus, LocalLogStore, MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.fs


def gap() -> None:
    """A moment between a look and an act, as every network has one."""
    threading.Event().wait(0.002)


# Staging


class StagesInPlace(LocalLogStore):
    breaks: ClassVar[str] = "a_staged_file_is_published_whole_at_the_end"

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        try:
            yield self.filesystem, self.filesystem_path(path)
        except BaseException:
            os.unlink(path)
            raise


class NeverReplacesByStaging(LocalLogStore):
    """The rename of HDFS: a taken name makes it answer `false`, and nobody looks."""

    breaks: ClassVar[str] = "a_staged_file_is_published_whole_at_the_end"

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        draft = path + ".tmp"
        yield self.filesystem, draft
        if os.path.exists(path):
            os.unlink(draft)
        else:
            os.rename(draft, path)


class PublishesInAFinally(LocalLogStore):
    """Closing an upload publishes what there is (delta#7174)."""

    breaks: ClassVar[str] = "staging_that_fails_leaves_what_was"

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        draft = path + ".tmp"
        try:
            yield self.filesystem, draft
        finally:
            os.replace(draft, path)


class LeavesItsStagedDraft(LocalLogStore):
    breaks: ClassVar[str] = "staging_that_fails_leaves_what_was"

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        draft = path + ".tmp"
        yield self.filesystem, draft
        os.replace(draft, path)


# Dying


class CleansUpAfterExceptionsOnly(LocalLogStore):
    """`except Exception` does not catch Ctrl-C."""

    breaks: ClassVar[str] = "an_interrupt_leaves_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        folder, name = os.path.split(path)
        temp = f"{folder}/.{name}.tmp"
        try:
            with open(temp, "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            if overwrite:
                os.replace(temp, path)
            else:
                os.link(temp, path)
                os.unlink(temp)
        except Exception:
            os.unlink(temp)
            raise


class ReservesTheNameFirst(LocalLogStore):
    """An empty file keeps rivals away while the rest is written."""

    breaks: ClassVar[str] = "a_writer_that_is_killed_leaves_all_or_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if overwrite:
            super().write(path, lines, overwrite=True)
            return
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        try:
            super().write(path, lines, overwrite=True)
        except BaseException:
            os.unlink(path)
            raise


class LeavesItsLockBehind(LocalLogStore):
    """A lock that nobody breaks: whoever dies with it stops all others."""

    breaks: ClassVar[str] = "a_writer_that_is_killed_leaves_all_or_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        folder, name = os.path.split(path)
        lock = f"{folder}/.{name}.lock"
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        except FileExistsError as error:
            raise OSError(f"{path} is locked by another writer") from error
        try:
            super().write(path, lines, overwrite=overwrite)
        finally:
            os.unlink(lock)


class LeavesAVisibleRest(LocalLogStore):
    """What a crash leaves looks like a file of the log."""

    breaks: ClassVar[str] = "a_writer_that_is_killed_leaves_all_or_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        draft = f"{path}-{uuid.uuid4()}"
        try:
            with open(draft, "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            with open(draft, encoding="utf-8") as file:
                kept = file.read().splitlines()
            super().write(path, kept, overwrite=overwrite)
        finally:
            os.unlink(draft)


class ReplacesInTwoSteps(LocalLogStore):
    """Makes room for what it stages before it has it."""

    breaks: ClassVar[str] = "a_replacement_that_is_killed_leaves_the_old_or_the_new"

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        draft = f"{os.path.dirname(path)}/.{os.path.basename(path)}.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        yield self.filesystem, draft
        os.rename(draft, path)


# Sharing


class ReadsByReopening(LocalLogStore):
    """A ranged request for each piece, of whatever is there by then."""

    breaks: ClassVar[str] = "a_reading_outlives_an_overwrite"

    def read(self, path: str) -> Iterator[str]:
        rest, at = b"", 0
        while True:
            with open(path, "rb") as file:
                file.seek(at)
                piece = file.read(1 << 16)
            at += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode() for line in lines)
            if not piece:
                return


class KeepsThePathInItself(MemoryLogStore):
    breaks: ClassVar[str] = "threads_share_one_instance"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        vars(self)["path"] = path
        gap()
        super().write(vars(self)["path"], lines, overwrite=overwrite)


class IsBoundToItsProcess(LocalLogStore):
    """A client whose connections and threads stay behind in the parent."""

    breaks: ClassVar[str] = "a_forked_store_works"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if vars(self).setdefault("pid", os.getpid()) != os.getpid():
            raise RuntimeError("this client belongs to another process")
        super().write(path, lines, overwrite=overwrite)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "pid"}


class DiesInAFork(LocalLogStore):
    """Native code that ends the process when its threads are gone."""

    breaks: ClassVar[str] = "a_forked_store_works"

    owner: ClassVar[list[int]] = []

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self.owner.append(os.getpid())
        if self.owner[0] != os.getpid():
            os._exit(9)
        super().write(path, lines, overwrite=overwrite)


class CachesListingsInTheProcess(LocalLogStore):
    """Forgets its cache when this process writes; others write too."""

    breaks: ClassVar[str] = "another_process_sees_every_write_before_it"

    cache: ClassVar[dict[str, list[FileStatus]]] = {}

    def list_from(self, path: str) -> Iterator[FileStatus]:
        if path not in self.cache:
            self.cache[path] = list(super().list_from(path))
        return iter(self.cache[path])

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite)
        self.cache.clear()


# Telling


class TellsItsConf(MemoryLogStore):
    breaks: ClassVar[str] = "no_error_shows_a_secret"

    def read(self, path: str) -> Iterator[str]:
        try:
            yield from super().read(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{path} with {dict(self.conf)}") from error


class ChainsAnErrorWithASecret(MemoryLogStore):
    """Its own message is clean; the one that it came from is printed above it."""

    breaks: ClassVar[str] = "no_error_shows_a_secret"

    def read(self, path: str) -> Iterator[str]:
        try:
            yield from super().read(path)
        except FileNotFoundError as error:
            secret = self.conf.get("spark.hadoop.fs.azure.account.key", "")
            raise FileNotFoundError(path) from ValueError(f"AccountKey={secret}", error)
