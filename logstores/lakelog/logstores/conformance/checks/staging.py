"""Checks of `staged`, by which checkpoints and other large files come into being."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    PromiseBrokenError,
    expect,
    expect_equal,
    fresh_folder,
    is_hidden,
    names_or_none,
    raw_bytes,
    read_or_none,
)

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore

PIECE = b"checkpoint" * 100_000 + b"\n"
PIECES = 12


class _OwnFailure(Exception):  # noqa: N818  # it stands for anybody's exception
    """What a failing block raises in these checks."""


class StagingChecks(Checks):
    """Staged files: seen at the end of the block, whole, or never."""

    def test_a_staged_file_is_published_whole_at_the_end(self, store: LogStore, root: str) -> None:
        """Until the block ends the name is as it was; then it holds all bytes, new or replaced."""
        folder = fresh_folder(store, root)
        path = folder + "/1.checkpoint.parquet"
        reader = self.another(store)
        for count, before in ((PIECES, None), (1, PIECE * PIECES), (0, PIECE)):
            with store.staged(path) as (filesystem, draft):
                with filesystem.open_output_stream(draft) as stream:
                    for _ in range(count):
                        stream.write(PIECE)
                shown = [name for name in names_or_none(reader, folder) if not is_hidden(name)]
                wanted = [] if before is None else ["1.checkpoint.parquet"]
                expect_equal(shown, wanted, "the names while a file is staged")
                if before is not None:
                    expect(
                        raw_bytes(reader, path) == before, "a staged file changed its name early"
                    )
            expect(
                raw_bytes(reader, path) == PIECE * count, "the published bytes are not the draft's"
            )
            expect_equal(
                names_or_none(reader, folder), ["1.checkpoint.parquet"], "the names afterwards"
            )

    def test_staging_that_fails_leaves_what_was(self, store: LogStore, root: str) -> None:
        """An exception in the block propagates; the name is as it was, the draft is gone."""
        folder = fresh_folder(store, root)
        path = folder + "/1.checkpoint.parquet"
        for before in (None, ["old"]):
            if before is not None:
                store.write(path, before)
            _stage_and_fail(store, path)
            expect_equal(read_or_none(store, path), before, "the file after a staging that failed")
            wanted = [] if before is None else ["1.checkpoint.parquet"]
            expect_equal(names_or_none(store, folder), wanted, "the names after it")


def _stage_and_fail(store: LogStore, path: str) -> None:
    try:
        with store.staged(path) as (filesystem, draft):
            with filesystem.open_output_stream(draft) as stream:
                stream.write(PIECE)
            raise _OwnFailure("the block failed")
    except _OwnFailure:
        return
    except Exception as error:
        raise PromiseBrokenError(
            f"an exception from the block became {type(error).__name__}: {error}"
        ) from error
    raise PromiseBrokenError("an exception from the block was swallowed")
