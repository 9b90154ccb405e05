"""Nothing gets into the log in another type than the protocol gives it, by whatever door."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelog.core as core
from lakelog.core import DeltaConf, DeltaLog, Operation, alter, schema, write_arrow
from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions import objects as actions
from lakelog.core.actions.checked_values import check_actions, fields_of
from lakelog.core.actions.json_fields import JsonFields
from lakelog.core.arguments import checked_progress
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Callable

API: Any = core
SCHEMAS: Any = schema
ALTER: Any = alter
"""Without its types: they are what is broken here."""
LONG = PrimitiveType("long")
ROWS = pa.table({"id": [1, 2]})
HALF = "half a pair: \ud800"
BAD: dict[str, list[Any]] = {
    "text": [5, True, 1.5, b"x", ["x", 5], HALF],
    "names": [5, True, 1.5, b"x", ["x", 5], [HALF]],
    "whole": [True, "5", 1.5, 1 << 63, float("nan")],
    "version": [True, "5", 1.5, 1 << 63, -1],
    "batch": [True, "5", 1.5, 1 << 63, -1, float("nan")],
    "texts": [{"a": 5}, {5: "a"}, {"a": None}, {"a": True}, {"a": HALF}, [("a", "b")], "a=b"],
    "properties": [
        {"a": 1.5},
        {5: "a"},
        {"a": None},
        {"a": b"x"},
        {"a": HALF},
        [("a", "b")],
        "a=b",
    ],
    "metrics": [{"a": float("nan")}, {"a": None}, {5: 1}, [1]],
    "parameters": [{"a": object()}, {5: 1}, {"a": b"x"}, {"a": [{"b": HALF}]}, [1]],
}


def _folder(uri: str) -> str:
    folder = Path(f"{uri}-parquet")
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    return str(folder)


def _committed(uri: str, **given: Any) -> object:
    operation = API.Operation(**{"name": "x", **given})
    txn = DeltaLog.for_table(uri).start_transaction()
    return txn.commit([SetTransaction(app_id="a", version=1)], operation)


def _streamed(uri: str, **given: Any) -> object:
    operation = API.Operation(**{"name": "x", **given})
    txn = DeltaLog.for_table(uri).start_transaction()
    return txn.commit_large(iter([SetTransaction(app_id="a", version=1)]), operation)


def _added(uri: str, field: StructField) -> object:
    return alter.add_columns(uri, StructType((field,)))


BATCH = {"app_id": "text", "app_version": "batch", "user_metadata": "text"}
OPERATION = {
    "name": "text",
    "parameters": "parameters",
    "metrics": "metrics",
    "user_metadata": "text",
    "tags": "texts",
}
SCHEMA = StructType((StructField("a", LONG),))
DOORS: dict[str, tuple[Callable[..., object], dict[str, str]]] = {
    "write_arrow": (
        lambda uri, **given: write_arrow(uri, ROWS, mode="append", **given),
        {**BATCH, "properties": "properties", "partition_by": "names"},
    ),
    "delete_rows": (lambda uri, **given: API.delete_rows(uri, "id = 1", **given), BATCH),
    "update_rows": (
        lambda uri, **given: API.update_rows(uri, {"id": 5}, "id = 1", **given),
        BATCH,
    ),
    "create_table": (
        lambda uri, **given: API.create_table(f"{uri}-new", SCHEMA, **given),
        {
            "properties": "properties",
            "name": "text",
            "description": "text",
            "user_metadata": "text",
            "partition_by": "names",
            "cluster_by": "names",
        },
    ),
    "clone": (
        lambda uri, **given: API.clone(uri, f"{uri}-clone", **given),
        {"properties": "properties", "user_metadata": "text", "version": "version"},
    ),
    "restore": (
        lambda uri, **given: API.restore(uri, **{"version": 0} | given),
        {"user_metadata": "text", "version": "version"},
    ),
    "optimize": (
        API.optimize,
        {
            "z_order_by": "names",
            "target_size": "whole",
            "batch_size": "whole",
            "user_metadata": "text",
        },
    ),
    "purge": (API.purge, {"batch_size": "whole", "user_metadata": "text"}),
    "drop_feature": (alter.drop_feature, {"feature": "text"}),
    "sync_identity": (alter.sync_identity, {"column": "text"}),
    "merge": (
        lambda uri, **given: (
            API.merge(uri, **{"source": ROWS, "on": "target.id = source.id"} | given)
            .when_matched_delete()
            .execute()
        ),
        {
            "on": "names",
            "target_alias": "text",
            "source_alias": "text",
            **BATCH,
        },
    ),
    "convert_to_delta": (
        lambda uri, **given: API.convert_to_delta(_folder(uri), **given),
        {"properties": "properties", "user_metadata": "text"},
    ),
    "appender": (
        lambda uri, app_version=None, **given: API.appender(uri, **{"app_id": "a"} | given),
        {"app_id": "text", "max_bytes": "whole"},
    ),
    "set_properties": (alter.set_properties, {"properties": "properties"}),
    "unset_properties": (alter.unset_properties, {"names": "names"}),
    "add_constraint": (
        lambda uri, **given: ALTER.add_constraint(
            uri, **{"name": "c", "condition": "id > 0"} | given
        ),
        {"name": "text", "condition": "text"},
    ),
    "drop_constraint": (alter.drop_constraint, {"name": "text"}),
    "rename_column": (
        lambda uri, **given: ALTER.rename_column(uri, **{"column": "id", "name": "b"} | given),
        {"column": "names", "name": "text"},
    ),
    "drop_columns": (alter.drop_columns, {"columns": "names"}),
    "change_column": (
        lambda uri, **given: ALTER.change_column(uri, **{"column": "id"} | given),
        {"column": "names", "comment": "text", "default": "text", "after": "text"},
    ),
    "add_columns": (
        lambda uri, **given: alter.add_columns(uri, SCHEMA, **given),
        {"parent": "names", "after": "text"},
    ),
    "generated_column": (
        lambda uri, **given: _added(
            uri,
            SCHEMAS.generated_column(
                **{"name": "g", "data_type": LONG, "expression": "id"} | given
            ),
        ),
        {"name": "text", "expression": "text", "comment": "text"},
    ),
    "identity_column": (
        lambda uri, **given: SCHEMAS.identity_column(**{"name": "g"} | given),
        {"name": "text", "start": "whole", "step": "whole", "comment": "text"},
    ),
    "column_with_default": (
        lambda uri, **given: SCHEMAS.column_with_default(
            **{"name": "g", "data_type": LONG, "default": "1"} | given
        ),
        {"name": "text", "default": "text", "comment": "text"},
    ),
    "Operation": (_committed, OPERATION),
    "Operation of a large commit": (_streamed, OPERATION),
}
NO_VALUE_OF_THE_LOG = {
    *("uri", "conf", "data", "schema", "mode", "schema_mode", "partition_overwrite_mode"),
    *("where", "replace_where", "set", "if_exists", "first", "nullable", "data_type", "by_default"),
    *("partition_schema", "collect_stats", "non_ascii_paths", "progress", "unknown"),
    *("retention_hours", "dry_run", "inventory", "backup"),
    *("source", "target", "timestamp", "shallow", "replace_target", "full", "truncate_history"),
    *("with_schema_evolution", "every", "save_every", "patience", "dead_letter", "compact"),
}
"""Places, rows, choices and conditions: what is refused elsewhere, or never written."""
WRITES_NO_LOG = {
    *("read_arrow", "scan", "table_changes", "lit", "retry_on_conflict", "write_events_to"),
    *("type_from_json_value", "drop_table", "rename_table"),
}


def test_every_parameter_of_every_public_function_is_tried() -> None:
    homes = {name: home for home in (schema, alter, core) for name in home.__all__}
    for name, home in homes.items():
        function = getattr(home, name)
        if not inspect.isfunction(function) or name in WRITES_NO_LOG:
            continue
        tried = DOORS[name][1] if name in DOORS else {}
        given = set(inspect.signature(function).parameters) - NO_VALUE_OF_THE_LOG
        assert given - {"columns"} == set(tried) - {"columns"}, name


CASES = [
    (door, parameter, kind)
    for door, (_, parameters) in DOORS.items()
    for parameter, kind in parameters.items()
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("doors") / "t")
    write_arrow(uri, ROWS, properties={"delta.columnMapping.mode": "name"}, mode="append")
    return uri


@pytest.mark.parametrize(("door", "parameter", "kind"), CASES)
def test_a_value_of_another_type_is_refused_at_the_door(
    uri: str, tmp_path: Path, door: str, parameter: str, kind: str
) -> None:
    call = DOORS[door][0]
    beside: Any = {"app_id": {"app_version": 1}, "app_version": {"app_id": "a"}}.get(parameter, {})
    for number, value in enumerate(BAD[kind]):
        where = uri
        if door == "convert_to_delta":
            where = str(tmp_path / str(number))
        with pytest.raises(DeltaAnalysisError):
            call(where, **{parameter: value}, **beside)
    log = DeltaLog.for_table(uri)
    assert log.snapshot.version == 0
    assert log.snapshot.to_arrow() == ROWS


VECTOR = DeletionVectorDescriptor(
    storage_type="i", path_or_inline_dv="x", offset=1, size_in_bytes=1, cardinality=1
)
FILE: dict[str, Any] = {
    "path": "é.parquet",
    "partition_values": {"p": None, "q": "1"},
    "size": 1,
    "tags": {"a": None},
    "stats": "{}",
}
ACTIONS: list[Any] = [
    AddFile(**FILE, modification_time=1, data_change=True, deletion_vector=VECTOR, base_row_id=1),
    RemoveFile(**FILE, deletion_timestamp=1, extended_file_metadata=True),
    AddCDCFile(**FILE),
    Metadata(id="i", schema_string="{}", partition_columns=["p"], configuration={"a": "b"}),
    Protocol(min_reader_version=3, min_writer_version=7, reader_features=[], writer_features=["x"]),
    SetTransaction(app_id="a", version=1, last_updated=1),
    DomainMetadata(domain="d", configuration="{}", removed=False),
    CommitInfo(timestamp=1, operation="o", operation_parameters={"a": [1, None]}, tags={"a": "b"}),
]
ANY: list[Any] = [
    *(None, True, 5, 1 << 63, 1.5, "x", HALF, b"x", ["x"], [5], [HALF], {"a": "b"}, {"a": None}),
    *({"a": 5}, {5: "a"}, {"a": object()}, object(), VECTOR, Format()),
]
HOLDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: v == "x",
    "int": lambda v: type(v) is int and v == 5,
    "bool": lambda v: v is True,
    "list[str]": lambda v: v == ["x"],
    "Mapping[str, str]": lambda v: v == {"a": "b"},
    "Mapping[str, str | None]": lambda v: v in ({"a": "b"}, {"a": None}),
    "Mapping[str, Any]": lambda v: v in ({"a": "b"}, {"a": None}, {"a": 5}),
    "DeletionVectorDescriptor": lambda v: v is VECTOR,
    "Format": lambda v: isinstance(v, Format),
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: type(each).__name__)
def test_a_field_of_an_action_holds_what_the_protocol_says_and_nothing_else(
    action: Any,
) -> None:
    for field in dataclasses.fields(action):
        kind = str(field.type)
        for value in ANY:
            changed = dataclasses.replace(action, **{field.name: value})
            fits = HOLDS[kind.removesuffix(" | None")](value)
            if fits or (value is None and kind.endswith(" | None")):
                # Twice: types that were right once are looked at in another way.
                check_actions([action, changed, changed])
                continue
            with pytest.raises(DeltaAnalysisError, match=f"{type(action).__name__}.{field.name}"):
                check_actions([action, changed])


def test_a_nested_field_is_named() -> None:
    vector: Any = VECTOR
    broken = dataclasses.replace(vector, cardinality="1")
    file = dataclasses.replace(ACTIONS[0], deletion_vector=broken)
    with pytest.raises(DeltaAnalysisError, match=r"DeletionVectorDescriptor.cardinality .*'1'"):
        check_actions([file])


def test_every_annotation_of_every_action_is_known() -> None:
    kinds: list[Any] = [each for each in vars(actions).values() if inspect.isclass(each)]
    actual = [each for each in kinds if issubclass(each, JsonFields) and each.__slots__]
    assert len(actual) > 10
    assert all(map(fields_of, actual))


@pytest.mark.parametrize("large", [False, True])
def test_a_commit_of_hand_made_actions_is_refused_and_checkpoints_go_on(
    tmp_path: Path, large: bool
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    broken: Any
    for broken in (
        SetTransaction(app_id=5, version=1),  # type: ignore[arg-type]  # the case
        dataclasses.replace(DeltaLog.for_table(uri).snapshot.files()[0], size="1"),  # type: ignore[arg-type]
    ):
        txn = DeltaLog.for_table(uri).start_transaction()
        commit: Any = txn.commit_large if large else txn.commit
        with pytest.raises(DeltaAnalysisError, match="must be"):
            commit([broken], Operation.manual())
    log = DeltaLog.for_table(uri)
    assert log.snapshot.version == 0
    log.checkpoint()


@pytest.mark.parametrize(
    ("app_id", "version"), [("a", None), (None, 1), (5, 1), ("a", -1), ("a", True), ("a", 1 << 63)]
)
def test_a_batch_that_would_never_be_written_or_always_is_refused(
    app_id: Any, version: Any
) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"app_id|app_version"):
        checked_progress(app_id, version)
    options = {"txnAppId": app_id, "txnVersion": None if version is None else str(int(version))}
    given = {key: value for key, value in options.items() if value is not None}
    if isinstance(app_id, str | None) and version is not True:
        with pytest.raises(DeltaAnalysisError, match=r"txnAppId|txnVersion"):
            WriteOptions.from_options("append", None, given, DeltaConf())
