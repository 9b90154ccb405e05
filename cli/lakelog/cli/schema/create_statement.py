"""The statement that would create a table like one: `CREATE TABLE … USING delta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.engine.schemas import MARK, dotted, sql_path
from lakelog.core.schema import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.schema import DataType, StructField


def create_table_sql(
    table: str,
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    clustering_columns: Sequence[Sequence[str]] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> str:
    """The statement in Spark's SQL, with a column a line.

    Args:
        table: the URI of the table.
        schema: its schema.
        partition_columns: in partitioning order.
        clustering_columns: their paths, as users name them.
        properties: the table's.
        comment: the table's description.
    """
    columns = ",\n".join(f"  {_column(field)}" for field in schema)
    lines = [f"CREATE TABLE delta.{sql_path([table])} (\n{columns}\n)", "USING delta"]
    if partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(dotted([each]) for each in partition_columns)})")
    if clustering_columns:
        lines.append(f"CLUSTER BY ({', '.join(map(dotted, clustering_columns))})")
    if comment:
        lines.append(f"COMMENT {_text(comment)}")
    wanted = dict(properties or {})
    if any("CURRENT_DEFAULT" in field.metadata for field in schema):
        # Nothing else of the statement switches this feature on, and DEFAULT is refused without.
        wanted["delta.feature.allowColumnDefaults"] = "supported"
    if wanted:
        pairs = ",\n".join(f"  {_text(k)} = {_text(v)}" for k, v in sorted(wanted.items()))
        lines.append(f"TBLPROPERTIES (\n{pairs}\n)")
    return "\n".join(lines) + ";"


def _column(field: StructField) -> str:
    rules = field.metadata
    parts = [dotted([field.name]), _type_of(field)]
    if not field.nullable:
        parts.append("NOT NULL")
    if "delta.identity.start" in rules:
        always = "BY DEFAULT" if rules.get("delta.identity.allowExplicitInsert") else "ALWAYS"
        start, step = rules["delta.identity.start"], rules.get("delta.identity.step", 1)
        parts.append(f"GENERATED {always} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if generation := rules.get("delta.generationExpression"):
        parts.append(f"GENERATED ALWAYS AS ({generation})")
    if default := rules.get("CURRENT_DEFAULT"):
        parts.append(f"DEFAULT {default}")
    return " ".join([*parts, *_comment(rules)])


def _type_of(field: StructField) -> str:
    """The type, or `CHAR(n)` or `VARCHAR(n)`, which the schema keeps beside a string."""
    return str(field.metadata.get(MARK) or _type(field.data_type))


def _type(data_type: DataType) -> str:
    match data_type:
        case StructType():
            return f"STRUCT<{', '.join(map(_field, data_type))}>"
        case ArrayType(element, _):
            return f"ARRAY<{_type(element)}>"
        case MapType(key, value, _):
            return f"MAP<{_type(key)}, {_type(value)}>"
    return str(data_type).upper()


def _field(field: StructField) -> str:
    rule = [] if field.nullable else ["NOT NULL"]
    name = f"{dotted([field.name])}: {_type_of(field)}"
    return " ".join([name, *rule, *_comment(field.metadata)])


def _comment(metadata: Mapping[str, Any]) -> list[str]:
    comment = metadata.get("comment")
    return [f"COMMENT {_text(comment)}"] if comment else []


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
