"""Checks of listings, and of what a store says about itself."""

from __future__ import annotations

import copy
import pickle
import time
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    expect,
    expect_equal,
    fresh_folder,
    listing,
    names,
    raw_bytes,
    raw_write,
    read_or_none,
)
from lakelog.logstores.contract import Capabilities, Scope
from lakelog.logstores.threads import WRITES, at_once

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore

DAY_MS = 86_400_000

# UTF-16 (Java) puts U+1F600 before U+FF5E; code points and UTF-8 bytes put it after.
UNSORTED_NAMES = ["b", "\uff5e", "a", "Z", "_x", "10", "9", "\U0001f600", ".t", "ä", "a.b", "a b"]


class ListingChecks(Checks):
    """Order, start, completeness, entries, and the declarations."""

    def test_a_listing_is_ordered_by_name(self, store: LogStore, root: str) -> None:
        """Names are listed by code point, in whatever order they were written."""
        folder = fresh_folder(store, root)
        for name in UNSORTED_NAMES:
            store.write(f"{folder}/{name}", [name])
        expect_equal(names(store, folder + "/"), sorted(UNSORTED_NAMES), "the order of names")

    def test_a_listing_starts_at_the_name_given(self, store: LogStore, root: str) -> None:
        """Every name >= the given one is listed, including that name, existing or not."""
        folder = fresh_folder(store, root)
        written = sorted(["1.json", "2.json", "3.json", "_last", ".tmp", "2.crc", "2"])
        for name in written:
            store.write(f"{folder}/{name}", [name])
        for start in ("", "0", "1.json", "2", "2.", "2.json", "25", "3.json", "4", "_", "~"):
            wanted = [name for name in written if name >= start]
            expect_equal(names(store, f"{folder}/{start}"), wanted, f"names from {start!r}")

    def test_a_long_listing_is_complete(self, store: LogStore, root: str) -> None:
        """More than a thousand files are all listed, each once, in order, from any point."""
        folder = fresh_folder(store, root)
        wanted = [f"{n:020d}.json" for n in range(self.many_files)]
        at_once(lambda name: store.write(f"{folder}/{name}", ["x"]), wanted[::-1], WRITES, "fill")
        expect_equal(names(store, folder + "/"), wanted, "all names")
        for start in (1, self.many_files // 2, self.many_files - 1, self.many_files):
            expect_equal(
                names(store, f"{folder}/{start:020d}."), wanted[start:], f"names from {start}"
            )

    def test_a_listing_includes_every_write_before_it(self, store: LogStore, root: str) -> None:
        """A file is listed and readable right after its write, by every instance."""
        folder = fresh_folder(store, root)
        writers = [store, self.another(store)]
        wanted: list[str] = []
        for n in range(self.watched_writes):
            name = f"{n:020d}.json"
            writers[n % 2].write(f"{folder}/{name}", [str(n)])
            wanted.append(name)
            for reader in writers:
                expect_equal(names(reader, folder + "/"), wanted, "names right after a write")
                expect_equal(read_or_none(reader, f"{folder}/{name}"), [str(n)], "the new file")

    def test_entries_tell_size_time_and_path(self, store: LogStore, root: str) -> None:
        """Path in the spelling asked for, length in bytes, time in milliseconds."""
        folder = fresh_folder(store, root)
        before = time.time() * 1000
        store.write(folder + "/0.json", ["grüße"])
        after = time.time() * 1000
        (status,) = listing(store, folder + "/0.json")
        expect_equal(status.path, folder + "/0.json", "the path of an entry")
        expect_equal(status.length, 8, "the length of an entry, in bytes")
        # A day of slack: the clock is the storage's, and only the unit is the contract's.
        in_ms = before - DAY_MS < status.modification_time < after + DAY_MS
        expect(in_ms, f"modification_time {status.modification_time} is not now in milliseconds")
        expect(not status.is_directory, "a file is listed as a folder")

    def test_folders_and_foreign_files_are_listed_not_what_is_in_them(
        self, store: LogStore, root: str
    ) -> None:
        """A listing is one level deep and leaves nothing out."""
        folder = fresh_folder(store, root)
        store.create_folder(folder + "/_sidecars")
        store.write(folder + "/_sidecars/deep.json", ["x"])
        store.write(folder + "/0.json", ["x"])
        raw_write(store, folder + "/1.checkpoint.parquet", b"PAR1")
        found = [(status.name, status.is_directory) for status in listing(store, folder + "/")]
        wanted = [("0.json", False), ("1.checkpoint.parquet", False), ("_sidecars", True)]
        expect_equal(found, wanted, "names, and which are folders")

    def test_the_file_system_shows_the_same_storage(self, store: LogStore, root: str) -> None:
        """A file made by `write` is visible to `filesystem`, and the other way round."""
        folder = fresh_folder(store, root)
        store.write(folder + "/0.json", ["by the store"])
        raw_write(store, folder + "/1.json", b"by the file system\n")
        expect_equal(raw_bytes(store, folder + "/0.json"), b"by the store\n", "through filesystem")
        expect_equal(read_or_none(store, folder + "/1.json"), ["by the file system"], "by read")
        expect_equal(names(store, folder + "/"), ["0.json", "1.json"], "the names listed")
        store.filesystem.delete_file(store.filesystem_path(folder + "/0.json"))
        expect_equal(read_or_none(store, folder + "/0.json"), None, "a file deleted there")
        expect_equal(names(store, folder + "/"), ["1.json"], "the names after the deletion")

    def test_the_declarations_agree_with_each_other(self, store: LogStore, root: str) -> None:
        """Capabilities are constant, complete, and say the same as `is_partial_write_visible`."""
        declared = store.capabilities
        expect(isinstance(declared, Capabilities), "capabilities is not a Capabilities")
        expect(isinstance(declared.exclusive_create, Scope), "exclusive_create is not a Scope")
        expect_equal(self.another(store).capabilities, declared, "what another instance declares")
        path = fresh_folder(store, root) + "/0.json"
        visible = store.is_partial_write_visible(path)
        expect(
            declared.partial_write_visible or not visible,
            "is_partial_write_visible admits what capabilities.partial_write_visible denies",
        )
        expect(declared.min_commit_interval >= 0, "min_commit_interval is negative")

    def test_a_store_can_be_pickled_and_copied(self, store: LogStore, root: str) -> None:
        """A pickled or copied store works on the same storage."""
        path = fresh_folder(store, root) + "/0.json"
        store.write(path, ["x"])
        for twin in (pickle.loads(pickle.dumps(store)), copy.copy(store)):
            expect_equal(read_or_none(twin, path), ["x"], "the file, by the twin")
            expect_equal(dict(twin.conf), dict(store.conf), "the conf of the twin")

    def test_closing_twice_is_allowed(self, store: LogStore, root: str) -> None:
        """`close` may be called twice, and does not affect other instances."""
        path = fresh_folder(store, root) + "/0.json"
        closed = self.another(store)
        closed.write(path, ["x"])
        closed.close()
        closed.close()
        expect_equal(read_or_none(store, path), ["x"], "the file, by an instance still open")
