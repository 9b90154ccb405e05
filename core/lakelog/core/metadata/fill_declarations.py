"""What may be declared for columns that writers fill.

Only what a change of metadata adds or alters is checked in full: what a table has already came
from a client that had Spark to check it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_fills import default_of, generation_of, identity_of, is_filled
from lakelog.core.schema.column_paths import dotted, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.expressions.tree import Expression

_LONG = PrimitiveType("long")
_AT_ANY_TIME = EvalContext(now_ms=0)
_ROW = StructType((StructField("row", _LONG),))
_PRESENT = ("current_date", "current_timestamp", "current_time", "curdate", "now", "localtimestamp")
"""What a default may call, but a generated column may not."""
_SUBQUERY = re.compile(r"[(\s]*(?:SELECT|WITH)\s", re.IGNORECASE)
FEATURE_KEY = "delta.feature.allowcolumndefaults"


def check_filled_columns(
    schema: StructType,
    partition_columns: Sequence[str],
    old: StructType | None = None,
    context: EvalContext = _AT_ANY_TIME,
) -> None:
    """Refuse columns whose declaration no writer could keep.

    Args:
        schema: the table's, as it is to be.
        partition_columns: as the metadata has them.
        old: the table's schema so far; its declarations count as checked.
        context: in which expressions have their types, with any time.

    Raises:
        DeltaAnalysisError: names the column, its expression and the rule that it breaks.
        CorruptLogError: a column with a part of an identity's metadata.
    """
    before_within = {(path, default_of(field)) for path, field in walk(old or StructType(()))}
    for path, field in walk(schema):
        if len(path) == 1 or not is_filled(field):
            continue
        if identity_of(field) is not None or generation_of(field) is not None:
            raise DeltaAnalysisError(
                f"The field {dotted(path)} is generated or an identity, which only a top-level "
                "column can be.",
                column=dotted(path),
            )
        # It fills nothing, as in delta-spark, but it is kept.
        if (path, default_of(field)) not in before_within:
            _check_default(field, context)
    for field in filter(is_filled, schema):
        before = old.get(field.name) if old is not None else None
        known = before is not None and (
            before.metadata == field.metadata and before.data_type == field.data_type
        )
        if identity_of(field) is not None:
            _check_identity(field, partition_columns)
        if generation_of(field) is not None:
            _check_generated(field, schema, context, judged=known)
        elif default_of(field) is not None and not known:
            _check_default(field, context)


def check_default_feature(
    schema: StructType, configuration: Iterable[str], supported: Iterable[str], what: str
) -> None:
    """Refuse a DEFAULT in a table that does not have the feature for it.

    Args:
        schema: the table's.
        configuration: the keys of the properties that go with the change.
        supported: the features that the table has.
        what: the operation, for the message.

    Raises:
        DeltaAnalysisError: there is one, and the table does not have the feature.
    """
    named = [dotted(path) for path, f in walk(schema) if default_of(f) is not None]
    asked = any(key.lower() == FEATURE_KEY for key in configuration)
    if named and not asked and "allowColumnDefaults" not in supported:
        raise DeltaAnalysisError(
            f"[WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED] Failed to {what} because it "
            f"assigned a column DEFAULT value ({', '.join(named)}), but the corresponding table "
            "feature was not enabled. Set the table property "
            "delta.feature.allowColumnDefaults=supported.",
            columns=named,
        )


def _check_identity(field: StructField, partition_columns: Sequence[str]) -> None:
    name = field.name
    if field.data_type != _LONG:
        raise DeltaAnalysisError(
            f"[DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE] DataType {field.data_type} is not "
            f"supported for IDENTITY columns: column {name}. Make it a bigint.",
            column=name,
        )
    if generation_of(field) is not None or default_of(field) is not None:
        raise DeltaAnalysisError(
            "[DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION] IDENTITY column cannot be "
            f"specified with a generated column expression or a default: column {name}.",
            column=name,
        )
    if name in partition_columns:
        raise DeltaAnalysisError(
            f"[DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED] PARTITIONED BY IDENTITY column "
            f"{name} is not supported.",
            column=name,
        )


def _check_generated(
    field: StructField, schema: StructType, context: EvalContext, *, judged: bool
) -> None:
    from lakelog.core.expressions.parse.sql import parse_sql

    sql = generation_of(field)
    assert sql is not None  # the caller asked
    if default_of(field) is not None:
        raise DeltaAnalysisError(
            f"[GENERATED_COLUMN_WITH_DEFAULT_VALUE] A column cannot have both a default value and "
            f"a generation expression but column {field.name} has default value: "
            f"({default_of(field)}) and generation expression: ({sql}).",
            column=field.name,
        )
    try:
        root = parse_sql(sql)
    except InvalidPredicateError as exc:
        if judged:
            return
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN] The generated column {field.name}: "
            f"{exc}",
            column=field.name,
        ) from exc
    for name in _references(root):
        base = schema.get(name)
        if base is None or generation_of(base) is None:
            continue
        raise DeltaAnalysisError(
            "[DELTA_INVALID_GENERATED_COLUMN_REFERENCES] A generated column cannot use a "
            f"non-existent column or another generated column: {field.name} ({sql}) uses "
            f"{'itself' if base is field else name}.",
            column=field.name,
            reference=name,
        )
    if not judged:
        _check_functions(root, f"generated column {field.name} ({sql})", "GENERATED_COLUMN")
        _check_type(field, sql, schema, context)


def _check_type(field: StructField, sql: str, schema: StructType, context: EvalContext) -> None:
    from lakelog.core.expressions.values.evaluate import value_type

    bases = StructType(tuple(f for f in schema if generation_of(f) is None))
    found = value_type(sql, bases, context)
    if found is not None and found != field.data_type:
        raise DeltaAnalysisError(
            f"[DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH] The expression type of the generated "
            f"column {field.name} is {str(found).upper()}, but the column type is "
            f"{str(field.data_type).upper()}. Write CAST({sql} AS {field.data_type}).",
            column=field.name,
        )


def _check_default(field: StructField, context: EvalContext) -> None:
    import pyarrow as pa

    from lakelog.core.expressions.parse.sql import parse_sql
    from lakelog.core.expressions.tree import holds
    from lakelog.core.expressions.values.evaluate import evaluate_value

    sql = default_of(field)
    assert sql is not None  # the caller asked
    where = f"the DEFAULT of column {field.name} ({sql})"
    try:
        root = parse_sql(sql)
    except InvalidPredicateError as exc:
        if _SUBQUERY.match(sql):
            raise _subquery(where, field.name) from exc
        raise DeltaAnalysisError(f"[INVALID_DEFAULT_VALUE] {where}: {exc}") from exc
    if "subquery" in holds(root):
        raise _subquery(where, field.name)
    columns = [name for name in _references(root) if name.lower() not in _PRESENT]
    if columns:
        raise DeltaAnalysisError(
            f"[INVALID_DEFAULT_VALUE.NOT_CONSTANT] {where} refers to {', '.join(columns)}, but a "
            "default must be the same for every row.",
            column=field.name,
        )
    _check_functions(root, where, "DEFAULT", allowed=_PRESENT)
    try:
        found = evaluate_value(sql, pa.table({"row": [0]}), _ROW, field.data_type, context)
    except InvalidPredicateError:
        return  # only Spark knows; it will say when it writes
    except DeltaAnalysisError as exc:
        raise DeltaAnalysisError(
            f"[INVALID_DEFAULT_VALUE.DATA_TYPE] {where} is not of type {field.data_type}: {exc}",
            column=field.name,
        ) from exc
    limit, value = limit_of(field), found[0].as_py()
    if limit is not None and isinstance(value, str) and len(value.rstrip(" ")) > limit.length:
        raise DeltaAnalysisError(
            f"[EXCEED_LIMIT_LENGTH] Exceeds char/varchar type length limitation: {limit.length}: "
            f"{where}.",
            column=field.name,
        )


def _subquery(where: str, column: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION] {where} contains a subquery, but a default "
        "must be known when a statement is planned.",
        column=column,
    )


def _references(root: Expression) -> list[str]:
    """The names of the top-level columns that an expression refers to, in order."""
    from lakelog.core.expressions.tree import names

    return list(dict.fromkeys(each.path[0] for each in names(root)))


def _check_functions(
    root: Expression, where: str, kind: str, *, allowed: Sequence[str] = ()
) -> None:
    from lakelog.core.expressions.function_names import AGGREGATES, NOT_DETERMINISTIC, SCALARS
    from lakelog.core.expressions.tree import Opaque, calls, names, walk

    for each in walk(root):
        if isinstance(each, Opaque) and each.holds - {"lambda"}:
            raise DeltaAnalysisError(
                f"[DELTA_UNSUPPORTED_EXPRESSION_{kind}] {each.sql} cannot be used in a {where}."
            )
    bare = [each.path[0] for each in names(root) if each.path[0].lower() in _PRESENT]
    for name in [*calls(root), *bare]:
        lower = name.lower()
        if lower in allowed or lower in SCALARS:
            continue
        if lower in AGGREGATES:
            problem, what = "AGGREGATE_IN", "an aggregate expression"
        elif lower in NOT_DETERMINISTIC:
            problem, what = "NON_DETERMINISTIC_EXPRESSION_IN", "a non deterministic expression"
        else:
            problem, what = "UDF_IN", "a user-defined function"
        raise DeltaAnalysisError(
            f"[DELTA_{problem}_{kind}] Found {name}. A {where} cannot use {what}.", function=name
        )
