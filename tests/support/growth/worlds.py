"""Tables that are large in one way and small in all others."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.log.file_names import LOG_FOLDER, commit_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ROWS = 4
"""The rows of a data file, and of what is written."""
MARKED = {"delta.enableDeletionVectors": "true"}


def _day(number: int) -> str:
    return f"{2000 + number // 336}-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}"


def _narrow(rows: int = ROWS) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": pa.array([f"name {i}" for i in range(rows)]),
            "value": pa.array([i / 3 for i in range(rows)]),
            "day": pa.array([_day(0)] * rows),
        }
    )


@dataclass(frozen=True)
class World:
    """One table, made for one run of one operation."""

    axis: Axis
    n: int
    folder: Path
    """Its parent, where an operation may make more."""

    @property
    def uri(self) -> str:
        """The table's."""
        return str(self.folder / "table")

    def log(self) -> DeltaLog:
        """The table's log, opened anew."""
        return DeltaLog.for_table(self.uri)

    def rows(self) -> pa.Table:
        """Rows that fit the table; for a partitioned one, some of every partition."""
        return self.axis.rows(self.n)

    @property
    def where(self) -> Any:
        """A filter that takes in some rows of every file."""
        return self.axis.where(self.n)

    @property
    def columns(self) -> list[str]:
        """The columns that an operation may alter: all but those that others depend on."""
        return [name for name in self.rows().schema.names if name not in ("id", "day")]


@dataclass(frozen=True)
class Axis:
    """A way in which a table may be large."""

    name: str
    """What there are n of."""
    make: Callable[[World, Mapping[str, str]], object]
    """Makes the table, given the properties that an operation needs."""
    rows: Callable[[int], pa.Table] = lambda _: _narrow()
    where: Callable[[int], Any] = lambda _: "id >= 1"
    of_filters: bool = False
    """Whether it is the filter that is large: nothing to operations that take none."""
    only: frozenset[str] = frozenset()
    """The operations that have to do with it; all of them by default."""
    n: int = 16
    """The smallest of the three sizes at which lines are counted: so large that one line for each
    pair shows beside what there is for each one."""


@dataclass
class Worlds:
    """Makes worlds, each table once, and hands out copies of them."""

    folder: Path
    _made: dict[tuple[Any, ...], Path] = field(default_factory=dict)
    _copies: int = 0

    def new(self, axis: Axis, n: int, properties: Mapping[str, str]) -> World:
        """A table of its own, made of links to files that nobody writes again."""
        key = axis.name, n, *sorted(properties.items())
        if key not in self._made:
            self._made[key] = self.folder / f"made-{len(self._made)}"
            made = World(axis, n, self._made[key])
            axis.make(made, properties)
            _set_times(made)
        self._copies += 1
        world = World(axis, n, self.folder / f"copy-{self._copies}")
        shutil.copytree(self._made[key], world.folder, copy_function=os.link)
        return world

    def drop(self, world: World) -> None:
        """Delete a copy."""
        shutil.rmtree(world.folder)

    def drop_all(self) -> None:
        """Delete the tables that copies are made of."""
        self._made.clear()
        shutil.rmtree(self.folder)


def _set_times(world: World) -> None:
    """Give the commits times a second apart: within one, which is the last would be chance."""
    folder = f"{world.uri}/{LOG_FOLDER}"
    for name in os.listdir(folder):
        if name.endswith(".json"):
            second = 1_700_000_000 + int(name.split(".")[0])
            os.utime(f"{folder}/{name}", (second, second))


def _begin(
    world: World,
    properties: Mapping[str, str],
    data: pa.Table | None = None,
    partition_by: tuple[str, ...] = (),
) -> None:
    """The empty table: version 0."""
    rows: pa.Table = world.rows() if data is None else data
    schema = from_arrow_schema(rows.schema)
    # No checkpoint: with one at every tenth version the cost would depend on which one it is.
    given = {"delta.checkpointInterval": "1000000", **properties}
    create_table(world.uri, schema, partition_by=partition_by, properties=given)


def _add_of(world: World, version: int) -> dict[str, Any]:
    """The first file that a commit added."""
    with open(f"{world.uri}/{LOG_FOLDER}/{commit_name(version)}") as lines:
        found = [json.loads(line) for line in lines]
    return next(each["add"] for each in found if "add" in each)


def _commit(world: World, version: int, actions: list[dict[str, Any]]) -> None:
    """A commit as another writer would have made it."""
    info = {"timestamp": 1_700_000_000_000 + version * 1000, "operation": "WRITE"}
    info |= {"operationParameters": {}, "inCommitTimestamp": info["timestamp"]}
    lines = [json.dumps(each) for each in ({"commitInfo": info}, *actions)]
    with open(f"{world.uri}/{LOG_FOLDER}/{commit_name(version)}", "x") as file:
        file.write("\n".join(lines) + "\n")


def _twin(world: World, add: dict[str, Any], number: int, **changes: Any) -> dict[str, Any]:
    """The add of a file that holds what another one holds, under another name."""
    path = f"twin-{number:06d}.parquet"
    os.link(f"{world.uri}/{add['path']}", f"{world.uri}/{path}")
    return {"add": {**add, "path": path, **changes}}


def _files(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, properties)
    write_arrow(world.uri, _narrow(), mode="append")
    first = _add_of(world, 1)
    _commit(world, 2, [_twin(world, first, i) for i in range(world.n)])


def _versions(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, properties)
    write_arrow(world.uri, _narrow(), mode="append")
    first = _add_of(world, 1)
    last = first
    for i in range(world.n):
        new = _twin(world, first, i)
        gone = {"path": last["path"], "deletionTimestamp": 1_700_000_000_000, "dataChange": True}
        gone |= {"extendedFileMetadata": True, "partitionValues": {}, "size": last["size"]}
        _commit(world, 2 + i, [new, *([{"remove": gone}] if i % 2 else [])])
        last = new["add"]


def _partitions(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, properties, partition_by=("day",))
    write_arrow(world.uri, _narrow(), mode="append")
    first = _add_of(world, 1)
    adds = []
    (column,) = first["partitionValues"]
    for i in range(world.n):
        values = {column: _day(i)}
        adds.append(_twin(world, first, i, partitionValues=values))
    _commit(world, 2, adds)


def _of_each_day(n: int) -> pa.Table:
    rows = _narrow(n)
    days = pa.array([_day(i) for i in range(n)])
    return rows.set_column(rows.schema.get_field_index("day"), "day", days)


KINDS = (
    lambda i: pa.array([i, i + 1, i + 2, None], pa.int64()),
    lambda i: pa.array(["a", "b", None, f"text {i}"]),
    lambda i: pa.array([i / 3, 2.0, None, 4.0]),
    lambda i: pa.array([i, 10, 20, None], pa.date32()),
)


def _wide(n: int) -> pa.Table:
    columns = {f"c{i}": KINDS[i % len(KINDS)](i) for i in range(n)}
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})


def _nested(n: int) -> pa.Table:
    inner = [KINDS[i % len(KINDS)](i) for i in range(n)]
    struct = pa.StructArray.from_arrays(inner, [f"f{i}" for i in range(n)])
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": struct})


def _one_file(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, properties)
    write_arrow(world.uri, world.rows(), mode="append")


def _vectors(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, {**MARKED, **properties})
    write_arrow(world.uri, _narrow(), mode="append")
    delete_rows(world.uri, "id = 0")
    marked = _add_of(world, 2)
    _commit(world, 3, [_twin(world, marked, i) for i in range(world.n)])


def _deleted(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, {**MARKED, **properties})
    write_arrow(world.uri, _narrow(4 * world.n), mode="append")
    delete_rows(world.uri, [("id", "in", list(range(0, 4 * world.n, 3)))])


def _row_groups(world: World, properties: Mapping[str, str]) -> None:
    _begin(world, properties)
    write_arrow(world.uri, _narrow(2 * world.n), mode="append")
    add = _add_of(world, 1)
    path = f"{world.uri}/{add['path']}"
    rows = pq.read_table(path)
    pq.write_table(rows, path, row_group_size=2)
    size = os.path.getsize(path)
    add |= {"size": size, "path": "twin.parquet"}
    os.link(path, f"{world.uri}/twin.parquet")
    _commit(world, 2, [{"add": add}])


def _constraints(world: World, properties: Mapping[str, str]) -> None:
    rules = {f"delta.constraints.rule{i}": f"id >= -{i}" for i in range(world.n)}
    _one_file(world, properties)
    _raw_metadata(world, 2, lambda conf: conf | rules)


def _own_properties(world: World, properties: Mapping[str, str]) -> None:
    _one_file(world, {**{f"own.{i}": str(i) for i in range(world.n)}, **properties})


def _applications(world: World, properties: Mapping[str, str]) -> None:
    _one_file(world, properties)
    _commit(world, 2, [{"txn": {"appId": f"app {i}", "version": i}} for i in range(world.n)])


def _raw_metadata(
    world: World, version: int, change: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    with open(f"{world.uri}/{LOG_FOLDER}/{commit_name(0)}") as lines:
        found = [json.loads(line) for line in lines]
    metadata = next(each["metaData"] for each in found if "metaData" in each)
    metadata["configuration"] = change(metadata["configuration"])
    _commit(world, version, [{"metaData": metadata}])


def _parts(word: str, template: str) -> Callable[[int], str]:
    return lambda n: f" {word} ".join(template.format(i=i) for i in range(1, n + 1))


LITERALS: dict[str, Callable[[int], Any]] = {
    "IN": lambda n: f"id IN ({', '.join(map(str, range(1, n + 1)))})",
    "IN of text": lambda n: "name IN ({})".format(", ".join(f"'name {i}'" for i in range(n))),
    "NOT IN": lambda n: f"id NOT IN ({', '.join(map(str, range(5, n + 5)))})",
    "OR": _parts("OR", "id = {i}"),
    "OR of text": _parts("OR", "name = 'name {i}'"),
    "AND": _parts("AND", "id <> {i}0"),
    "BETWEEN": _parts("OR", "id BETWEEN {i} AND {i}5"),
    "IN of a few": _parts("OR", "id IN ({i}, {i}0, {i}00)"),
    "LIKE": _parts("OR", "name LIKE 'name {i}%'"),
    "long text": lambda n: f"name <> '{'x' * 100 * n}'",
    "tuples in": lambda n: [("id", "in", list(range(1, n + 1)))],
    "tuples or": lambda n: [[("id", "=", i)] for i in range(1, n + 1)],
    "tuples and": lambda n: [("id", "!=", 10 * i) for i in range(1, n + 1)],
}

_OF_ROWS = frozenset(
    (
        *("write_arrow", "delete_rows", "update_rows", "convert_to_delta", "table_changes"),
        *("add_constraint", "Snapshot.to_arrow", "Snapshot.to_batches"),
    )
)
_OF_FILES = frozenset(
    (
        *("DeltaLog.snapshot", "DeltaLog.checkpoint", "Snapshot.files", "cli.files"),
        *("OptimisticTransaction.commit", "Reads.filter_files"),
        "enable_row_tracking",
    )
)
_OF_METADATA = frozenset(
    (
        *("add_columns", "rename_column", "drop_columns", "change_column", "create_table"),
        *("add_constraint", "drop_constraint", "set_properties", "unset_properties"),
        *("Changes.update_metadata", "write_arrow", "cli.describe"),
        *("Changes.update_metadata_for_new_table", "Snapshot.schema"),
    )
)
_OF_FILTERS = frozenset(("Snapshot.files", "Snapshot.to_arrow"))
_OF_THE_LOG = frozenset(
    (
        *("DeltaLog.snapshot", "DeltaLog.update", "DeltaLog.checkpoint", "Snapshot.schema"),
        *("OptimisticTransaction.commit", "Reads.txn_version", "write_arrow"),
    )
)

AXES = {
    each.name: each
    for each in (
        Axis("files", _files),
        Axis("versions", _versions),
        Axis("partitions", _partitions, rows=_of_each_day),
        Axis("columns", _one_file, rows=_wide, n=32),
        Axis("fields", _one_file, rows=_nested, n=32),
        Axis("rows", _one_file, rows=lambda n: _narrow(4 * n), only=_OF_ROWS),
        Axis("row groups", _row_groups, only=_OF_ROWS),
        Axis("vectors", _vectors, only=_OF_ROWS | _OF_FILES),
        Axis("deleted rows", _deleted, only=_OF_ROWS),
        Axis("constraints", _constraints, only=_OF_METADATA | {"update_rows"}),
        Axis("properties", _own_properties, only=_OF_METADATA),
        Axis("applications", _applications, only=_OF_THE_LOG),
        *(
            Axis(
                f"literals: {name}",
                _one_file,
                where=where,
                of_filters=True,
                only=_OF_FILTERS if name != "IN" else frozenset(),
                n=32,
            )
            for name, where in LITERALS.items()
        ),
    )
}
