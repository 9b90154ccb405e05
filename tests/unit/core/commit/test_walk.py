"""How far a reader has to walk to follow one commit: each file more is one more to hold in mind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakelog.core
import lakelog.logstores
from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile
from support.garbage import uncollected

if TYPE_CHECKING:
    from types import FrameType

MOST_FILES, MOST_CALLS = 49, 208

# Not by the folder's name alone: a clone may be called lakelog, and hold an environment.
_ROOTS = tuple(
    f"{Path(root).parent}/" for root in (lakelog.core.__file__, lakelog.logstores.__file__)
)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_ROOTS)


def _module(frame: FrameType | None) -> str:
    return frame.f_code.co_filename.rpartition("/lakelog/")[2] if frame is not None else ""


def test_the_commit_of_one_file_is_a_short_walk(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"month": [1, 2, 3]}))
    log = DeltaLog.for_table(uri)
    files: set[str] = set()
    calls: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            caller = caller.f_back
        files.add(_module(frame))
        if caller is not None and _module(caller) != _module(frame):
            calls.append(f"{_module(caller)} -> {_module(frame)}:{frame.f_code.co_name}")

    def commit(name: str, profile: Any = None) -> None:
        txn = log.start_transaction()
        add = AddFile(
            path=name,
            partition_values={},
            size=1,
            modification_time=1,
            data_change=True,
            stats='{"numRecords":1}',
        )
        operation = Operation("WRITE", {"mode": "Append"})
        before = sys.getprofile()
        with uncollected():
            sys.setprofile(profile)
            try:
                txn.commit([add], operation)
            finally:
                sys.setprofile(before)

    for number in range(4):  # what is worked out once is worked out now
        commit(f"part-{number}.parquet")
    commit("part-4.parquet", note)
    assert len(files) <= MOST_FILES, sorted(files)
    assert len(calls) <= MOST_CALLS, sorted(calls)
