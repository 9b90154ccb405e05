"""Each key of the conf that the documentation names is obeyed wherever it says something.

A key that is read is known by a value that it can't have: the call refuses it by name.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    DeltaConf,
    DeltaLog,
    Operation,
    convert_to_delta,
    create_table,
    delete_rows,
    merge,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core.actions import SetTransaction
from lakelog.core.alter import add_columns, enable_row_tracking, set_properties
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import LogStoreConfError
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).parents[3] / "docs"
DOCUMENTED = {
    key
    for page in DOCS.glob("*.md")
    if page.name != "settings.md"  # made from the code: what is read there is in the code
    for key in re.findall(r"`(spark\.[A-Za-z0-9.]*[A-Za-z0-9])`", page.read_text())
}
ROWS = pa.table({"id": [1, 2, 3], "p": ["a", "b", "b"]})


def _transaction(uri: str, conf: Mapping[str, str]) -> object:
    txn = DeltaLog.for_table(uri, conf).start_transaction()
    return txn.commit([SetTransaction(app_id="job", version=1)], Operation.manual())


def _large(uri: str, conf: Mapping[str, str]) -> object:
    txn = DeltaLog.for_table(uri, conf).start_transaction()
    return txn.commit_large(iter([SetTransaction(app_id="job", version=1)]), Operation.manual())


def _converted(uri: str, conf: Mapping[str, str]) -> object:
    folder = Path(f"{uri}-parquet")
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    return convert_to_delta(str(folder), conf=conf)


READERS: dict[str, Any] = {
    "to_arrow": lambda uri, conf: DeltaLog.for_table(uri, conf).snapshot.to_arrow(),
    "history": lambda uri, conf: list(DeltaLog.for_table(uri, conf).history()),
}
ROW_WRITERS: dict[str, Any] = {
    "append": lambda uri, conf: write_arrow(uri, ROWS, conf=conf, mode="append"),
    "overwrite": lambda uri, conf: write_arrow(uri, ROWS, mode="overwrite", conf=conf),
    "delete_rows": lambda uri, conf: delete_rows(uri, "id = 2", conf=conf),
    "update_rows": lambda uri, conf: update_rows(uri, {"id": 9}, "id = 2", conf=conf),
    "merge": lambda uri, conf: (
        merge(uri, {"id": [2]}, ["id"], conf=conf).when_matched_update({"p": "'c'"}).execute()
    ),
}
COMMITS: dict[str, Any] = {
    **ROW_WRITERS,
    "create_table": lambda uri, conf: create_table(
        f"{uri}-new", DeltaLog.for_table(uri).snapshot.schema, conf=conf
    ),
    "convert_to_delta": _converted,
    "add_columns": lambda uri, conf: add_columns(uri, pa.schema({"x": pa.int64()}), conf=conf),
    "set_properties": lambda uri, conf: set_properties(uri, {"a": "b"}, conf=conf),
    "commit": _transaction,
    "commit_large": _large,
}
SPARK: dict[str, Any] = {
    "Spark's overwrite": lambda _, conf: WriteOptions.from_options(
        "overwrite", None, {}, DeltaConf.from_mapping(conf)
    ),
}
TRACKING: dict[str, Any] = {
    "enable_row_tracking": lambda uri, conf: enable_row_tracking(uri, conf=conf),
    "set_properties": lambda uri, conf: set_properties(
        uri, {"delta.enableRowTracking": "true"}, conf=conf
    ),
}
VACUUM: dict[str, Any] = {"vacuum": lambda uri, conf: vacuum(uri, conf=conf)}
DELTA = "spark.databricks.delta."


def of(doors: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: doors[name] for name in names}


CONCERNED: dict[str, dict[str, Any]] = {
    "spark.delta.logStore.class": {**READERS, **COMMITS},
    f"{DELTA}maxCommitAttempts": COMMITS,
    "spark.lakelog.commit.timeBudget": COMMITS,
    "spark.lakelog.log.maxBytes": {**READERS, **COMMITS},
    f"{DELTA}commitLock.enabled": COMMITS,
    f"{DELTA}schema.autoMerge.enabled": {**of(COMMITS, "append", "overwrite", "merge"), **SPARK},
    "spark.sql.sources.partitionOverwriteMode": {**of(COMMITS, "overwrite"), **SPARK},
    "spark.sql.parquet.compression.codec": {**ROW_WRITERS, **SPARK},
    "spark.sql.files.maxRecordsPerFile": {**ROW_WRITERS, **SPARK},
    f"{DELTA}delete.deletionVectors.persistent": of(COMMITS, "delete_rows"),
    f"{DELTA}update.deletionVectors.persistent": of(COMMITS, "update_rows"),
    f"{DELTA}merge.deletionVectors.persistent": of(COMMITS, "merge"),
    f"{DELTA}deletionVectors.packing.targetSize": of(
        COMMITS, "delete_rows", "update_rows", "merge"
    ),
    "spark.lakelog.deletionVectors.maxInlineBytes": of(
        COMMITS, "delete_rows", "update_rows", "merge"
    ),
    "spark.lakelog.merge.maxSourceBytes": of(COMMITS, "merge"),
    f"{DELTA}retentionDurationCheck.enabled": VACUUM,
    f"{DELTA}vacuum.logging.enabled": VACUUM,
    f"{DELTA}rowTracking.backfill.enabled": TRACKING,
    f"{DELTA}rowTracking.backfill.maxNumFiles": TRACKING,
}
TEXTS = {
    "spark.lakelog.commitEvents.path",
    "spark.lakelog.commitEvents.job",
    "spark.app.name",
    "spark.app.id",
}
"""What any text is a value of; `test_every_commit_tells_its_events` holds the first."""
ELSEWHERE = {
    "spark.sql.session.timeZone": "conditions and values of each entry have tests of their own",
    "spark.sql.decimalOperations.allowPrecisionLoss": "decimals have tests of their own",
    "spark.speculation": "Spark's scheduler alone",
    "spark.dynamicAllocation": "Spark's scheduler alone",
    "spark.hadoop.hive.metastore.uris": "Spark's catalog alone",
    "spark.sql.ansi.enabled": "conditions and values go by ANSI rules whatever it says",
    "spark.sql.legacy.timeParserPolicy": "patterns of times go by CORRECTED whatever it says",
    "spark.sql.streaming.checkpointLocation": "streams alone",
    "spark.lakelog.unsafe.singleWriter": "the stores that ask for it",
    "spark.lakelog.unsafe.storedExpressions": "the functions that a table's expressions call",
    f"{DELTA}schema.typeCheck.enabled": "columns of intervals, which have tests of their own",
    **dict.fromkeys(
        (
            f"{DELTA}optimize.{name}"
            for name in (
                *("minFileSize", "maxFileSize", "maxDeletedRowsRatio", "batchSize", "maxThreads"),
                "clustering.mergeStrategy.minCubeSize.threshold",
            )
        ),
        "OPTIMIZE, whose values have tests of their own",
    ),
    **dict.fromkeys(
        (
            f"{DELTA}autoCompact.{name}"
            for name in (
                *("enabled", "minNumFiles", "maxFileSize", "minFileSize"),
                "maxNumModifiedPartitions",
            )
        ),
        "auto compaction, whose values have tests of their own",
    ),
    **dict.fromkeys(
        (
            f"{DELTA}optimizeWrite.enabled",
            f"{DELTA}optimizeWrite.binSize",
            f"{DELTA}merge.repartitionBeforeWrite.enabled",
        ),
        "Spark's writes alone",
    ),
    f"{DELTA}optimizeMetadataQuery.enabled": "queries of Spark's SQL alone",
    "spark.lakelog.commit.host": "processes of one host, which have tests of their own",
    **dict.fromkeys(
        (
            "spark.lakelog.commit.service",
            "spark.lakelog.commit.service.token",
        ),
        "a service that commits, which has tests of its own",
    ),
    "spark.lakelog.commit.group": "threads that share a log, which have tests of their own",
    "spark.lakelog.checksum.inBackground": "version checksums have tests of their own",
    f"{DELTA}writeChecksumFile.enabled": "version checksums have tests of their own",
    **dict.fromkeys(
        (
            "spark.lakelog.bridge.store",
            "spark.hadoop.lakelog.bridge.endpoint",
            "spark.hadoop.lakelog.bridge.settle.seconds",
        ),
        "delta-spark's commits by our stores",
    ),
    "spark.lakelog.store.endpointProbe": "the stores on HTTP",
    "spark.lakelog.store.connect.timeBudget": "the stores on HTTP",
    "spark.lakelog.store.request.timeout": "the stores on HTTP",
    "spark.lakelog.store.retry.timeBudget": "the stores on HTTP",
    "spark.lakelog.store.warnNotDurable": "the stores that are not durable",
    **dict.fromkeys(
        (
            "spark.lakelog.read.path",
            "spark.lakelog.write.path",
            "spark.lakelog.replay",
            "spark.lakelog.replay.minBytes",
            "spark.lakelog.identity.maxTasks",
            "spark.lakelog.names.cacheSeconds",
            "spark.lakelog.names.current",
            "spark.sql.warehouse.dir",
        ),
        "how a Spark job goes about it: there is no job without Spark",
    ),
}
NOT_OURS = re.compile(
    r"spark\.(delta\.logStore\.file\.impl|driver\..*|jars.*|sql\.extensions|table"
    r"|sql|catalog(\..*)?|sql\.sources\.default|sql\.sources\.parallelPartitionDiscovery\..*|sql\.python\..*"
    r"|redaction\..*|task\.cpus)"
)
"""Spark's own, which the pages speak of, and an example."""


def test_every_documented_key_is_accounted_for() -> None:
    ours = {key for key in DOCUMENTED if not NOT_OURS.fullmatch(key)}
    assert ours == {*CONCERNED, *TEXTS, *ELSEWHERE}


CASES = [(key, name) for key, doors in CONCERNED.items() for name in doors]


@pytest.fixture
def uri(tmp_path: Path, original: str) -> str:
    return str(shutil.copytree(original, tmp_path / "t"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table that each test has a copy of."""
    uri = str(tmp_path_factory.mktemp("original") / "t")
    write_arrow(
        uri,
        ROWS,
        partition_by="p",
        properties={"delta.enableDeletionVectors": "true"},
        mode="append",
    )
    return uri


@pytest.mark.parametrize(("key", "name"), CASES, ids=[f"{k}-{n}" for k, n in CASES])
def test_a_key_is_read_at_every_door_that_it_concerns(uri: str, key: str, name: str) -> None:
    with pytest.raises((DeltaAnalysisError, LogStoreConfError), match=re.escape(key)):
        CONCERNED[key][name](uri, {key: "no such value"})
    assert DeltaLog.for_table(uri).snapshot.version == 0


@pytest.mark.parametrize("name", COMMITS)
def test_every_commit_tells_its_events(uri: str, tmp_path: Path, name: str) -> None:
    events = tmp_path / "events"
    COMMITS[name](uri, {"spark.lakelog.commitEvents.path": str(events)})
    assert events.read_text().count("\n") == 1


@pytest.mark.parametrize("name", ROW_WRITERS)
def test_files_are_as_the_conf_says(uri: str, name: str) -> None:
    conf = {
        "spark.sql.parquet.compression.codec": "ZSTD",
        "spark.sql.files.maxRecordsPerFile": "1",
        f"{DELTA}delete.deletionVectors.persistent": "false",
    }
    before = set(Path(uri).rglob("*.parquet"))
    ROW_WRITERS[name](uri, conf)
    files = [pq.ParquetFile(path) for path in set(Path(uri).rglob("*.parquet")) - before]
    assert files
    assert {file.metadata.row_group(0).column(0).compression for file in files} == {"ZSTD"}
    assert {file.metadata.num_rows for file in files} == {1}
