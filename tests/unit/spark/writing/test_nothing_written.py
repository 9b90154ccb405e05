"""A save that commits nothing leaves nothing behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.conf import DeltaConf
from lakelog.core.schema import StructType
from lakelog.spark.format.source_writer import SourceWriter
from lakelog.spark.writing import by_spark as _native_write
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.actions import AddFile

ROWS = pa.table({"id": [1, 2, 3]})
PROGRESS = {"txnAppId": "job", "txnVersion": "5"}


def _parquet(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*.parquet")}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_batch_that_got_into_the_table_meanwhile_leaves_no_file(
    tmp_path: Path, mode: Any
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    conf = DeltaConf.from_mapping({})
    txn = DeltaLog.for_table(uri).start_transaction()
    schema = StructType.from_json(txn.metadata.schema_string)
    writer = SourceWriter(uri, schema, WriteOptions.from_options(mode, None, PROGRESS, conf), conf)
    task = writer.write(iter(ROWS.to_batches()))
    write_arrow(uri, ROWS, app_id="job", app_version=5, mode="append")
    named = _parquet(tmp_path)
    assert len(named) == 3
    writer.commit([task])
    assert len(_parquet(tmp_path)) == 2
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 6


@pytest.mark.parametrize("scheme", ["file", "s3a"])
@pytest.mark.parametrize("rows", [[], [0], [2], [0, 2, 0]])
def test_files_without_rows_do_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[int], scheme: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    before = _parquet(tmp_path / "t")
    log = DeltaLog.for_table(uri)
    layout = log.start_transaction().changes.file_layout
    plan = layout.plan(log.store, log.table)

    def run(_: object, __: object, target: str, ___: object) -> None:
        folder = tmp_path / "t" / target.rpartition("/")[2]
        folder.mkdir()
        for number, count in enumerate(rows):
            pq.write_table(ROWS.slice(0, count), folder / f"part-{number}.parquet")

    def actions_of(files: list[tuple[str, dict[str, str | None]]]) -> list[AddFile]:
        return layout.add_files_at(
            pyarrow.fs.LocalFileSystem(), plan.root, files, data_change=True, on_footer=None
        )

    def counted(rows: object) -> SimpleNamespace:
        return SimpleNamespace(frame=rows, check=lambda *_: None)

    monkeypatch.setattr(_native_write, "_run", run)
    monkeypatch.setattr(_native_write, "CountedRows", counted)
    monkeypatch.setattr(_native_write, "scheme_of", lambda _: scheme)
    adds = _native_write.write_natively(SimpleNamespace(), plan, log.table, actions_of)  # type: ignore[arg-type]  # no Spark is asked
    assert len(adds) == sum(map(bool, rows))
    assert _parquet(tmp_path / "t") - before == {add.path for add in adds}
