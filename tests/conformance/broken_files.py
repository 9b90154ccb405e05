"""Stores that break one promise each in reading or writing.

`breaks` names the check of the kit that must catch the store. They are built on the stores that
keep all promises, and break theirs in the place where real ones did.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow.fs

from lakelog.logstores import FileStatus, LocalLogStore, MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def put(store: MemoryLogStore, path: str, text: str) -> None:
    with store.filesystem.open_output_stream(store.filesystem_path(path)) as stream:
        stream.write(text.encode("utf-8", "surrogatepass"))


def text_of(store: MemoryLogStore, path: str) -> str:
    try:
        with store.filesystem.open_input_stream(store.filesystem_path(path)) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        return ""


# Reading


class SplitsAtEveryUnicodeLineEnd(MemoryLogStore):
    breaks: ClassVar[str] = "a_written_file_reads_back_line_by_line"

    def read(self, path: str) -> Iterator[str]:
        return iter("".join(line + "\n" for line in super().read(path)).splitlines())


class TrimsLines(MemoryLogStore):
    breaks: ClassVar[str] = "a_written_file_reads_back_line_by_line"

    def read(self, path: str) -> Iterator[str]:
        return (line.strip() for line in super().read(path))


class SkipsEmptyLines(MemoryLogStore):
    breaks: ClassVar[str] = "a_written_file_reads_back_line_by_line"

    def read(self, path: str) -> Iterator[str]:
        return (line for line in super().read(path) if line)


class KeepsCarriageReturns(MemoryLogStore):
    breaks: ClassVar[str] = "files_of_other_writers_are_read"

    def read(self, path: str) -> Iterator[str]:
        body = text_of(self, path)
        return iter(body.removesuffix("\n").split("\n")) if body else super().read(path)


class ReplacesBadBytes(MemoryLogStore):
    breaks: ClassVar[str] = "files_of_other_writers_are_read"

    def read(self, path: str) -> Iterator[str]:
        try:
            yield from super().read(path)
        except UnicodeDecodeError:
            yield "\ufffd"


class ReadsMissingAsEmpty(MemoryLogStore):
    breaks: ClassVar[str] = "a_missing_file_is_not_found"

    def read(self, path: str) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError):
            yield from super().read(path)


class SharesOneReading(MemoryLogStore):
    breaks: ClassVar[str] = "two_readings_do_not_disturb_each_other"

    def read(self, path: str) -> Iterator[str]:
        open_readings: dict[str, Iterator[str]] = vars(self).setdefault("open", {})
        return open_readings.setdefault(path, super().read(path))


class LeaksOpenFiles(LocalLogStore):
    breaks: ClassVar[str] = "reading_can_stop_anywhere"

    held: ClassVar[list[Any]] = []

    def read(self, path: str) -> Iterator[str]:
        file = open(path, encoding="utf-8")  # noqa: SIM115  # the leak
        self.held.append(file)
        return (line.removesuffix("\n") for line in file)


# Writing


class OmitsTheLastNewline(MemoryLogStore):
    breaks: ClassVar[str] = "the_bytes_are_utf8_lines_each_with_a_newline"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite)
        put(self, path, text_of(self, path).removesuffix("\n"))


class WritesAByteOrderMark(MemoryLogStore):
    breaks: ClassVar[str] = "the_bytes_are_utf8_lines_each_with_a_newline"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite)
        put(self, path, "\ufeff" + text_of(self, path))


class SkipsEmptyFiles(MemoryLogStore):
    breaks: ClassVar[str] = "an_empty_file_is_a_file"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if kept := list(lines):
            super().write(path, kept, overwrite=overwrite)


class LosesAPartOfLargeFiles(MemoryLogStore):
    breaks: ClassVar[str] = "a_large_file_is_kept_whole"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, list(lines)[:40], overwrite=overwrite)


class DecodesPercents(MemoryLogStore):
    breaks: ClassVar[str] = "every_name_is_kept_as_it_is"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path.replace("%20", " "), lines, overwrite=overwrite)

    def read(self, path: str) -> Iterator[str]:
        return super().read(path.replace("%20", " "))


class IgnoresOverwriteFalse(MemoryLogStore):
    breaks: ClassVar[str] = "a_taken_name_is_refused_and_kept"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=True)


class RefusesAfterReplacing(MemoryLogStore):
    breaks: ClassVar[str] = "a_taken_name_is_refused_and_kept"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        try:
            super().write(path, kept, overwrite=overwrite)
        except FileExistsError:
            super().write(path, kept, overwrite=True)
            raise


class RefusesWithAnotherError(MemoryLogStore):
    breaks: ClassVar[str] = "a_taken_name_is_refused_and_kept"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        try:
            super().write(path, lines, overwrite=overwrite)
        except FileExistsError as error:
            raise RuntimeError("conflict") from error


class AcceptsEqualContent(MemoryLogStore):
    """Settles a lost reply by content alone: two writers of equal bytes both "won"."""

    breaks: ClassVar[str] = "a_taken_name_is_refused_and_kept"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        try:
            super().write(path, kept, overwrite=overwrite)
        except FileExistsError:
            if list(self.read(path)) != kept:
                raise


class RemembersOnlyItsOwnFiles(MemoryLogStore):
    breaks: ClassVar[str] = "a_foreign_file_takes_its_name"

    mine: ClassVar[set[str]] = set()

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=overwrite or path not in self.mine)
        self.mine.add(path)


class OverwritesWithoutTruncating(MemoryLogStore):
    breaks: ClassVar[str] = "overwrite_replaces_the_whole_file"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        old = text_of(self, path)
        super().write(path, lines, overwrite=overwrite)
        new = text_of(self, path)
        put(self, path, new + old[len(new) :])


class NeverOverwrites(MemoryLogStore):
    breaks: ClassVar[str] = "overwrite_replaces_the_whole_file"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=False)


class KeepsWhatCameBeforeAFailure(LocalLogStore):
    """Closing an upload in a `finally` publishes what there is (delta#7174)."""

    breaks: ClassVar[str] = "lines_that_fail_leave_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if os.path.exists(path):
            super().write(path, lines, overwrite=overwrite)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


class LeavesItsTemporaryFile(LocalLogStore):
    breaks: ClassVar[str] = "lines_that_fail_leave_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        folder, name = os.path.split(path)
        temp = f"{folder}/.{name}.tmp"
        with open(temp, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        os.replace(temp, path)


class SwallowsTheFailureOfLines(MemoryLogStore):
    breaks: ClassVar[str] = "lines_that_fail_leave_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with contextlib.suppress(Exception):
            super().write(path, lines, overwrite=overwrite)


class RenamesTheFailureOfLines(MemoryLogStore):
    breaks: ClassVar[str] = "lines_that_fail_leave_nothing"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        try:
            kept = list(lines)
        except Exception as error:
            raise OSError("upload failed") from error
        super().write(path, kept, overwrite=overwrite)


class DeletesBeforeItOverwrites(MemoryLogStore):
    """adlfs#413: overwrite is delete, then upload."""

    breaks: ClassVar[str] = "lines_that_fail_in_an_overwrite_leave_the_old_file"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        if overwrite:
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.delete_file(self.filesystem_path(path))
        super().write(path, lines, overwrite=overwrite)


class ListsMissingFoldersAsEmpty(MemoryLogStore):
    breaks: ClassVar[str] = "a_missing_folder_is_not_found"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        with contextlib.suppress(FileNotFoundError):
            yield from super().list_from(path)


class RefusesAfterMakingTheFolder(LocalLogStore):
    breaks: ClassVar[str] = "a_missing_folder_is_not_found"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        try:
            super().write(path, lines, overwrite=overwrite)
        except FileNotFoundError:
            self.create_folder(path.rpartition("/")[0])
            super().write(path, lines, overwrite=overwrite)
            raise


class MakesFoldersOnlyOnce(MemoryLogStore):
    breaks: ClassVar[str] = "folders_are_made_with_their_parents"

    def create_folder(self, path: str) -> None:
        info = self.filesystem.get_file_info(self.filesystem_path(path))
        if info.type == pyarrow.fs.FileType.Directory:
            raise FileExistsError(path)
        super().create_folder(path)


class ForgetsTheLastToDelete(MemoryLogStore):
    """As a service that takes a thousand names a request, asked once."""

    breaks: ClassVar[str] = "many_files_are_deleted"

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        return super().delete_files(paths[:10])


class ComplainsOfMissingFiles(MemoryLogStore):
    breaks: ClassVar[str] = "many_files_are_deleted"

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        gone = [each for each in paths if not self._is_there(each)]
        return super().delete_files(paths) | {each: FileNotFoundError(each) for each in gone}

    def _is_there(self, path: str) -> bool:
        info = self.filesystem.get_file_info(self.filesystem_path(path))
        return bool(info.type == pyarrow.fs.FileType.File)
