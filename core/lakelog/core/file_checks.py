"""Checks on the file actions of one commit, against each other and against the table."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.column_mapping import physical_name, read_schema_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.file_keys import vector_key
from lakelog.core.iceberg_compat import check_compat_files
from lakelog.core.paths import path_key, refuse_escape
from lakelog.core.properties import TableProperties
from lakelog.core.schema import StructField, StructType
from lakelog.core.vector_checks import check_vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakelog.core.actions import Action, Metadata, Protocol
    from lakelog.core.conf import DeltaConf
    from lakelog.core.operations import Operation

__all__ = ["check_data_change", "check_files"]

logger = logging.getLogger("lakelog")
_MAX_WARNINGS = 2


def check_files(
    actions: Sequence[Action],
    metadata: Metadata,
    protocol: Protocol,
    conf: DeltaConf,
    table: str,
    *,
    operation: Operation,
) -> None:
    """Run every check on file actions.

    Raises:
        DeltaAnalysisError: duplicate paths, partition values that do not fit the table, or,
            where the conf asks for it, mixed `dataChange`, empty files, null partition values.
        UnsupportedFeatureError: a deletion vector in a table that has none.
    """
    if conf.get_bool("duplicateActionCheck.enabled", True):
        _check_duplicates(actions, table)
    kinds = {action.data_change for action in actions if isinstance(action, AddFile | RemoveFile)}
    check_data_change(kinds, conf, table)
    adds = [action for action in actions if isinstance(action, AddFile)]
    if not adds:
        return
    for add in adds:
        refuse_escape(table, add.path)
    if conf.get_bool("commitValidation.enabled", True):
        _check_partition_keys(adds, metadata, table)
    _check_contents(adds, metadata, conf, table)
    check_compat_files(adds, metadata, table)
    if conf.get_bool("deletionVectors.skipCommitCheck", True):  # which, whatever it says, is on
        check_vectors(adds, metadata, protocol, table, operation)


def _check_duplicates(actions: Iterable[Action], table: str) -> None:
    adds: dict[str, str | None] = {}
    removes: dict[str, str | None] = {}
    for action in actions:
        if not isinstance(action, AddFile | RemoveFile):
            continue
        mine, other = (adds, removes) if isinstance(action, AddFile) else (removes, adds)
        place = path_key(table, action.path)
        vector = vector_key(table, action.deletion_vector)
        twice = place in mine
        # Replacing a file by itself with another deletion vector is how rows are deleted.
        undone = place in other and other[place] == vector
        if twice or undone:
            first = type(action).__name__ if twice else _other_name(action)
            raise DeltaAnalysisError(
                f"[DELTA_DUPLICATE_ACTIONS_FOUND] {table}: file operation "
                f"'{type(action).__name__}' for path {action.path} was specified several times. "
                f"It conflicts with '{first}'. It is not valid for multiple file operations with "
                "the same path to exist in a single commit.",
                table=table,
                path=action.path,
            )
        mine[place] = vector


def _other_name(action: AddFile | RemoveFile) -> str:
    return "RemoveFile" if isinstance(action, AddFile) else "AddFile"


def check_data_change(kinds: set[bool], conf: DeltaConf, table: str) -> None:
    """Check that the file actions of a commit agree on `dataChange`.

    Args:
        kinds: the values that occur.
        conf: says what a mixture means.
        table: for messages.

    Raises:
        DeltaAnalysisError: they do not, and the conf makes that fatal.
    """
    mode = conf.get_str("commitValidation.consistentDataChange.mode", "log")
    if mode not in ("off", "log", "fatal"):
        raise DeltaAnalysisError(
            "the conf spark.databricks.delta.commitValidation.consistentDataChange.mode must be "
            f"off, log or fatal, but it is {mode!r}",
            value=mode,
        )
    if mode == "off" or len(kinds) < 2:
        return
    text = f"a commit to {table} mixes file actions with dataChange true and false"
    if mode == "fatal":
        raise DeltaAnalysisError(text, table=table)
    logger.warning("%s", text)


def _check_partition_keys(adds: Iterable[AddFile], metadata: Metadata, table: str) -> None:
    expected = set(metadata.partition_columns)
    if _mapping(metadata) != "none":
        expected = {physical_name(each) for each in _partition_fields(metadata)}
    for add in adds:
        if add.partition_values.keys() != expected:
            raise DeltaAnalysisError(
                "[DELTA_INVALID_PARTITIONING_SCHEMA] The AddFile contains partitioning schema "
                f"different from the table's partitioning schema: {table}, file {add.path}. "
                f"Expected: {sorted(expected)}. Actual: {sorted(add.partition_values)}.",
                table=table,
                path=add.path,
            )


def _check_contents(
    adds: Sequence[AddFile], metadata: Metadata, conf: DeltaConf, table: str
) -> None:
    """Files of no bytes, and nulls where the partition column takes none: told or refused."""
    for number, (add, text, key) in enumerate(_doubtful(adds, metadata)):
        if conf.get_bool(key, False):
            raise DeltaAnalysisError(f"{table}: {text}", table=table, path=add.path)
        if number < _MAX_WARNINGS:
            logger.warning("%s: %s", table, text)


def _doubtful(adds: Sequence[AddFile], metadata: Metadata) -> Iterator[tuple[AddFile, str, str]]:
    required: list[str] | None = None
    for add in adds:
        if add.size == 0:
            yield add, f"the file {add.path} has no bytes", "emptyFileCheck.throwEnabled"
        elif None in add.partition_values.values():
            if required is None:
                required = _required_partition_columns(metadata)
            for name in required:
                if add.partition_values.get(name) is None:
                    text = f"the file {add.path} has a null for the NOT NULL column {name}"
                    yield add, text, "nullPartitionCheck.throwEnabled"


def _required_partition_columns(metadata: Metadata) -> list[str]:
    return [physical_name(f) for f in _partition_fields(metadata) if not f.nullable]


def _partition_fields(metadata: Metadata) -> list[StructField]:
    """The partition columns, whose values go by physical names where the table maps columns."""
    if not metadata.partition_columns:
        return []
    schema = read_schema_of(StructType.from_json(metadata.schema_string), _mapping(metadata))
    return [each for each in schema if each.name in metadata.partition_columns]


def _mapping(metadata: Metadata) -> str:
    return TableProperties(metadata.configuration).column_mapping_mode
