"""`lakelog repair`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from support.terminal import lakelog, lakelog_json


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table that has lost the first of its two files."""
    made = str(tmp_path / "t")
    write_arrow(made, pa.table({"id": [1]}), mode="append")
    (file,) = DeltaLog.for_table(made).snapshot.files()
    write_arrow(made, pa.table({"id": [2]}), mode="append")
    Path(made, file.path).unlink()
    return made


def _files(uri: str) -> int:
    return DeltaLog.for_table(uri).snapshot.num_files


def test_it_asks_first_and_says_what_it_did(uri: str) -> None:
    outcome = lakelog("repair", uri, "--dry-run")
    assert (outcome.code, _files(uri)) == (1, 2)
    assert "missing file" in outcome.out
    assert outcome.lines[-1] == "Nothing was changed (--dry-run)."
    outcome = lakelog("repair", uri)
    assert (outcome.code, _files(uri)) == (2, 2)
    assert "--yes" in outcome.err
    outcome = lakelog("repair", uri, "--yes")
    assert (outcome.code, _files(uri)) == (0, 1)
    assert "_delta_log/_repair/" in outcome.lines[-1]
    outcome = lakelog("repair", uri)
    assert (outcome.code, "Nothing is broken" in outcome.out) == (0, True)


def test_there_is_a_way_back(uri: str) -> None:
    found = lakelog_json("repair", uri, "--yes")
    assert (found["version"], [each["kind"] for each in found["defects"]]) == (2, ["missing file"])
    back = lakelog_json("repair", uri, "--yes", "--undo", found["backup"])
    assert back == {"table": uri, "backup": found["backup"], "version": 3}
    assert _files(uri) == 2
    assert "again, by version" not in lakelog("repair", uri, "--yes", "--undo", "/nowhere").out


def test_what_is_left_is_an_exit_code(uri: str) -> None:
    Path(uri, "_delta_log", f"{0:020d}.json").unlink()
    outcome = lakelog("repair", uri, "--yes")
    assert (outcome.code, "gap" in outcome.out) == (1, True)
    assert lakelog("repair", uri, "--undo", "x", "--dry-run").code == 2
