"""Checks of one writer alone: reading, writing, refusing, overwriting, failing."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    PromiseBrokenError,
    expect,
    expect_equal,
    fresh_folder,
    names,
    names_or_none,
    raw_bytes,
    raw_write,
    read_all,
    read_or_none,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore

AWKWARD_LINES = [
    '{"a":1}',
    "",
    "  spaces kept  ",
    "\ufeffno byte order mark is eaten",
    'tab\there, quote"here, back\\slash, percent %20 %2F',
    "vertical\x0btab, form\x0cfeed, file\x1cseparator, next\x85line",
    "line\u2028separator and paragraph\u2029separator",
    "carriage\rreturn inside",
    "grüße, 日本語, עברית, 🏞️ \U0001f600",
    "x" * 70_000,
    "",
]
"""Text that naive line reading breaks, trims or joins."""

AWKWARD_NAMES = [
    "00000000000000000000.json",
    "with space.json",
    "percent%20stays%2Fas it is.json",
    "plus+and&and=and#and?.json",
    "ünïcödé-日本-😀.json",
    "_last_checkpoint",
    ".hidden.tmp",
    "quote's.json",
]


class _OwnFailure(Exception):  # noqa: N818  # it stands for anybody's exception
    """What a failing `lines` raises in these checks."""


def failing_lines(count: int, size: int) -> Iterator[str]:
    """Some lines, then an exception."""
    for _ in range(count):
        yield "x" * size
    raise _OwnFailure("the lines failed")


class BasicChecks(Checks):
    """One writer alone."""

    def test_a_written_file_reads_back_line_by_line(self, store: LogStore, root: str) -> None:
        r"""A file reads back as it was written; only `\n` and `\r\n` end a line."""
        path = fresh_folder(store, root) + "/0.json"
        store.write(path, AWKWARD_LINES)
        for reader in (store, self.another(store)):
            expect_equal(read_all(reader, path), AWKWARD_LINES, "the lines read")

    def test_the_bytes_are_utf8_lines_each_with_a_newline(self, store: LogStore, root: str) -> None:
        r"""The file holds the UTF-8 bytes of each line and a `\n` after each, and no more."""
        path = fresh_folder(store, root) + "/0.json"
        store.write(path, iter(AWKWARD_LINES))
        wanted = "".join(line + "\n" for line in AWKWARD_LINES).encode()
        expect_equal(raw_bytes(store, path), wanted, "the bytes on the file system")

    def test_read_bytes_gives_the_file_that_is_there(self, store: LogStore, root: str) -> None:
        r"""`read_bytes`, used to read commits, returns all current bytes at once."""
        folder = fresh_folder(store, root)
        path = folder + "/0.json"
        several = [f"line {number}" for number in range(3000)]
        for lines in (AWKWARD_LINES, ["one"], [""], [], several, several[:-1], several[1:]):
            store.write(path, lines, overwrite=True)
            wanted = "".join(line + "\n" for line in lines).encode()
            for reader in (store, self.another(store)):
                data = reader.read_bytes(path)
                expect(isinstance(data, bytes), f"read_bytes gave a {type(data).__name__}")
                expect_equal(data, wanted, "what read_bytes gives")
        raw_write(store, folder + "/1.json", b"a\r\n\r\nb\n\nc\rd\r\ne")
        found = store.read_bytes(folder + "/1.json").replace(b"\r\n", b"\n").removesuffix(b"\n")
        expect_equal(found, b"a\n\nb\n\nc\rd\ne", "what read_bytes gives, by its lines")
        for absent in (folder + "/2.json", folder + "/none/0.json"):
            with refusal(FileNotFoundError, f"read_bytes of {absent}"):
                store.read_bytes(absent)

    def test_files_of_other_writers_are_read(self, store: LogStore, root: str) -> None:
        r"""`\r\n` also ends a line, and the last line may lack an end."""
        folder = fresh_folder(store, root)
        raw_write(store, folder + "/0.json", b"a\r\n\r\nb\n\nc\rd\r\ne")
        expect_equal(read_all(store, folder + "/0.json"), ["a", "", "b", "", "c\rd", "e"], "lines")
        raw_write(store, folder + "/1.json", b"fine\n\xff\xfe\n")
        with refusal(UnicodeDecodeError, "reading a file that is not UTF-8"):
            read_all(store, folder + "/1.json")

    def test_a_missing_file_is_not_found(self, store: LogStore, root: str) -> None:
        """Reading a missing file raises FileNotFoundError, with and without its folder."""
        folder = fresh_folder(store, root)
        for path in (folder + "/0.json", folder + "/none/0.json"):
            with refusal(FileNotFoundError, f"reading {path}"):
                read_all(store, path)

    def test_an_empty_file_is_a_file(self, store: LogStore, root: str) -> None:
        """No lines make a file of no bytes, which takes its name like any other."""
        path = fresh_folder(store, root) + "/0.json"
        store.write(path, [])
        expect_equal(read_or_none(store, path), [], "the lines of an empty file")
        expect_equal(raw_bytes(store, path), b"", "the bytes of an empty file")
        with refusal(FileExistsError, "creating a name that an empty file has"):
            store.write(path, ["late"])

    def test_a_large_file_is_kept_whole(self, store: LogStore, root: str) -> None:
        """A large file, fifty megabytes unless set lower, is read back unchanged."""
        path = fresh_folder(store, root) + "/0.json"
        size = 1 << 20
        lines = [chr(97 + n % 26) * (size - 1) for n in range(self.large_megabytes)]
        store.write(path, iter(lines))
        expect_equal(_digest(store.read(path)), _digest(iter(lines)), "the digest of a large file")
        at_once = hashlib.sha256(store.read_bytes(path)).hexdigest()
        expect_equal(at_once, _digest(iter(lines)), "the digest of a large file, by read_bytes")

    def test_every_name_is_kept_as_it_is(self, store: LogStore, root: str) -> None:
        """Names are neither encoded nor decoded: unicode, spaces, percent signs, quotes."""
        folder = fresh_folder(store, root)
        for name in AWKWARD_NAMES:
            store.write(f"{folder}/{name}", [name])
        expect_equal(names(store, folder + "/"), sorted(AWKWARD_NAMES), "the names listed")
        for name in AWKWARD_NAMES:
            expect_equal(read_or_none(store, f"{folder}/{name}"), [name], f"the file {name!r}")

    def test_a_taken_name_is_refused_and_kept(self, store: LogStore, root: str) -> None:
        """A second create raises FileExistsError and changes nothing, from any instance."""
        path = fresh_folder(store, root) + "/0.json"
        store.write(path, ["first"])
        for writer in (store, self.another(store)):
            for lines in (["second"], ["first"], []):
                with refusal(FileExistsError, "creating a taken name"):
                    writer.write(path, lines)
        expect_equal(read_or_none(store, path), ["first"], "the file after refused writes")

    def test_a_foreign_file_takes_its_name(self, store: LogStore, root: str) -> None:
        """A file written without the store is refused like one of its own."""
        path = fresh_folder(store, root) + "/0.json"
        raw_write(store, path, b"foreign\n")
        with refusal(FileExistsError, "creating the name of a foreign file"):
            store.write(path, ["mine"])
        expect_equal(raw_bytes(store, path), b"foreign\n", "the foreign file")

    def test_overwrite_replaces_the_whole_file(self, store: LogStore, root: str) -> None:
        """With overwrite a file is made, then replaced by longer and by shorter content."""
        folder = fresh_folder(store, root)
        path = folder + "/_last_checkpoint"
        for lines in (["first"], ["longer", "than", "before"], ["x"], []):
            store.write(path, lines, overwrite=True)
            expect_equal(read_or_none(store, path), lines, "the file after an overwrite")
        expect_equal(names(store, folder + "/"), ["_last_checkpoint"], "the folder's names")

    def test_a_missing_folder_is_not_found(self, store: LogStore, root: str) -> None:
        """Listing a missing folder raises; so does writing there, if storage has folders."""
        folder = fresh_folder(store, root) + "/none"
        with refusal(FileNotFoundError, "listing a missing folder"):
            names(store, folder + "/")
        try:
            store.write(folder + "/0.json", ["x"])
        except FileNotFoundError:
            expect_equal(read_or_none(store, folder + "/0.json"), None, "a refused write's file")
        else:
            expect_equal(read_or_none(store, folder + "/0.json"), ["x"], "the file")

    def test_folders_are_made_with_their_parents(self, store: LogStore, root: str) -> None:
        """`create_folder` makes all missing folders, and does nothing if there are none."""
        folder = fresh_folder(store, root) + "/a/b ü/_delta_log"
        for _ in range(2):
            store.create_folder(folder)
        store.write(folder + "/0.json", ["x"])
        store.create_folder(folder)
        expect_equal(names(store, folder + "/"), ["0.json"], "the names in the new folder")

    def test_many_files_are_deleted(self, store: LogStore, root: str) -> None:
        """`delete_files` deletes the given files, existing or not, and reports failures."""
        folder = fresh_folder(store, root)
        given = [f"{folder}/{n} ü%20.parquet" for n in range(12)]
        for path in given:
            raw_write(store, path, b"PAR1")
        raw_write(store, folder + "/kept", b"PAR1")
        expect_equal(store.delete_files([]), {}, "what deleting nothing could not delete")
        asked = [*given[:5], folder + "/missing", *given[5:]]
        expect_equal(store.delete_files(asked), {}, "what it could not delete")
        expect_equal(names(store, folder + "/"), ["kept"], "the names that are left")

    def test_lines_that_fail_leave_nothing(self, store: LogStore, root: str) -> None:
        """An exception from `lines` propagates; no file, no remains, and the name stays free."""
        folder = fresh_folder(store, root)
        for count, size in ((0, 0), (3, 10), (self.watched_megabytes, 1 << 20)):
            self._fail(store, folder + "/0.json", count, size, overwrite=False)
            expect_equal(names_or_none(store, folder), [], "names after a failed write")
        store.write(folder + "/0.json", ["after"])
        expect_equal(read_or_none(store, folder + "/0.json"), ["after"], "the name used again")

    def test_lines_that_fail_in_an_overwrite_leave_the_old_file(
        self, store: LogStore, root: str
    ) -> None:
        """An exception from `lines` in an overwrite keeps the old file."""
        folder = fresh_folder(store, root)
        store.write(folder + "/hint", ["old"])
        for count, size in ((0, 0), (3, 10), (self.watched_megabytes, 1 << 20)):
            self._fail(store, folder + "/hint", count, size, overwrite=True)
            expect_equal(read_or_none(store, folder + "/hint"), ["old"], "the old file")
        expect_equal(names(store, folder + "/"), ["hint"], "names after failed overwrites")

    def test_reading_can_stop_anywhere(self, store: LogStore, root: str) -> None:
        """Iterators closed or dropped half-way hold no files or connections open."""
        folder = fresh_folder(store, root)
        path = folder + "/0.json"
        store.write(path, ["y" * 1000] * 2000)
        before = _open_files()
        held = []
        for _ in range(self.unfinished_reads):
            held += [store.read(path), store.list_from(folder + "/")]
            next(held[-1])
            next(held[-2])
        for iterator in held:
            getattr(iterator, "close", lambda: None)()
        grown = _open_files() - before
        # Connection pools may open a few; unfinished reads must not cost a file each.
        many = self.unfinished_reads
        what = f"{grown} more files are open after closing {many} unfinished reads"
        expect(grown < many * 5 // 6, what)
        del held
        expect_equal(len(read_all(store, path)), 2000, "lines of a reading started afterwards")

    def test_two_readings_do_not_disturb_each_other(self, store: LogStore, root: str) -> None:
        """Every `read` is independent and starts from the beginning."""
        path = fresh_folder(store, root) + "/0.json"
        lines = [str(n) for n in range(50)]
        store.write(path, lines)
        pairs = list(zip(store.read(path), store.read(path), strict=True))
        expect_equal(pairs, [(line, line) for line in lines], "two readings in step")

    def _fail(self, store: LogStore, path: str, count: int, size: int, *, overwrite: bool) -> None:
        try:
            store.write(path, failing_lines(count, size), overwrite=overwrite)
        except _OwnFailure:
            return
        except Exception as error:
            raise PromiseBrokenError(
                f"an exception from lines became {type(error).__name__}: {error}"
            ) from error
        raise PromiseBrokenError("an exception from lines was swallowed")


def _digest(lines: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  # a device folder, not a path of ours
