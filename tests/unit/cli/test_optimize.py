"""`lakelog optimize`: what is rewritten, what is only shown, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, read_arrow, write_arrow
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true"}
    for day in (1, 1, 2, 2):
        rows = pa.table({"day": [day] * 3, "id": [3, 1, 2]})
        write_arrow(uri, rows, mode="append", partition_by=["day"], properties=properties)
    return uri


def test_small_files_are_put_together(table: str) -> None:
    outcome = lakelog("optimize", table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0] == table
    assert outcome.lines[-1] == "Committed as version 4."
    assert DeltaLog.for_table(table).update().num_files == 2
    assert lakelog("optimize", table).lines[-1] == "Nothing to do: 2 files looked at."


def test_a_dry_run_shows_and_does_nothing(table: str) -> None:
    found = lakelog_json("optimize", table, "--dry-run", "--where", "day = 1")
    assert (found["versions"], found["metrics"]["numFilesRemoved"]) == ([], 2)
    assert lakelog("optimize", table, "--dry-run").lines[-1] == "Nothing was written (--dry-run)."
    assert DeltaLog.for_table(table).update().num_files == 4


def test_batches_order_and_target(table: str) -> None:
    options = ("--z-order-by", "id", "--target-size", "1g", "--batch-size", "1")
    assert lakelog_json("optimize", table, *options)["versions"] == [4, 5]
    assert read_arrow(table, where="day = 1")["id"].to_pylist() == [1, 1, 2, 2, 3, 3]
    assert lakelog("optimize", table, *options[:-2]).code == 0


def test_purge_takes_files_with_deleted_rows_alone(table: str) -> None:
    delete_rows(table, "day = 2 AND id = 3")
    outcome = lakelog("optimize", table, "--purge")
    assert outcome.code == 0
    assert "deleted rows in them" in outcome.out
    assert DeltaLog.for_table(table).update().num_files == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--where", "id = 1"), "non-partition column"),
        (("--target-size", "big"), "--target-size must be a size"),
        (("--z-order-by", "nope"), "does not exist"),
        (("--full",), "only supported for clustered tables"),
        (("--purge", "--full"), "--purge goes with"),
    ],
)
def test_what_makes_no_sense_is_refused(table: str, options: tuple[str, ...], says: str) -> None:
    outcome = lakelog("optimize", table, *options)
    assert outcome.code == 2
    assert says in outcome.err
    assert DeltaLog.for_table(table).update().version == 3
