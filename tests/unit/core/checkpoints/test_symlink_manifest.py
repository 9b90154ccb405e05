"""Symlink manifests: written whole by a call, partition by partition after commits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import DeltaAnalysisError, PostCommitHookFailedError
from lakelog.core.log.own_files import MANIFEST_FOLDER
from lakelog.core.paths import encode_path
from support.examples import examples
from support.raw_log import RawLog, metadata
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Action, AddFile

APPEND = Operation.write("Append")
KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
THROW = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "a table")


def partitioned(
    uri: str, properties: Mapping[str, str] | None = None, conf: Mapping[str, str] | None = None
) -> DeltaLog:
    schema = schema_json(id="long", p="string", n="long")
    return new_table(
        uri, schema=schema, partition_by=["p", "n"], properties=properties, conf=conf or THROW
    )


def commit(log: DeltaLog, *actions: Action) -> int:
    return log.start_transaction().commit(list(actions), APPEND)


def manifests(log: DeltaLog) -> dict[str, list[str]]:
    """Folder -> lines."""
    filesystem, root = log.store.filesystem, log.store.filesystem_path(log.table)
    base = f"{root}/{MANIFEST_FOLDER}"
    selector = pyarrow.fs.FileSelector(base, recursive=True, allow_not_found=True)
    found = {}
    for info in filesystem.get_file_info(selector):
        if info.is_file:
            with filesystem.open_input_file(info.path) as source:
                found[info.path[len(base) + 1 :]] = source.read().decode().splitlines()
    return found


def test_every_partition_has_a_list_of_its_files(uri: str) -> None:
    log = partitioned(uri)
    commit(
        log,
        add_file("p=a/n=1/x", p="a", n="1"),
        add_file("p=a/n=1/y", p="a", n="1"),
        add_file("p=b/n=1/z", p="b", n="1"),
    )
    assert log.generate_symlink_manifest() == [
        f"{MANIFEST_FOLDER}/p=a/n=1/manifest",
        f"{MANIFEST_FOLDER}/p=b/n=1/manifest",
    ]
    assert manifests(log) == {
        "p=a/n=1/manifest": [f"file:{uri}/p=a/n=1/x", f"file:{uri}/p=a/n=1/y"],
        "p=b/n=1/manifest": [f"file:{uri}/p=b/n=1/z"],
    }


def test_paths_are_decoded_and_folders_escaped_as_hive_does(uri: str) -> None:
    log = partitioned(uri)
    path = encode_path("p=a b%25/n=1/it's.parquet")
    commit(
        log,
        add_file(path, p="a b%", n="1"),
        add_file("null", p=None, n="1"),
        add_file("empty", p="", n="1"),
        add_file("s3a://bucket/else%20where", p="x/y=z", n=None),
    )
    log.generate_symlink_manifest()
    assert manifests(log) == {
        "p=a b%25/n=1/manifest": [f"file:{uri}/p=a b%25/n=1/it's.parquet"],
        "p=__HIVE_DEFAULT_PARTITION__/n=1/manifest": [f"file:{uri}/empty", f"file:{uri}/null"],
        "p=x%2Fy%3Dz/n=__HIVE_DEFAULT_PARTITION__/manifest": ["s3a://bucket/else where"],
    }


def test_an_empty_table_has_no_manifests_or_one_that_is_empty(uri: str) -> None:
    log = partitioned(uri)
    assert log.generate_symlink_manifest() == []
    plain = new_table(f"{uri}/plain")
    assert plain.generate_symlink_manifest() == [f"{MANIFEST_FOLDER}/manifest"]
    assert manifests(plain) == {"manifest": []}


def test_manifests_of_partitions_that_are_gone_go(uri: str) -> None:
    log = partitioned(uri)
    a, b = add_file("a", p="a", n="1"), add_file("b", p="b", n="1")
    commit(log, a, b)
    log.generate_symlink_manifest()
    commit(log, b.remove(1))
    assert log.generate_symlink_manifest() == [f"{MANIFEST_FOLDER}/p=a/n=1/manifest"]
    assert list(manifests(log)) == ["p=a/n=1/manifest"]


def test_commits_write_nothing_unless_the_table_wants_it(uri: str) -> None:
    log = partitioned(uri)
    commit(log, add_file("a", p="a", n="1"))
    assert manifests(log) == {}


def test_a_commit_brings_the_partitions_up_to_date_that_it_touched(uri: str) -> None:
    log = partitioned(uri, KEPT)
    a, b = add_file("a", p="a", n="1"), add_file("b", p="b", n="1")
    commit(log, a, b)
    assert set(manifests(log)) == {"p=a/n=1/manifest", "p=b/n=1/manifest"}, "all, the first time"
    untouched = Path(uri, MANIFEST_FOLDER, "p=b/n=1/manifest")
    untouched.write_text("somebody else's\n")
    commit(log, add_file("a2", p="a", n="1"), add_file("c", p="c", n="1"))
    assert manifests(log) == {
        "p=a/n=1/manifest": [f"file:{uri}/a", f"file:{uri}/a2"],
        "p=b/n=1/manifest": ["somebody else's"],
        "p=c/n=1/manifest": [f"file:{uri}/c"],
    }
    commit(log, replace(b.remove(1), partition_values=None))
    assert set(manifests(log)) == {"p=a/n=1/manifest", "p=c/n=1/manifest"}


def test_a_table_without_partitions_has_one_list_that_may_be_empty(uri: str) -> None:
    log = new_table(uri, properties=KEPT, conf=THROW)
    a = add_file("a")
    commit(log, a)
    assert manifests(log) == {"manifest": [f"file:{uri}/a"]}
    commit(log, a.remove(1))
    assert manifests(log) == {"manifest": []}


def test_a_commit_without_files_writes_none(uri: str) -> None:
    log = new_table(uri, properties=KEPT, conf=THROW)
    commit(log)
    assert manifests(log) == {}


def test_what_hadoop_keeps_beside_a_local_file_does_not_outlive_it(uri: str) -> None:
    log = new_table(uri, properties=KEPT)
    commit(log, add_file("a"))
    checksum = Path(uri, MANIFEST_FOLDER, ".manifest.crc")
    checksum.write_bytes(b"of the old bytes")
    commit(log, add_file("b"))
    assert not checksum.exists()


def test_a_hook_that_fails_costs_no_commit_and_is_reported(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = partitioned(uri, KEPT, {"any": "conf"})
    Path(uri, MANIFEST_FOLDER).write_text("no folder")
    assert commit(log, add_file("a", p="a", n="1")) == 1
    assert "its post-commit hook Generate Symlink Format Manifest failed" in caplog.text
    strict = DeltaLog.for_table(uri, THROW)
    with pytest.raises(PostCommitHookFailedError, match="version 2 succeeded"):
        commit(strict, add_file("b", p="a", n="1"))


def test_deletion_vectors_refuse_manifests(uri: str) -> None:
    from lakelog.core.actions import DeletionVectorDescriptor

    log = new_table(uri, properties={"delta.enableDeletionVectors": "true"})
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="x" * 20, size_in_bytes=1, cardinality=1
    )
    stats = '{"numRecords":2,"tightBounds":false}'
    deleted = replace(add_file("a"), deletion_vector=vector, stats=stats)
    commit(log, deleted)
    off = log.start_transaction()
    off.update_metadata(replace(off.metadata, configuration={}))
    off.commit([], Operation("UNSET TBLPROPERTIES"))
    with pytest.raises(DeltaAnalysisError, match="UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"):
        log.generate_symlink_manifest()
    txn = log.start_transaction()
    with pytest.raises(DeltaAnalysisError, match="EXISTING_DELETION_VECTORS_WITH_INCREMENTAL"):
        txn.update_metadata(replace(txn.metadata, configuration=KEPT))
    commit(log, deleted.remove(1))
    assert log.generate_symlink_manifest() == [f"{MANIFEST_FOLDER}/manifest"]
    txn = log.start_transaction()
    txn.update_metadata(replace(txn.metadata, configuration=KEPT))


def test_column_mapping_refuses_manifests(uri: str) -> None:
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mapped = metadata(configuration={"delta.columnMapping.mode": "name"})
    RawLog(Path(uri)).commit(protocol, mapped)
    log = DeltaLog.for_table(uri)
    with pytest.raises(DeltaAnalysisError, match="MANIFEST_GENERATION_WITH_COLUMN_MAPPING"):
        log.generate_symlink_manifest()


def test_it_works_without_a_disk() -> None:
    log = partitioned("memory://manifests/t", KEPT)
    a = add_file("p=a/n=1/a", p="a", n="1")
    commit(log, a, add_file("p=b/n=1/b", p="b", n="1"))
    assert manifests(log) == {
        "p=a/n=1/manifest": ["memory://manifests/t/p=a/n=1/a"],
        "p=b/n=1/manifest": ["memory://manifests/t/p=b/n=1/b"],
    }
    commit(log, a.remove(1))
    assert set(manifests(log)) == {"p=b/n=1/manifest"}


def test_the_lists_name_the_files_that_hold_the_rows(uri: str) -> None:
    data = pa.table({"id": [1, 2, 3], "p": ["a b", "c%d", None]})
    write_arrow(uri, data, partition_by=["p"], properties=KEPT, mode="append")
    write_arrow(uri, data, mode="append")
    log = DeltaLog.for_table(uri)
    found = manifests(log)
    paths = [line.removeprefix("file:") for lines in found.values() for line in lines]
    assert all(Path(path).is_file() for path in paths)
    assert len(set(paths)) == log.snapshot.num_files == 6
    assert len(found) == 3


_numbers = itertools.count()
_values = st.sampled_from([None, "", "a", "b=c", "%", "é"])


@settings(max_examples=examples(16), deadline=None)
@given(st.lists(st.tuples(_values, st.booleans()), max_size=12), st.data())
def test_what_commits_leave_is_what_a_call_would_write(
    steps: list[tuple[str | None, bool]], data: st.DataObject
) -> None:
    name = f"memory://manifests/by-commits-{next(_numbers)}"
    log = partitioned(name, KEPT)
    live: list[AddFile] = []
    for number, (value, removes) in enumerate(steps):
        if removes and live:
            gone = live.pop(data.draw(st.integers(0, len(live) - 1)))
            commit(log, gone.remove(1))
        else:
            added = add_file(f"f{number}", p=value, n="1")
            live.append(added)
            commit(log, added)
    by_commits = manifests(log)
    log.generate_symlink_manifest()
    assert manifests(log) == by_commits
