"""Checks on the file actions of one commit, against each other and against the table."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakelog.core.actions import AddCDCFile, AddFile, RemoveFile
from lakelog.core.actions.file_keys import vector_key
from lakelog.core.deletion_vectors.commit_checks import check_vectors
from lakelog.core.deletion_vectors.stored_vectors import UUID_CHARACTERS
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.iceberg_compat import check_compat_files
from lakelog.core.paths import is_local, path_key, refuse_escape
from lakelog.core.portable.made_files import refuse_link
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.commit.commit_settings import CommitSettings
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.schema import StructField

logger: logging.Logger = logging.getLogger("lakelog")
_MAX_WARNINGS = 2


def check_files(
    actions: Sequence[Action],
    terms: TableTerms,
    settings: CommitSettings,
    table: str,
    *,
    operation: Operation,
) -> None:
    """Run every check on file actions.

    Raises:
        LinkedFolderError: a file in a folder that a link leads to: readers would refuse it.
        DeltaAnalysisError: duplicate paths, partition values that do not fit the table, or,
            where the conf asks for it, mixed `dataChange`, empty files, null partition values.
        UnsupportedFeatureError: a deletion vector in a table that has none.
    """
    if settings.checks_duplicates:
        _check_duplicates(actions, table)
    kinds = {action.data_change for action in actions if isinstance(action, AddFile | RemoveFile)}
    check_data_change(kinds, settings, table)
    if is_local(table):
        _check_folders(actions, table)
    adds = [action for action in actions if isinstance(action, AddFile)]
    if not adds:
        return
    for add in adds:
        # A path that leads out of the table would let VACUUM and readers follow it to files of
        # others.
        refuse_escape(table, add.path)
    if settings.checks_partition_keys:
        _check_partition_keys(adds, terms, table)
    _check_contents(adds, terms, settings, table)
    if terms.iceberg_compat is not None:
        check_compat_files(adds, terms.iceberg_compat, table)
    if settings.checks_vectors and any(add.deletion_vector is not None for add in adds):
        check_vectors(adds, terms, table, operation)


def _check_duplicates(actions: Iterable[Action], table: str) -> None:
    adds: dict[str, str | None] = {}
    removes: dict[str, str | None] = {}
    for action in actions:
        if not isinstance(action, AddFile | RemoveFile):
            continue
        # Replay has no order within a commit but removes before adds: of a path that comes twice
        # the reader would choose.
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


def _check_folders(actions: Iterable[Action], table: str) -> None:
    """Refuse, before it is committed, a file that a link leads to, as a reader would refuse it."""
    base = f"{table.rstrip('/')}/"
    places = set()
    for action in actions:
        if isinstance(action, AddFile | AddCDCFile):
            if "/" in action.path and not action.path.startswith("/"):
                places.add(path_key(table, action.path).rpartition("/")[0])
            vector = action.deletion_vector if isinstance(action, AddFile) else None
            if vector is not None and vector.storage_type == "u":
                places.add(f"{base}{vector.path_or_inline_dv[:-UUID_CHARACTERS]}")
    for place in places:
        if place.startswith(base):
            refuse_link(table, place[len(base) :])


def _other_name(action: AddFile | RemoveFile) -> str:
    return "RemoveFile" if isinstance(action, AddFile) else "AddFile"


def check_data_change(kinds: set[bool], settings: CommitSettings, table: str) -> None:
    """Check that the file actions of a commit agree on `dataChange`.

    Args:
        kinds: the values that occur.
        settings: say what a mixture means.
        table: for messages.

    Raises:
        DeltaAnalysisError: they do not, and the conf makes that fatal.
    """
    mode = settings.data_change_mode
    if mode == "off" or len(kinds) < 2:
        return
    text = f"a commit to {table} mixes file actions with dataChange true and false"
    if mode == "fatal":
        raise DeltaAnalysisError(text, table=table)
    logger.warning("%s", text)


def _check_partition_keys(adds: Iterable[AddFile], terms: TableTerms, table: str) -> None:
    # The keys are physical names, while the metadata lists the columns as users see them.
    expected = set(terms.metadata.partition_columns)
    if terms.column_mapping_mode != "none":
        expected = {physical_name(each) for each in _partition_fields(terms)}
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
    adds: Sequence[AddFile], terms: TableTerms, settings: CommitSettings, table: str
) -> None:
    """Empty files, and nulls where the partition column takes none: logged or refused."""
    for number, (add, text, setting) in enumerate(_doubtful(adds, terms)):
        if getattr(settings, setting):
            raise DeltaAnalysisError(f"{table}: {text}", table=table, path=add.path)
        if number < _MAX_WARNINGS:
            logger.warning("%s: %s", table, text)


def _doubtful(adds: Sequence[AddFile], terms: TableTerms) -> Iterator[tuple[AddFile, str, str]]:
    """Each with what is wrong, and the setting that makes it an error."""
    required: list[str] | None = None
    for add in adds:
        if add.size == 0:
            yield add, f"the file {add.path} is empty", "refuses_empty_files"
        elif None in add.partition_values.values():
            if required is None:
                required = _required_partition_columns(terms)
            for name in required:
                if add.partition_values.get(name) is None:
                    text = f"the file {add.path} has a null for the NOT NULL column {name}"
                    yield add, text, "refuses_null_partitions"


def _required_partition_columns(terms: TableTerms) -> list[str]:
    return [physical_name(f) for f in _partition_fields(terms) if not f.nullable]


def _partition_fields(terms: TableTerms) -> list[StructField]:
    """The partition columns, whose values go by physical names where the table maps columns."""
    names = terms.metadata.partition_columns
    return [each for each in terms.read_schema if each.name in names] if names else []
