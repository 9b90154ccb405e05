"""Files of a change of rows whose commit is in the table, or may be, stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, OptimisticTransaction, delete_rows, lit, update_rows, write_arrow
from lakelog.core.errors import PostCommitHookFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakelog.core import Operation
    from lakelog.core.actions import Action


@pytest.mark.parametrize("failure", [PostCommitHookFailedError("after it"), KeyboardInterrupt()])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_what_fails_behind_the_commit_takes_no_file_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, vectors: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(
        uri,
        pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}),
        properties={"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"},
        mode="append",
    )
    commit = OptimisticTransaction.commit_if_needed

    def failing(
        self: OptimisticTransaction, actions: Sequence[Action], operation: Operation
    ) -> int | None:
        commit(self, actions, operation)
        raise failure

    monkeypatch.setattr(OptimisticTransaction, "commit_if_needed", failing)
    with pytest.raises(type(failure)):
        update_rows(uri, {"v": lit("new")}, "id = 1")
    with pytest.raises(type(failure)):
        delete_rows(uri, "id = 2")

    rows = DeltaLog.for_table(uri).snapshot.to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "v": "new"}, {"id": 3, "v": "c"}]
