"""ALTER TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from lakelog.core.alter import change_column
from lakelog.core.engine.schemas import without_limits
from lakelog.core.engine.tables import Addition, ColumnChange, add_columns_at, change_columns
from lakelog.core.schema import StructType as CoreStruct
from lakelog.spark.names.moves import rename_table, set_location
from lakelog.spark.sql_statements.commands.column_definitions import (
    column_definition,
    data_type,
    position,
    properties,
    text,
)
from lakelog.spark.sql_statements.queries.named_tables import place_of
from lakelog.spark.types.spark_types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.column_definitions import ColumnDefinition
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place
    from lakelog.spark.table.delta_table import DeltaTable

    Change = Callable[[DeltaTable], object]

_NOT_OF_V2 = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
_PARTITIONS = "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"


def alter(s: CommandContext) -> Command | None:
    """`ALTER TABLE t …`, in all forms that Delta has."""
    c = s.cursor
    c.need("ALTER", "TABLE")
    place = s.place()
    if place is None:
        return None
    name_change = _name_change(s, place)
    change = _change(s, place) if name_change is None else None
    c.end()

    def run() -> DataFrame:
        if name_change is not None:
            name_change()  # whether or not there is a table behind the name
        elif change is not None:
            change(s.table(place))
        return s.nothing()

    return run


def comment_on(s: CommandContext) -> Command | None:
    """`COMMENT ON TABLE t IS …`, which Spark by itself would note in its catalog alone."""
    c = s.cursor
    c.need("COMMENT", "ON", "TABLE")
    place = s.place()
    if place is None:
        return None
    c.need("IS")
    comment = "" if c.took("NULL") else text(s, "the comment")
    c.end()

    def run() -> DataFrame:
        s.table(place).setProperties({"comment": comment})
        return s.nothing()

    return run


def comment_on_column(s: CommandContext) -> Command | None:
    """`COMMENT ON COLUMN t.c IS …`, which Spark by itself would note in its catalog alone."""
    c = s.cursor
    c.need("COMMENT", "ON", "COLUMN")
    parts = c.name().parts
    # What follows the table is a column, or a field of one.
    for width in range(len(parts) - 1, 0, -1):
        place = place_of(s.spark, parts[:width])
        if place is not None:
            return _commented(s, place, list(parts[width:]))
    return None


def _commented(s: CommandContext, place: Place, column: list[str]) -> Command:
    s.is_ours = True
    c = s.cursor
    c.need("IS")
    comment = "" if c.took("NULL") else text(s, "the comment")
    c.end()

    def run() -> DataFrame:
        change_column(s.table(place).log, column, comment=comment)
        return s.nothing()

    return run


def _name_change(s: CommandContext, place: Place) -> Callable[[], None] | None:
    """What changes the catalog and not the table; `None` if it is something else."""
    c = s.cursor
    if not c.has("RENAME", "TO") and not c.has("SET", "LOCATION"):
        return None
    c.at += 1
    if not place.in_catalog:
        raise s.not_supported(
            f"ALTER TABLE … {c.word} for a path: it changes what a name of the catalog means; it"
        )
    if c.took("TO"):
        new = c.name().parts
        return lambda: rename_table(s.spark, place.parts, new)
    c.need("LOCATION")
    folder = text(s, "the folder")
    return lambda: set_location(s.spark, place.parts, folder)


def _change(s: CommandContext, place: Place) -> Change:  # one return for each form
    c = s.cursor
    word = c.need_any(
        "ADD", "ALTER", "CHANGE", "CLUSTER", "DROP", "RENAME", "REPLACE", "SET", "UNSET", "RECOVER"
    )
    match word:
        case "ADD":
            return _added(s)
        case "ALTER" | "CHANGE":
            return _changed(s, hive=word == "CHANGE")
        case "CLUSTER":
            c.need("BY")
            if c.took("NONE"):
                return lambda table: table.clusterBy()
            by = [each.text for each in c.names()]
            return lambda table: table.clusterBy(*by)
        case "DROP":
            return _dropped(s)
        case "RENAME":
            return _renamed(s, place)
        case "REPLACE":
            c.need("COLUMNS")
            return _replaced(s)
        case "SET":
            if c.took("TBLPROPERTIES"):
                given = properties(s)
                return lambda table: table.setProperties(given)
            raise s.not_supported(f"ALTER TABLE … SET {c.word}", _NOT_OF_V2)
        case "UNSET":
            c.need("TBLPROPERTIES")
            c.took("IF", "EXISTS")  # delta-spark takes what isn't there as removed without it too
            names = list(properties(s, values=False))
            return lambda table: table.unsetProperties(*names, ifExists=True)
    raise s.not_supported(f"ALTER TABLE … {word}", _NOT_OF_V2)


def _added(s: CommandContext) -> Change:
    c = s.cursor
    if c.took("CONSTRAINT"):
        name = c.identifier()
        if c.word != "CHECK":
            raise s.not_supported(f"ALTER TABLE … ADD CONSTRAINT … {c.word}")
        c.need("CHECK")
        condition = c.group().text
        return lambda table: table.addConstraint(name, condition)
    if c.need_any("COLUMN", "COLUMNS", "PARTITION", "IF") not in ("COLUMN", "COLUMNS"):
        raise s.not_supported("ALTER TABLE … ADD PARTITION", _PARTITIONS)
    wrapped = c.took("(")
    found = [column_definition(s)]
    while c.took(","):
        found.append(column_definition(s))
    if wrapped:
        c.need(")")
    for each in found:
        _plain(s, each)
    return _additions(s, found)


def _plain(s: CommandContext, column: ColumnDefinition) -> None:
    """Refuse what a column that is added can't have."""
    if column.generated is not None or column.identity is not None:
        raise s.cursor.error(
            "[DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP] A generated or identity column can't be "
            "added to an existing table: its rows would have no value there",
            column.at,
        )
    if column.default is not None:
        raise s.cursor.error(
            "[WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED] Failed to "
            "execute the command because DEFAULT values are not supported when adding new columns "
            "to previously existing Delta tables; please add the column without a default value "
            "first, then run a second ALTER TABLE ALTER COLUMN SET DEFAULT command to apply for "
            "future inserted rows instead",
            column.at,
        )


def _additions(s: CommandContext, found: list[ColumnDefinition]) -> Change:
    """Add columns, all in one commit."""

    def run(table: DeltaTable) -> object:
        additions = []
        for each in found:
            word, after = each.place or ("", None)
            new = _new_column(s, each)
            additions.append(Addition(new, each.path[:-1], after, first=word == "first"))
        return add_columns_at(table.log, additions)

    return run


def _new_column(s: CommandContext, column: ColumnDefinition) -> CoreStruct:
    plain, marks = without_limits(column.kind)
    kind = s.spark.range(0).selectExpr(f"CAST(NULL AS {plain}) AS c").schema[0].dataType
    metadata = {} if column.comment is None else {"comment": column.comment}
    field = StructField(column.path[-1], kind, column.nullable, metadata)
    (made,) = to_delta_schema(StructType([field]))
    if len(column.path) > 1:
        marks = {}
    return CoreStruct((replace(made, metadata={**made.metadata, **marks}),))


def _changed(s: CommandContext, *, hive: bool) -> Change:
    c = s.cursor
    c.took("COLUMN")
    at, name = c.at, c.name()
    path = list(name.parts)
    if c.took("SYNC", "IDENTITY"):
        return lambda table: table.syncIdentity(name.text)
    given = _one_change(s)
    if given is None:
        if not hive:
            raise c.unexpected("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER", "SYNC IDENTITY")
        return _hive_change(s, at, path)
    changes = [ColumnChange(path, **given)]
    while c.took(","):
        other = list(c.name().parts)
        more = _one_change(s)
        if more is None:
            raise c.unexpected("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")
        changes.append(ColumnChange(other, **more))
    if len(changes) == 1:
        return lambda table: change_column(table.log, path, **given)
    return lambda table: change_columns(table.log, changes)


def _one_change(s: CommandContext) -> dict[str, Any] | None:
    """What becomes of a column, for `change_column`; `None` if nothing of this is here."""
    c = s.cursor
    if c.took("TYPE"):
        return {"data_type": data_type(c)}
    if c.took("COMMENT"):
        return {"comment": text(s, "the comment")}
    if c.took("SET", "NOT", "NULL"):
        return {"nullable": False}
    if c.took("DROP", "NOT", "NULL"):
        return {"nullable": True}
    if c.took("SET", "DEFAULT"):
        return {"default": c.expression(",", what="the default").text}
    if c.took("DROP", "DEFAULT"):
        return {"default": ""}
    return _placed(position(c))


def _placed(place: tuple[str, str | None] | None) -> dict[str, Any] | None:
    if place is None:
        return None
    word, after = place
    return {"first": True} if word == "first" else {"after": after}


def _hive_change(s: CommandContext, at: int, path: list[str]) -> Change:
    """`CHANGE COLUMN old new type [COMMENT '…']`, where the name stays."""
    c = s.cursor
    definition = column_definition(s)
    if definition.path[-1].lower() != path[-1].lower():
        raise c.error(
            "[DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP] CHANGE COLUMN can't rename a column: "
            "use ALTER TABLE … RENAME COLUMN",
            at,
        )
    kind, comment = definition.kind, definition.comment
    place = _placed(definition.place) or {}
    return lambda table: table.alterColumn(path, dataType=kind, comment=comment, **place)


def _dropped(s: CommandContext) -> Change:
    c = s.cursor
    word = c.need_any("COLUMN", "COLUMNS", "CONSTRAINT", "FEATURE", "PARTITION", "IF")
    if word == "CONSTRAINT":
        if_exists = c.took("IF", "EXISTS")
        name = c.identifier()
        return lambda table: table.dropConstraint(name, ifExists=if_exists)
    if word == "FEATURE":
        feature = c.string()
        shown = c.identifier() if feature is None else str(s.runner.value(feature))
        truncate = c.took("TRUNCATE", "HISTORY")
        return lambda table: table.dropFeatureSupport(shown, truncateHistory=truncate)
    if word in ("PARTITION", "IF"):
        raise s.not_supported("ALTER TABLE … DROP PARTITION", _PARTITIONS)
    if_exists = c.took("IF", "EXISTS")
    names = c.names() if c.word == "(" else [c.name()]
    while c.took(","):
        names.append(c.name())
    paths = [list(each.parts) for each in names]

    def run(table: DeltaTable) -> object:
        from lakelog.core.engine.schemas import find_column

        schema = table.log.update().schema
        known = [p for p in paths if not if_exists or find_column(p, schema) is not None]
        return table.dropColumns(*known) if known else None

    return run


def _renamed(s: CommandContext, place: Place) -> Change:
    c = s.cursor
    if not c.took("COLUMN"):
        raise s.not_supported(f"ALTER TABLE {place.text} RENAME {c.word}")
    path = list(c.name().parts)
    c.need("TO")
    name = c.identifier()
    return lambda table: table.renameColumn(path, name)


def _replaced(s: CommandContext) -> Change:
    c = s.cursor
    wrapped = c.took("(")
    first = c.at
    column_definition(s)
    while c.took(","):
        column_definition(s)
    given = c.text(first, c.at)
    if wrapped:
        c.need(")")

    def run(table: DeltaTable) -> object:
        return table.replaceColumns(s.spark.createDataFrame([], given).schema)

    return run
