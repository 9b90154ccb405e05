"""Whatever one client writes the others read: any schema, any values, any kind of checkpoint."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.log.file_names import commit_name
from support.deltalake_writer import DeltalakeWriter, PeerCrashedError, PeerRefusedError
from support.drawn_tables import DrawnTable, drawn, drawn_tables
from support.examples import SEED, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.delta_spark_peer import DeltaSparkPeer

DELTA = "spark.databricks.delta."
TABLES = 24
"""Drawn for delta-spark, which takes some seconds for each; `make soak` draws more, others."""
CHECKPOINTS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "none": ({}, {}, "*.checkpoint*"),
    "classic": ({}, {}, "*.checkpoint.parquet"),
    "classic with structs": (
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {},
        "*.checkpoint.parquet",
    ),
    "multi-part": ({}, {f"{DELTA}checkpoint.partSize": "1"}, "*.checkpoint.0*.parquet"),
    "v2 json": (
        {"delta.checkpointPolicy": "v2"},
        {
            f"{DELTA}checkpointV2.topLevelFileFormat": "json",
            f"{DELTA}checkpoint.partSize": "1",
        },
        "*.checkpoint.*.json",
    ),
    "v2 parquet": (
        {"delta.checkpointPolicy": "v2"},
        {
            f"{DELTA}checkpointV2.topLevelFileFormat": "parquet",
            f"{DELTA}checkpoint.partSize": "1",
        },
        "*.checkpoint.*-*.parquet",
    ),
}
"""Kind -> properties of the table, confs, and what the files are called."""


def write_ours(path: str, table: DrawnTable, checkpoint: str) -> None:
    """Two commits, the checkpoint, and nothing before it."""
    properties, conf, names = CHECKPOINTS[checkpoint]
    half = (table.data.num_rows + 1) // 2
    write_arrow(
        path,
        table.data.slice(0, half),
        partition_by=table.partition_by or None,
        properties=properties,
        mode="append",
    )
    write_arrow(path, table.data.slice(half), mode="append")
    if checkpoint == "none":
        return
    log = DeltaLog.for_table(path, conf)
    log.checkpoint()
    folder = Path(path) / "_delta_log"
    # A single file makes no parts.
    assert log.snapshot.num_files < 2 or list(folder.glob(names)), checkpoint
    for version in range(log.snapshot.version):
        (folder / commit_name(version)).unlink()


def assert_ours_reads(path: str, table: DrawnTable) -> None:
    snapshot = DeltaLog.for_table(path).snapshot
    assert table.rows(snapshot.to_arrow()) == table.rows()
    for row in range(table.data.num_rows):
        assert snapshot.to_arrow(where=f"id = {row}").num_rows == 1


def described(table: DrawnTable) -> str:
    """What to look at when a drawn table fails."""
    return f"{table.data.schema}\npartitioned by {table.partition_by}\n{table.data.to_pylist()}"


@pytest.fixture(scope="module")
def tables() -> list[tuple[DrawnTable, str]]:
    kinds = itertools.cycle(CHECKPOINTS)
    return [(table, next(kinds)) for table in drawn(examples(TABLES), 20240229 + SEED)]


@pytest.mark.timeout(280)
def test_delta_spark_reads_what_we_write(
    delta_spark: DeltaSparkPeer, tmp_path: Path, tables: list[tuple[DrawnTable, str]]
) -> None:
    for number, (table, checkpoint) in enumerate(tables):
        path = str(tmp_path / str(number))
        write_ours(path, table, checkpoint)
        assert_ours_reads(path, table)
        theirs = table.rows(delta_spark.read(path))
        assert theirs == table.rows(), f"{checkpoint}\n{described(table)}"
        if table.data.num_rows:
            # By our statistics, which it prunes with.
            assert delta_spark.count(path, where="id = 0") == 1
        shutil.rmtree(path)


@pytest.mark.timeout(280)
def test_we_read_what_delta_spark_writes(
    delta_spark: DeltaSparkPeer, tmp_path: Path, tables: list[tuple[DrawnTable, str]]
) -> None:
    for number, (table, checkpoint) in enumerate(tables):
        path = str(tmp_path / str(number))
        properties, conf, names = CHECKPOINTS[checkpoint]
        half = (table.data.num_rows + 1) // 2
        options = {**properties, "mergeSchema": "true"}
        first, second = table.data.slice(0, half), table.data.slice(half)
        delta_spark.write(path, first, partition_by=table.partition_by, options=options)
        delta_spark.write(path, second)
        if checkpoint != "none":
            for key, value in conf.items():
                delta_spark.sql(f"SET {key}={value}")
            version = delta_spark.checkpoint(path)
            for key in conf:
                delta_spark.sql(f"RESET {key}")
            folder = Path(path) / "_delta_log"
            assert table.data.num_rows < 2 or list(folder.glob(names)), checkpoint
            for each in range(version):
                (folder / commit_name(each)).unlink()
        assert_ours_reads(path, table)
        shutil.rmtree(path)


@pytest.fixture(scope="module")
def deltalake_writer() -> Iterator[DeltalakeWriter]:
    with DeltalakeWriter() as writer:
        yield writer


any_table = settings(
    deadline=None,
    max_examples=examples(30),
    # Tables that the peer can't write are drawn again, and some are large.
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


@any_table
@given(drawn_tables(), st.sampled_from(sorted(CHECKPOINTS)))
@pytest.mark.timeout(280)
def test_deltalake_reads_what_we_write(
    tmp_path_factory: pytest.TempPathFactory, table: DrawnTable, checkpoint: str
) -> None:
    path = str(tmp_path_factory.mktemp("t"))
    write_ours(path, table, checkpoint)
    assert_ours_reads(path, table)
    assert table.rows(by_deltalake(path)) == table.rows()
    shutil.rmtree(path)


@any_table
@given(drawn_tables(), st.booleans())
@pytest.mark.timeout(280)
def test_we_read_what_deltalake_writes(
    tmp_path_factory: pytest.TempPathFactory,
    deltalake_writer: DeltalakeWriter,
    table: DrawnTable,
    checkpointed: bool,
) -> None:
    path = str(tmp_path_factory.mktemp("t"))
    half = (table.data.num_rows + 1) // 2
    parts = [table.data.slice(0, half), table.data.slice(half)]
    try:
        deltalake_writer.write(path, parts, table.partition_by, checkpointed=checkpointed)
    except PeerCrashedError:
        assume(False)
    except PeerRefusedError as exc:
        # It forgets to enable the feature for times without zone that are inside a map.
        assume("does not have the required 'timestampNtz' feature" not in str(exc))
        # Its own text of a partition's negative decimal, such as "0.-1" of -0.01, is none to it.
        assume(re.search(r"parse value '-?\d*\.-\d+' as 'decimal", str(exc)) is None)
        raise
    if checkpointed:
        (Path(path) / "_delta_log" / commit_name(0)).unlink()
    assert_ours_reads(path, table)
    shutil.rmtree(path)


def by_deltalake(path: str) -> Any:
    table = deltalake.DeltaTable(path)
    if "v2Checkpoint" in (table.protocol().reader_features or ()):
        # Its reader by pyarrow refuses such tables, its engine reads them.
        found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
        return pa.table(found.read_all())
    return table.to_pyarrow_table()
