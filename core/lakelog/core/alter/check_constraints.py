"""CHECK constraints of a table that exists, as `ALTER TABLE` adds and drops them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
)
from lakelog.core.expressions.context import EvalContext
from lakelog.core.features.table_properties import CONSTRAINT_PREFIX
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_RESERVED = "__CHAR_VARCHAR_STRING_CHECK_CONSTRAINT__"


@command("add constraint")
def add_constraint(
    uri: TableOrLog,
    name: str,
    condition: str,
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Add a CHECK constraint, after a look at every row: `ALTER TABLE … ADD CONSTRAINT`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        name: of the constraint; kept in lower case.
        condition: SQL that must be true for every row, now and later; neither false nor null.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version of the commit.

    Raises:
        ConstraintViolationError: rows of the table break it.
        DeltaAnalysisError: the name is taken, or the condition names a column that the table
            does not have, or only Spark can evaluate it (`DeltaTable.addConstraint` of
            `lakelog.spark` takes it then).
        ConcurrentAppendException: rows were added meanwhile that have not been checked.
    """
    return add_checked_constraint(uri, name, condition, _check_every_row, conf=conf)


def add_checked_constraint(
    uri: TableOrLog,
    name: str,
    condition: str,
    check: Callable[[OptimisticTransaction, str, str], None],
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """`add_constraint`, for an engine that looks at the rows itself.

    Args:
        uri: where the table is, or its `DeltaLog`.
        name: of the constraint.
        condition: SQL that must be true for every row.
        check: given the transaction, the name and the condition, raises where a row of its
            snapshot breaks it. The whole table counts as read.
        conf: the user's whole Spark conf.

    Raises:
        DeltaAnalysisError: the name is taken, or the condition names a column that does not exist.
        ConcurrentAppendException: rows were added meanwhile that have not been checked.
    """
    check_text(name, "name", needed=True)
    check_text(condition, "condition", needed=True)
    txn = begin_change(uri, conf)
    old, table = txn.metadata, txn.delta_log.table
    if name.lower() == _RESERVED.lower() or not name.strip():
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_CONSTRAINT_NAME] Cannot use {name!r} as the name of a CHECK "
            "constraint: it is reserved or empty.",
            constraint=name,
        )
    taken = _constraint_key(txn, name)
    if taken is not None:
        raise DeltaAnalysisError(
            f"[DELTA_CONSTRAINT_ALREADY_EXISTS] Constraint '{name}' already exists in {table}: "
            f"{old.configuration[taken]}. Drop it first.",
            constraint=name,
        )
    key = f"{CONSTRAINT_PREFIX}{name.lower()}"
    txn.update_metadata(replace(old, configuration={**old.configuration, key: condition}))
    txn.reads.read_whole_table()
    check(txn, name, condition)
    return txn.commit([], Operation("ADD CONSTRAINT", {"name": name, "expr": condition}))


def _check_every_row(txn: OptimisticTransaction, name: str, condition: str) -> None:
    from lakelog.core.expressions.filter import normalize_filter
    from lakelog.core.expressions.tree import Not, columns

    snapshot, table = txn.snapshot, txn.delta_log.table
    assert snapshot is not None
    try:
        context = EvalContext.of(snapshot.conf)
        predicate = normalize_filter(condition, snapshot.schema, context)
        if predicate is None:
            return
        names = sorted({path[0] for path in columns(predicate)})
        passed = snapshot.to_arrow(columns=names[:1], where=predicate).num_rows
        rows = snapshot.to_arrow(columns=names[:1]).num_rows
        if passed == rows:
            return
        false = snapshot.to_arrow(columns=names, where=Not(predicate)).slice(0, 1).to_pylist()
    except InvalidPredicateError as exc:
        raise DeltaAnalysisError(
            f"the constraint {name} ({condition}) can't be checked on the rows of {table} without "
            f"Spark: {exc}. Use DeltaTable.addConstraint from lakelog.spark.",
            constraint=name,
        ) from exc
    shown = (
        f", the first where it is false is {false[0]}" if false else ": it is null for these rows"
    )
    raise new_violation(table, name, condition, rows - passed, shown)


def new_violation(
    table: str, name: str, condition: str, rows: int, shown: str
) -> ConstraintViolationError:
    """The error for rows that break a constraint that is being added."""
    return ConstraintViolationError(
        f"[DELTA_NEW_CHECK_CONSTRAINT_VIOLATION] {rows} rows in {table} violate the new "
        f"CHECK constraint ({condition}){shown}. Change or delete those rows first.",
        rows=rows,
        constraint=name,
    )


@read_arguments
@command("drop constraint")
def drop_constraint(
    uri: TableOrLog,
    name: str,
    *,
    if_exists: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Remove a CHECK constraint from a table: `ALTER TABLE … DROP CONSTRAINT`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        name: of the constraint, found ignoring case.
        if_exists: commit nothing but the operation, instead of an error, where there is no such
            constraint.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version of the commit.

    Raises:
        DeltaAnalysisError: there is no such constraint.
    """
    check_text(name, "name", needed=True)
    txn = begin_change(uri, conf)
    old = txn.metadata
    key = _constraint_key(txn, name)
    if key is None:
        if not if_exists:
            known = ", ".join(_constraint_names(txn)) or "none"
            raise DeltaAnalysisError(
                f"[DELTA_CONSTRAINT_DOES_NOT_EXIST] Cannot drop nonexistent constraint {name} from "
                f"table {txn.delta_log.table}. The table's constraints are: {known}.",
                constraint=name,
            )
        return txn.commit([], Operation("DROP CONSTRAINT", {"name": name, "existed": "false"}))
    kept = {each: value for each, value in old.configuration.items() if each != key}
    txn.update_metadata(replace(old, configuration=kept))
    parameters = {"name": name, "expr": old.configuration[key], "existed": "true"}
    return txn.commit([], Operation("DROP CONSTRAINT", parameters))


def _constraint_key(txn: OptimisticTransaction, name: str) -> str | None:
    wanted = f"{CONSTRAINT_PREFIX}{name}".lower()
    return next((key for key in txn.metadata.configuration if key.lower() == wanted), None)


def _constraint_names(txn: OptimisticTransaction) -> list[str]:
    keys = (key for key in txn.metadata.configuration if key.lower().startswith(CONSTRAINT_PREFIX))
    return sorted(key[len(CONSTRAINT_PREFIX) :] for key in keys)
