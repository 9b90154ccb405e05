"""What users can do with a table, each as a function that one of `worlds` is given."""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import lakelog.core as core
from lakelog.cli.app import EXIT_CANNOT_RUN
from lakelog.core import Operation, alter
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.schema import PrimitiveType, StructField, StructType, identity_column
from lakelog.logstores import MemoryLogStore
from support.growth.worlds import MARKED, Axis, World
from support.terminal import lakelog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core.actions import AddFile

Work = "Callable[[], object]"
MAPPED = {"delta.columnMapping.mode": "name"}
UNMARKED = dict.fromkeys(("vectors", "deleted rows"), "refused for tables with deletion vectors")
MERGE_ALL = ("when_matched_update_all", "when_not_matched_insert_all")
MERGE_SOME = (
    *("when_matched_update", "when_matched_delete", "when_not_matched_insert"),
    *("when_not_matched_by_source_update", "when_not_matched_by_source_delete"),
)
OF_ANY_AGE = {
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"
}
FED = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class Measured:
    """One way to call a public operation."""

    operations: tuple[str, ...]
    """Its public name, `DeltaLog.history` say; several where they are called together."""
    way: str
    prepare: Callable[[World], Callable[[], object]]
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of the tables that it needs."""
    filters: bool = False
    """Whether it takes a filter."""
    only: frozenset[str] = frozenset()
    """The axes that it is measured on; all of them by default."""
    not_for: Mapping[str, str] = field(default_factory=dict)
    """The axes that it can't be measured on, and why."""

    def fits(self, axis: Axis) -> bool:
        """Whether it is measured on an axis."""
        if axis.name not in (self.only or {axis.name}):
            return False
        if not self.only and axis.only and axis.only.isdisjoint(self.operations):
            return False
        wanted = self.filters or not axis.of_filters or bool(self.only)
        return wanted and axis.name not in self.not_for

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.operations[0]} ({self.way})" if self.way else self.operations[0]


OPERATIONS: list[Measured] = []


def measured(
    operations: str | tuple[str, ...],
    way: str = "",
    *,
    into: list[Measured] = OPERATIONS,
    **more: Any,
) -> Callable[[Any], Any]:
    """Register the function below as what prepares an operation and returns its work."""
    names = (operations,) if isinstance(operations, str) else operations

    def register(prepare: Callable[[World], Callable[[], object]]) -> Any:
        into.append(Measured(names, way, prepare, **more))
        return prepare

    return register


# Writing


@measured("write_arrow", "append")
def _(world: World) -> Callable[[], object]:
    data = world.rows()
    return lambda: core.write_arrow(world.uri, data, mode="append")


@measured("write_arrow", "overwrite")
def _(world: World) -> Callable[[], object]:
    data = world.rows()
    return lambda: core.write_arrow(world.uri, data, mode="overwrite")


@measured("write_arrow", "merge as many columns")
def _(world: World) -> Callable[[], object]:
    data = world.rows()
    for name in world.columns:
        data = data.append_column(f"new {name}".replace(" ", "_"), data[name])
    return lambda: core.write_arrow(world.uri, data, schema_mode="merge", mode="append")


@measured("write_arrow", "overwrite the schema", not_for={"constraints": "they need the columns"})
def _(world: World) -> Callable[[], object]:
    names = world.rows().schema.names
    data = world.rows().rename_columns([n if n == "day" else f"new_{n}" for n in names])
    return lambda: core.write_arrow(world.uri, data, mode="overwrite", schema_mode="overwrite")


@measured("write_arrow", "new table")
def _(world: World) -> Callable[[], object]:
    data = world.rows()
    by = ["day"] if world.axis.name == "partitions" else None
    new = str(world.folder / "new")
    return lambda: core.write_arrow(new, data, partition_by=by, mode="append")


@measured("delete_rows", "rewrite", filters=True)
def _(world: World) -> Callable[[], object]:
    where = world.where
    return lambda: core.delete_rows(world.uri, where)


@measured("delete_rows", "vectors", filters=True, properties=MARKED)
def _(world: World) -> Callable[[], object]:
    where = world.where
    return lambda: core.delete_rows(world.uri, where)


@measured("delete_rows", "all")
def _(world: World) -> Callable[[], object]:
    return lambda: core.delete_rows(world.uri)


@measured("write_arrow", "replace the partitions", filters=True)
def _(world: World) -> Callable[[], object]:
    data = world.rows()
    if world.axis.name != "partitions":
        return lambda: core.write_arrow(world.uri, data, mode="append")
    return lambda: core.write_arrow(
        world.uri, data, mode="overwrite", replace_where="day >= '2000-01-01'"
    )


@measured("update_rows", "rewrite", filters=True)
def _(world: World) -> Callable[[], object]:
    where = world.where
    values = {name: pc.field(name) for name in world.columns}
    return lambda: core.update_rows(world.uri, values, where)


@measured("update_rows", "vectors", filters=True, properties=MARKED)
def _(world: World) -> Callable[[], object]:
    where = world.where
    values = {name: pa.scalar(None) for name in world.columns}
    return lambda: core.update_rows(world.uri, values, where)


@measured("update_rows", "SQL", only=frozenset({"columns", "fields", "rows"}))
def _(world: World) -> Callable[[], object]:
    values = {name: f"`{name}`" for name in world.columns}
    return lambda: core.update_rows(world.uri, values)


@measured(
    ("merge", *(f"MergeBuilder.{name}" for name in ("execute", *MERGE_ALL))),
    "all columns",
    only=frozenset({"files", "partitions", "columns", "fields", "rows"}),
)
def _(world: World) -> Callable[[], object]:
    merge = core.merge(world.uri, world.rows(), ["id"])
    return merge.when_matched_update_all().when_not_matched_insert_all().execute


@measured("merge", "vectors", properties=MARKED, only=frozenset({"vectors", "deleted rows"}))
def _(world: World) -> Callable[[], object]:
    return (
        core.merge(world.uri, world.rows(), "target.id = source.id").when_matched_delete().execute
    )


@measured("merge", "new columns", only=frozenset({"columns"}))
def _(world: World) -> Callable[[], object]:
    names = world.rows().schema.names
    source = world.rows().rename_columns([n if n == "id" else f"new_{n}" for n in names])
    merge = core.merge(world.uri, source, ["id"], with_schema_evolution=True)
    return merge.when_matched_update_all().when_not_matched_insert_all().execute


@measured(
    ("merge", *(f"MergeBuilder.{name}" for name in MERGE_SOME)),
    "SQL",
    only=frozenset({"columns", "rows"}),
)
def _(world: World) -> Callable[[], object]:
    new = {name: f"source.`{name}`" for name in world.columns}
    return (
        core.merge(world.uri, world.rows(), "target.id = source.id + 1")
        .when_matched_delete("source.id = 1")
        .when_matched_update(new)
        .when_not_matched_insert({"id": "source.id", **new})
        .when_not_matched_by_source_delete("target.id = 2")
        .when_not_matched_by_source_update({"id": "target.id + 1"})
        .execute
    )


@measured("merge", "SQL of fields", only=frozenset({"fields"}))
def _(world: World) -> Callable[[], object]:
    new = {f"s.f{i}": f"source.s.f{i}" for i in range(world.n)}
    return core.merge(world.uri, world.rows(), ["id"]).when_matched_update(new).execute


@measured("merge", "many literals", only=frozenset({"literals: OR"}))
def _(world: World) -> Callable[[], object]:
    where = world.where.replace("id", "target.id")
    merge = core.merge(world.uri, world.rows(), ["id"])
    return merge.when_matched_update({"value": "2.5"}, where).execute


@measured("update_rows", "change data feed", filters=True, properties=FED)
def _(world: World) -> Callable[[], object]:
    where = world.where
    values = {name: pa.scalar(None) for name in world.columns}
    return lambda: core.update_rows(world.uri, values, where)


# Making and altering tables


@measured("create_table")
def _(world: World) -> Callable[[], object]:
    schema, new = from_arrow_schema(world.rows().schema), str(world.folder / "new")
    return lambda: core.create_table(new, schema)


@measured("create_table", "column mapping")
def _(world: World) -> Callable[[], object]:
    schema, new = from_arrow_schema(world.rows().schema), str(world.folder / "new")
    return lambda: core.create_table(new, schema, properties=MAPPED)


@measured("create_table", "replace")
def _(world: World) -> Callable[[], object]:
    schema = from_arrow_schema(world.rows().schema)
    return lambda: core.create_table(world.uri, schema, mode="replace")


@measured("convert_to_delta")
def _(world: World) -> Callable[[], object]:
    os.rename(f"{world.uri}/_delta_log", f"{world.folder}/log")
    for vector in glob.glob(f"{world.uri}/*.bin"):
        os.unlink(vector)
    by = {"day": "string"} if world.axis.name == "partitions" else None
    if by:
        (file, *_) = glob.glob(f"{world.uri}/day=*/*")
        os.rename(file, f"{world.folder}/file")
        shutil.rmtree(world.uri)
        for i in range(world.n):
            os.makedirs(f"{world.uri}/day={i}")
            os.link(f"{world.folder}/file", f"{world.uri}/day={i}/file.parquet")
    return lambda: core.convert_to_delta(world.uri, by)


@measured("add_columns", "as many again")
def _(world: World) -> Callable[[], object]:
    fields = from_arrow_schema(world.rows().schema)
    new = StructType(tuple(StructField(f"new_{f.name}", f.data_type) for f in fields))
    return lambda: alter.add_columns(world.uri, new)


@measured("add_columns", "one")
def _(world: World) -> Callable[[], object]:
    new = StructType((StructField("new", PrimitiveType("long")),))
    return lambda: alter.add_columns(world.uri, new, first=True)


@measured("rename_column", properties=MAPPED)
def _(world: World) -> Callable[[], object]:
    return lambda: alter.rename_column(world.uri, world.columns[-1], "another")


@measured("drop_columns", "all but one", properties=MAPPED)
def _(world: World) -> Callable[[], object]:
    return lambda: alter.drop_columns(world.uri, world.columns)


@measured("change_column")
def _(world: World) -> Callable[[], object]:
    return lambda: alter.change_column(world.uri, world.columns[-1], comment="the last")


@measured("add_constraint")
def _(world: World) -> Callable[[], object]:
    return lambda: alter.add_constraint(world.uri, "new", "id >= -1000000")


@measured("drop_constraint")
def _(world: World) -> Callable[[], object]:
    alter.add_constraint(world.uri, "old", "id >= -1000000")
    return lambda: alter.drop_constraint(world.uri, "old")


@measured("set_properties", "as many again")
def _(world: World) -> Callable[[], object]:
    many = {f"own.new.{i}": "x" for i in range(world.n)}
    return lambda: alter.set_properties(world.uri, many)


@measured("unset_properties", "as many")
def _(world: World) -> Callable[[], object]:
    many = [f"own.{i}" for i in range(world.n)]
    return lambda: alter.unset_properties(world.uri, many, if_exists=True)


@measured("enable_row_tracking")
def _(world: World) -> Callable[[], object]:
    return lambda: alter.enable_row_tracking(world.log())


@measured("drop_feature", properties=MARKED, only=frozenset({"vectors"}))
def _(world: World) -> Callable[[], object]:
    return lambda: alter.drop_feature(world.uri, "deletionVectors")


@measured("replace_columns", only=frozenset({"columns", "fields"}))
def _(world: World) -> Callable[[], object]:
    (first, *others) = from_arrow_schema(world.rows().schema)
    new = StructType((first, StructField("new", PrimitiveType("long")), *others))
    return lambda: alter.replace_columns(world.uri, new)


@measured("cluster_by", only=frozenset({"files", "columns"}))
def _(world: World) -> Callable[[], object]:
    return lambda: alter.cluster_by(world.uri, ["id", world.columns[0]])


def _numbered(world: World) -> str:
    """A table with many identity columns."""
    fields = tuple(identity_column(f"i{i}") for i in range(world.n))
    uri = str(world.folder / "numbered")
    core.create_table(uri, StructType((StructField("id", PrimitiveType("long")), *fields)))
    return uri


@measured("sync_identity", only=frozenset({"columns"}))
def _(world: World) -> Callable[[], object]:
    uri = _numbered(world)
    core.write_arrow(uri, {"id": [1, 2]}, mode="append")
    return lambda: alter.sync_identity(uri, f"i{world.n - 1}")


# Maintaining tables


@measured("vacuum", only=frozenset({"files", "versions", "partitions"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.vacuum(world.log())


@measured("vacuum", "deletes", only=frozenset({"files"}))
def _(world: World) -> Callable[[], object]:
    core.delete_rows(world.uri)
    conf = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    return lambda: core.vacuum(world.uri, retention_hours=0, conf=conf)


@measured("repair", only=frozenset({"files", "versions"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.repair(world.uri)


@measured("optimize", only=frozenset({"files", "partitions", "columns"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.optimize(world.uri)


@measured("optimize", "Z-order", only=frozenset({"files", "rows"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.optimize(world.uri, z_order_by=["id", "value"])


@measured("purge", properties=MARKED, only=frozenset({"vectors"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.purge(world.uri)


@measured("restore", only=frozenset({"files", "versions", "columns"}))
def _(world: World) -> Callable[[], object]:
    core.delete_rows(world.uri)
    version = world.log().snapshot.version - 1
    return lambda: core.restore(world.uri, version, conf=OF_ANY_AGE)


@measured("clone", "shallow", only=frozenset({"files", "columns", "applications"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.clone(world.uri, f"{world.folder}/new")


@measured("clone", "deep", only=frozenset({"files"}))
def _(world: World) -> Callable[[], object]:
    return lambda: core.clone(world.uri, f"{world.folder}/new", shallow=False)


@measured("table_changes", properties=FED)
def _(world: World) -> Callable[[], object]:
    return lambda: core.table_changes(world.uri, 0).read_all()


# The log


@measured("DeltaLog.snapshot")
def _(world: World) -> Callable[[], object]:
    return lambda: world.log().snapshot.num_files


@measured("DeltaLog.update")
def _(world: World) -> Callable[[], object]:
    log = world.log()
    log.snapshot  # noqa: B018  # opens the table
    alter.set_properties(world.uri, {"own.new": "x"})
    return lambda: log.update().num_files


@measured("DeltaLog.snapshot_at", "by version")
def _(world: World) -> Callable[[], object]:
    log = world.log()
    version = log.update().version - 1
    return lambda: log.snapshot_at(version=version).num_files


@measured("DeltaLog.snapshot_at", "by time")
def _(world: World) -> Callable[[], object]:
    log = world.log()
    log.update()
    return lambda: log.snapshot_at(timestamp=log.snapshot.timestamp).num_files


@measured("DeltaLog.history")
def _(world: World) -> Callable[[], object]:
    return lambda: world.log().history()


@measured("DeltaLog.checkpoint")
def _(world: World) -> Callable[[], object]:
    return lambda: world.log().checkpoint()


@measured("DeltaLog.checkpoint", "v2", properties={"delta.checkpointPolicy": "v2"})
def _(world: World) -> Callable[[], object]:
    return lambda: world.log().checkpoint()


@measured("DeltaLog.checkpoint", "and open it")
def _(world: World) -> Callable[[], object]:
    world.log().checkpoint()
    return lambda: world.log().snapshot.files()


@measured("DeltaLog.generate_symlink_manifest", not_for=UNMARKED)
def _(world: World) -> Callable[[], object]:
    return lambda: world.log().generate_symlink_manifest()


@measured("DeltaLog.upgrade_protocol")
def _(world: World) -> Callable[[], object]:
    log = world.log()
    log.snapshot  # noqa: B018  # opens the table
    return lambda: log.upgrade_protocol(3, 7)


# Snapshots


@measured("Snapshot.files", filters=True)
def _(world: World) -> Callable[[], object]:
    snapshot, where = world.log().snapshot, world.where
    return lambda: snapshot.files(where)


@measured("Snapshot.file_table_for", filters=True)
def _(world: World) -> Callable[[], object]:
    snapshot, where = world.log().snapshot, world.where
    return lambda: snapshot.file_table_for(where)


@measured("Snapshot.to_arrow", filters=True)
def _(world: World) -> Callable[[], object]:
    snapshot, where = world.log().snapshot, world.where
    return lambda: snapshot.to_arrow(where=where)


@measured("Snapshot.to_arrow", "all")
def _(world: World) -> Callable[[], object]:
    snapshot = world.log().snapshot
    return lambda: snapshot.to_arrow()


@measured("Snapshot.to_arrow", "column mapping", properties=MAPPED)
def _(world: World) -> Callable[[], object]:
    snapshot = world.log().snapshot
    return lambda: snapshot.to_arrow()


@measured("read_arrow")
def _(world: World) -> Callable[[], object]:
    log = world.log()
    return lambda: core.read_arrow(log)


@measured("Snapshot.to_batches", filters=True)
def _(world: World) -> Callable[[], object]:
    snapshot, where, columns = world.log().snapshot, world.where, world.rows().schema.names
    return lambda: list(snapshot.to_batches(columns, where=where))


@measured(("scan", "Snapshot.scan", "Scan.to_batches"), filters=True)
def _(world: World) -> Callable[[], object]:
    log, where = world.log(), world.where
    return lambda: list(core.scan(log, where=where).to_batches(ordered=False))


@measured(("Scan.count", "Scan.min", "Scan.max"))
def _(world: World) -> Callable[[], object]:
    found = world.log().snapshot.scan()
    return lambda: (found.count(), found.min("id"), found.max("id"))


@measured(("Snapshot.to_pyarrow_dataset", "Scan.to_pyarrow_dataset"))
def _(world: World) -> Callable[[], object]:
    snapshot = world.log().snapshot
    return lambda: snapshot.to_pyarrow_dataset()


PARTS_OF_A_SNAPSHOT = (
    *("schema", "read_schema", "properties", "partition_schema", "metadata", "protocol"),
    *("transactions", "domain_metadata", "timestamp", "commit_info"),
    *("tombstones", "file_table", "num_files", "size_in_bytes"),
)


@measured(tuple(f"Snapshot.{name}" for name in PARTS_OF_A_SNAPSHOT), "parts")
def _(world: World) -> Callable[[], object]:
    snapshot = world.log().snapshot
    return lambda: [getattr(snapshot, name) for name in PARTS_OF_A_SNAPSHOT]


# Transactions


def _new_files(world: World, count: int) -> list[AddFile]:
    like = world.log().snapshot.files()[0]
    return [replace(like, path=f"new-{i}", deletion_vector=None) for i in range(count)]


@measured("OptimisticTransaction.commit", "as many files again")
def _(world: World) -> Callable[[], object]:
    txn = world.log().start_transaction()
    adds = _new_files(world, world.n)
    return lambda: txn.commit(adds, Operation.write("Append"))


@measured("OptimisticTransaction.commit", "remove every file")
def _(world: World) -> Callable[[], object]:
    txn = world.log().start_transaction()
    return lambda: txn.commit(
        [file.remove(1) for file in txn.filter_files()], Operation("DELETE", {"predicate": "[]"})
    )


@measured("OptimisticTransaction.commit", "as many winners", only=frozenset({"versions"}))
def _(world: World) -> Callable[[], object]:
    txn = world.log().start_transaction()
    files = txn.filter_files([("id", ">", 1000)])
    assert not files
    new, log = _new_files(world, world.n + 1), world.log()
    for i in range(world.n):
        log.start_transaction().commit([new[i]], Operation.write("Append"))
    return lambda: txn.commit(new[-1:], Operation.write("Append"))


@measured("OptimisticTransaction.commit_large")
def _(world: World) -> Callable[[], object]:
    log = core.DeltaLog.for_table(str(world.folder / "new"))
    txn = log.start_transaction()
    txn.update_metadata(world.log().snapshot.metadata)
    files = world.log().snapshot.files()
    return lambda: txn.commit_large(files, Operation.manual())


@measured("Reads.filter_files", filters=True)
def _(world: World) -> Callable[[], object]:
    txn, where = world.log().start_transaction(), world.where
    return lambda: txn.filter_files(where)


@measured("Reads.filter_file_table", filters=True)
def _(world: World) -> Callable[[], object]:
    txn, where = world.log().start_transaction(), world.where
    return lambda: txn.reads.filter_file_table(where)


@measured("Reads.files_in_same_partitions")
def _(world: World) -> Callable[[], object]:
    txn = world.log().start_transaction()
    files = world.log().snapshot.files()
    return lambda: txn.reads.files_in_same_partitions(files)


@measured(
    ("Reads.txn_version", "Snapshot.txn_version"),
    "of every application",
    only=frozenset({"applications"}),
)
def _(world: World) -> Callable[[], object]:
    txn = world.log().start_transaction()
    return lambda: [txn.txn_version(f"app {i}") for i in range(world.n)]


@measured("Changes.advance_identity_columns", only=frozenset({"columns"}))
def _(world: World) -> Callable[[], object]:
    txn = core.DeltaLog.for_table(_numbered(world)).start_transaction()
    return lambda: txn.changes.advance_identity_columns({f"i{i}": 7 for i in range(world.n)})


@measured("Changes.update_metadata")
def _(world: World) -> Callable[[], object]:
    txn, metadata = world.log().start_transaction(), world.log().snapshot.metadata
    return lambda: txn.update_metadata(metadata)


@measured("Changes.update_metadata_for_new_table")
def _(world: World) -> Callable[[], object]:
    metadata = world.log().snapshot.metadata
    txn = core.DeltaLog.for_table(str(world.folder / "new")).start_transaction()
    return lambda: txn.changes.update_metadata_for_new_table(metadata)


# Schemas, as those of other writers come


@measured(
    tuple(f"StructType.{name}" for name in ("get", "names", "json_value", "to_json", "from_json")),
    "there and back",
    only=frozenset({"columns", "fields"}),
)
def _(world: World) -> Callable[[], object]:
    schema = world.log().snapshot.schema
    inner = schema.fields[-1].data_type if world.axis.name == "fields" else schema
    assert isinstance(inner, StructType)

    def work() -> object:
        again = StructType.from_json(schema.to_json())
        return again, [inner.get(name.upper()) for name in inner.names], schema.json_value()

    return work


# Stores


@measured(tuple(f"LogStore.{name}" for name in ("read", "read_bytes", "write")), "lines")
def _(world: World) -> Callable[[], object]:
    store, lines = world.log().store, [f"line {i}" for i in range(world.n)]
    path = f"{world.log().table}/_delta_log/{10**19:020d}.json"

    def work() -> object:
        store.write(path, lines)
        return list(store.read(path)), store.read_bytes(path)

    return work


@measured("LogStore.list_from", only=frozenset({"versions"}))
def _(world: World) -> Callable[[], object]:
    log = world.log()
    return lambda: list(log.store.list_from(f"{log.table}/_delta_log/{0:020d}.json"))


@measured("LogStore.list_from", "in memory", only=frozenset({"versions"}))
def _(world: World) -> Callable[[], object]:
    store = MemoryLogStore()
    folder = f"memory:///growth-{uuid.uuid4().hex}"

    store.create_folder(folder)

    def work() -> object:
        for i in range(world.n):
            store.write(f"{folder}/{i:020d}.json", ["{}"])
        return list(store.list_from(f"{folder}/{0:020d}.json"))

    return work


# The command line


def _run(*words: str) -> None:
    outcome = lakelog(*words)
    assert outcome.code != EXIT_CANNOT_RUN, outcome.err


def _command(*words: str) -> Callable[[World], Callable[[], object]]:
    def prepare(world: World) -> Callable[[], object]:
        return lambda: _run(words[0], world.uri, *words[1:])

    return prepare


measured("cli.checkpoint")(_command("checkpoint"))
measured("cli.describe")(_command("describe"))
measured("cli.files", "all")(_command("files", "--all"))
measured("cli.files", "summary")(_command("files", "--summary"))
measured("cli.history", "all")(_command("history", "--all"))
measured("cli.manifest", not_for=UNMARKED)(_command("manifest"))
measured("cli.vacuum", only=frozenset({"files"}))(_command("vacuum", "--dry-run"))
measured("cli.repair", only=frozenset({"files"}))(_command("repair", "--dry-run"))
measured("cli.optimize", only=frozenset({"files"}))(_command("optimize", "--dry-run"))
measured("cli.restore", only=frozenset({"files"}))(
    _command(
        *("restore", "--version", "0", "--dry-run"),
        *(word for key, value in OF_ANY_AGE.items() for word in ("--conf", f"{key}={value}")),
    )
)
measured("cli.diff", only=frozenset({"files", "versions", "columns"}))(_command("diff", "0"))
measured("cli.sample", only=frozenset({"files", "columns"}))(_command("sample"))
measured("cli.schema", only=frozenset({"columns", "fields"}))(_command("schema"))
measured("cli.schema", "SQL", only=frozenset({"columns", "fields"}))(_command("schema", "--sql"))
measured("cli.properties", only=frozenset({"properties"}))(_command("properties"))
measured("cli.delete", only=frozenset({"files"}))(
    _command("delete", "--where", "id >= 1", "--dry-run")
)


@measured("cli.update", only=frozenset({"files", "columns"}))
def _(world: World) -> Callable[[], object]:
    words = [word for name in world.columns for word in ("--set", f"{name}={name}")]
    return lambda: _run("update", world.uri, *words, "--dry-run")


@measured("cli.conflicts", "as many commits", only=frozenset({"versions"}))
def _(world: World) -> Callable[[], object]:
    events = f"{world.folder}/events.jsonl"
    conf = {"spark.lakelog.commitEvents.path": events}
    for number, file in enumerate(_new_files(world, world.n)):
        log = core.DeltaLog.for_table(world.uri, {**conf, "spark.app.name": f"job {number}"})
        txn = log.start_transaction()
        txn.filter_files([("id", "=", number)])
        txn.commit([file], Operation("UPDATE"))
    return lambda: _run("conflicts", events)
