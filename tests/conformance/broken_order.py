"""Stores that break one promise each in listing, declaring or racing.

`breaks` names the check of the kit that must catch the store. They are built on the stores that
keep all promises, and break theirs in the place where real ones did.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from lakelog.logstores import Capabilities, FileStatus, LocalLogStore, MemoryLogStore, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def gap() -> None:
    """A moment between a look and an act, as every network has one."""
    threading.Event().wait(0.002)


def text_of(store: MemoryLogStore, path: str) -> str:
    try:
        with store.filesystem.open_input_stream(store.filesystem_path(path)) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        return ""


# Listing


class ListsInReverse(MemoryLogStore):
    breaks: ClassVar[str] = "a_listing_is_ordered_by_name"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(list(super().list_from(path))[::-1])


class ListsInUtf16Order(MemoryLogStore):
    """Azurite, and Java's `compareTo`."""

    breaks: ClassVar[str] = "a_listing_is_ordered_by_name"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        entries = list(super().list_from(path))
        return iter(sorted(entries, key=lambda entry: entry.name.encode("utf-16-be")))


class ListsEverything(MemoryLogStore):
    breaks: ClassVar[str] = "a_listing_starts_at_the_name_given"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return super().list_from(path.rpartition("/")[0] + "/")


class ListsAfterTheName(MemoryLogStore):
    """S3's `StartAfter`, taken as it is."""

    breaks: ClassVar[str] = "a_listing_starts_at_the_name_given"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (entry for entry in super().list_from(path) if entry.path != path)


class ListsNothingWhereTheNameIsMissing(MemoryLogStore):
    breaks: ClassVar[str] = "a_listing_starts_at_the_name_given"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        entries = list(super().list_from(path))
        named = not path.endswith("/")
        return iter([] if named and path not in [entry.path for entry in entries] else entries)


class ListsOnePage(MemoryLogStore):
    breaks: ClassVar[str] = "a_long_listing_is_complete"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(list(super().list_from(path))[:1000])


class FiltersOnlyTheFirstPage(MemoryLogStore):
    """Takes a page, and then what is wanted of it."""

    breaks: ClassVar[str] = "a_long_listing_is_complete"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        folder, _, start = path.rpartition("/")
        page = list(super().list_from(folder + "/"))
        for first in range(0, len(page), 1000):
            kept = [entry for entry in page[first : first + 1000] if entry.name >= start]
            if not kept:
                return
            yield from kept


class CachesListings(MemoryLogStore):
    breaks: ClassVar[str] = "a_listing_includes_every_write_before_it"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        cache: dict[str, list[FileStatus]] = vars(self).setdefault("cache", {})
        return iter(cache.setdefault(path, list(super().list_from(path))))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite)
        vars(self).setdefault("cache", {}).clear()


class TellsSecondsForMilliseconds(MemoryLogStore):
    breaks: ClassVar[str] = "entries_tell_size_time_and_path"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for entry in super().list_from(path):
            yield replace(entry, modification_time=entry.modification_time // 1000)


class TellsLengthInCharacters(MemoryLogStore):
    breaks: ClassVar[str] = "entries_tell_size_time_and_path"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for entry in super().list_from(path):
            yield replace(entry, length=len(text_of(self, entry.path)))


class ListsInItsOwnSpelling(LocalLogStore):
    breaks: ClassVar[str] = "entries_tell_size_time_and_path"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for entry in super().list_from(path):
            yield replace(entry, path="file://" + entry.path)


class HidesFolders(MemoryLogStore):
    breaks: ClassVar[str] = "folders_and_foreign_files_are_listed_not_what_is_in_them"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (entry for entry in super().list_from(path) if not entry.is_directory)


class ListsWhatIsInFolders(MemoryLogStore):
    """delta#1788: a recursive listing of the log."""

    breaks: ClassVar[str] = "folders_and_foreign_files_are_listed_not_what_is_in_them"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for entry in super().list_from(path):
            yield entry
            if entry.is_directory:
                yield from self.list_from(entry.path + "/")


class HidesForeignFiles(MemoryLogStore):
    breaks: ClassVar[str] = "folders_and_foreign_files_are_listed_not_what_is_in_them"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (entry for entry in super().list_from(path) if not entry.name.endswith(".parquet"))


class HasAFileSystemElsewhere(LocalLogStore):
    breaks: ClassVar[str] = "the_file_system_shows_the_same_storage"

    def filesystem_path(self, path: str) -> str:
        head, _, tail = path.rpartition("/")
        os.makedirs(head + "-elsewhere", exist_ok=True)
        return f"{head}-elsewhere/{tail}"


# Declarations


class AdmitsPartsThatItDenies(MemoryLogStore):
    breaks: ClassVar[str] = "the_declarations_agree_with_each_other"

    def is_partial_write_visible(self, path: str) -> bool:
        return True


class ChangesItsMind(MemoryLogStore):
    breaks: ClassVar[str] = "the_declarations_agree_with_each_other"

    count: ClassVar[list[int]] = []

    @property
    def capabilities(self) -> Capabilities:
        self.count.append(1)
        return replace(super().capabilities, min_commit_interval=float(len(self.count)))


class HoldsALock(MemoryLogStore):
    breaks: ClassVar[str] = "a_store_can_be_pickled_and_copied"

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self.lock = threading.Lock()


class ClosesOnlyOnce(MemoryLogStore):
    breaks: ClassVar[str] = "closing_twice_is_allowed"

    def close(self) -> None:
        if vars(self).setdefault("closed", False):
            raise RuntimeError("closed already")
        vars(self)["closed"] = True


# Races


class LooksThenWrites(MemoryLogStore):
    """The `exists` check of S3SingleDriverLogStore without its lock (delta#1830)."""

    breaks: ClassVar[str] = "of_racing_threads_exactly_one_wins"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if not overwrite and text_of(self, path):
            raise FileExistsError(path)
        gap()
        super().write(path, lines, overwrite=True)


class LocksPerInstance(MemoryLogStore):
    """delta#7567: `synchronized` on the store."""

    breaks: ClassVar[str] = "of_racing_threads_exactly_one_wins"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with vars(self).setdefault("lock", threading.Lock()):
            if not overwrite and text_of(self, path):
                raise FileExistsError(path)
            gap()
            super().write(path, lines, overwrite=True)


class ReportsEveryWriteAsLost(MemoryLogStore):
    """A retried request meets its own file and reports a conflict."""

    breaks: ClassVar[str] = "of_racing_threads_exactly_one_wins"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite)
        if not overwrite:
            raise FileExistsError(path)


class LosesEveryTenthWrite(MemoryLogStore):
    breaks: ClassVar[str] = "writers_of_one_log_lose_nothing"

    count: ClassVar[list[int]] = []

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self.count.append(1)
        if len(self.count) % 10:
            super().write(path, lines, overwrite=overwrite)


class LocksPerProcess(LocalLogStore):
    """Excludes threads, declares the host."""

    breaks: ClassVar[str] = "of_racing_processes_exactly_one_wins"

    lock: ClassVar[threading.Lock] = threading.Lock()

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with self.lock:
            if not overwrite and os.path.exists(path):
                raise FileExistsError(path)
            gap()
            super().write(path, lines, overwrite=True)


class WritesInPlace(LocalLogStore):
    """O_EXCL is exclusive, and shows a half-written file."""

    breaks: ClassVar[str] = "no_reader_sees_a_part_of_a_new_file"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


class WritesInTwoPieces(MemoryLogStore):
    """Takes all lines first, so that only a reader at the right moment sees the half."""

    breaks: ClassVar[str] = "readers_beside_a_writer_see_all_or_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        super().write(path, kept[: len(kept) // 2], overwrite=overwrite)
        gap()
        super().write(path, kept, overwrite=True)


class OverwritesInPlace(LocalLogStore):
    breaks: ClassVar[str] = "no_reader_sees_a_part_of_an_overwrite"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if not overwrite:
            super().write(path, lines)
            return
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


class OverwritesByDeletingFirst(MemoryLogStore):
    """Takes all lines first, so that only a reader at the right moment misses the file."""

    breaks: ClassVar[str] = "no_reader_sees_a_part_of_an_overwrite"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        if overwrite:
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.delete_file(self.filesystem_path(path))
            gap()
        super().write(path, kept, overwrite=overwrite)


class DiesInTheRace(LocalLogStore):
    """Takes its process with it, as native code does."""

    breaks: ClassVar[str] = "of_racing_processes_exactly_one_wins"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        os._exit(1)


# The model


class CannotUseADeletedNameAgain(MemoryLogStore):
    breaks: ClassVar[str] = "any_history_agrees_with_a_dict"

    used: ClassVar[set[str]] = set()

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if not overwrite and path in self.used:
            raise FileExistsError(path)
        super().write(path, lines, overwrite=overwrite)
        self.used.add(path)


# Not broken: it says what it is.


class HonestlyUnsafe(MemoryLogStore):
    """Excludes nobody, shows halves, and declares both."""

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        with contextlib.suppress(FileNotFoundError):
            if not overwrite and path in [s.path for s in self.list_from(path)]:
                raise FileExistsError(path)
        super().write(path, kept[: len(kept) // 2], overwrite=True)
        super().write(path, kept, overwrite=True)

    @property
    def capabilities(self) -> Capabilities:
        return replace(
            super().capabilities,
            exclusive_create=Scope.NONE,
            partial_write_visible=True,
            atomic_overwrite=False,
        )
