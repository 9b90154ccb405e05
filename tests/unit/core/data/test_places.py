"""A log can't lead its readers out of the table, but for where it openly says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, Operation, delete_rows, update_rows, write_arrow
from lakelog.core.change_feed.feed import table_changes
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.errors import CorruptLogError
from lakelog.core.log.file_names import sidecar_path
from lakelog.spark.reading.layout import layouts
from support.raw_log import PROTOCOL, RawLog, add, metadata
from support.tables import add_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ESCAPES = [
    "../secret.parquet",
    "./../secret.parquet",
    "a/../../secret.parquet",
    "a//../../secret.parquet",
    "%2e%2e/secret.parquet",
    "%2E.%2Fsecret.parquet",
    "p=1%2f..%2F..%2Fsecret.parquet",
    "..",
    "a/..",
    "link/secret.parquet",
    "inner/secret.parquet",
    "linked.parquet",
]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file beside the table, to which links of the table lead."""
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": pa.array([42], pa.int64()), "p": ["x"]}), secret)
    table = tmp_path / "t"
    table.mkdir()
    (table / "link").symlink_to(tmp_path)
    (table / "inner").symlink_to(table / "link")
    (table / "linked.parquet").symlink_to(secret)
    return secret


def table_of(secret: Path, path: str) -> str:
    size = secret.stat().st_size
    file = add(path, size=size, stats='{"numRecords":1}')
    return RawLog(secret.parent / "t").commit(PROTOCOL, metadata(), file).table


DOORS: dict[str, Callable[[str], object]] = {
    "read": lambda uri: DeltaLog.for_table(uri).snapshot.to_arrow(),
    "batches": lambda uri: list(DeltaLog.for_table(uri).snapshot.to_batches()),
    "delete": lambda uri: delete_rows(uri, "a = 42"),
    "update": lambda uri: update_rows(uri, {"a": 1}),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("path", ESCAPES)
def test_a_relative_path_that_leaves_the_table_is_refused_and_its_file_untouched(
    secret: Path, path: str, door: Callable[[str], object]
) -> None:
    uri, before = table_of(secret, path), secret.read_bytes()
    with pytest.raises(CorruptLogError) as caught:
        door(uri)
    assert caught.value.path == path
    assert secret.read_bytes() == before
    assert DeltaLog.for_table(uri).snapshot.version == 0


@pytest.mark.parametrize("path", ESCAPES)
def test_it_can_be_taken_out_of_the_table_and_its_file_stays(secret: Path, path: str) -> None:
    uri, before = table_of(secret, path), secret.read_bytes()
    write_arrow(uri, pa.table({"a": [1], "p": ["y"]}), mode="overwrite")
    assert DeltaLog.for_table(uri).snapshot.to_arrow()["a"].to_pylist() == [1]
    assert secret.read_bytes() == before


@pytest.mark.parametrize("head", ["", "file:", "file://"])
def test_an_absolute_path_is_followed_as_shallow_clones_want_it(secret: Path, head: str) -> None:
    uri = table_of(secret, f"{head}{secret}")
    assert DeltaLog.for_table(uri).snapshot.to_arrow()["a"].to_pylist() == [42]
    delete_rows(uri, "a = 42")
    assert secret.exists()


def test_links_within_the_table_and_to_the_table_are_followed(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_arrow(str(table), pa.table({"a": [1]}), mode="append")
    (file,) = table.glob("*.parquet")
    file.rename(table / "moved")
    file.symlink_to(table / "moved")
    (tmp_path / "to it").symlink_to(table)
    for uri in (table, tmp_path / "to it"):
        assert DeltaLog.for_table(uri).snapshot.to_arrow()["a"].to_pylist() == [1]


@pytest.mark.parametrize("path", ESCAPES[:9])
def test_no_one_commits_such_a_path(tmp_path: Path, path: str) -> None:
    write_arrow(str(tmp_path / "t"), pa.table({"a": [1]}), mode="append")
    txn = DeltaLog.for_table(tmp_path / "t").start_transaction()
    with pytest.raises(CorruptLogError, match="not in the table"):
        txn.commit([add_file(path)], Operation.write("Append"))


@pytest.mark.parametrize("path", ["../x", "a/../../x", "%2e%2e%2fx"])
def test_other_storages_have_no_way_out_either(path: str) -> None:
    files = pa.table({"path": [path], "partition_values": [None]})
    with pytest.raises(CorruptLogError, match="not in the table"):
        layouts("s3://b/t", files, [], ["a"])


@pytest.mark.parametrize("prefix", ["../", "/etc/", "a/../../", ".."])
def test_the_prefix_of_a_deletion_vector_is_a_folder_of_the_table(prefix: str) -> None:
    text = prefix + "ab^-aqEH.-t@S}K{vb[*"
    with pytest.raises(ValueError, match="not a folder of the table"):
        vector_path({"storageType": "u", "pathOrInlineDv": text}, "/t")


@pytest.mark.parametrize("path", ["../../x", "..%2F..%2Fx", "/etc/x", "s3://other/x", "x"])
def test_a_sidecar_is_in_the_logs_own_folder(path: str) -> None:
    assert sidecar_path("/t", path) == "/t/_delta_log/_sidecars/x"


def test_changes_are_not_read_from_elsewhere(secret: Path) -> None:
    log = RawLog(secret.parent / "t")
    log.commit(PROTOCOL, metadata(configuration={"delta.enableChangeDataFeed": "true"}))
    change = {"path": "../secret.parquet", "partitionValues": {}, "size": 1, "dataChange": False}
    log.commit({"cdc": change})
    with pytest.raises(CorruptLogError, match="not in the table"):
        table_changes(log.table, 1, 1).read_all()
