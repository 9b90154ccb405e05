"""CREATE TABLE, with columns, AS SELECT, LIKE and CLONE; REPLACE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.names.lookup import entry_elsewhere, qualified
from lakelog.spark.session.given_options import FORMATS
from lakelog.spark.sql_statements.commands.cloning import clone_into
from lakelog.spark.sql_statements.commands.column_definitions import (
    column_definition,
    constraint_error,
    properties,
    text,
)
from lakelog.spark.sql_statements.commands.new_tables import (
    NewTable,
    create_as,
    create_empty,
    create_like,
)
from lakelog.spark.sql_statements.commands.restore_table import as_of
from lakelog.spark.sql_statements.queries.named_tables import path_in
from lakelog.spark.sql_statements.text.keywords import QUERY

if TYPE_CHECKING:
    from lakelog.core.engine.tables import CreateMode
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext


def create(s: CommandContext) -> Command | None:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t …`, `REPLACE TABLE t …`."""
    c = s.cursor
    mode = _mode(s)
    if mode is None:
        return None
    wanted = NewTable(c.name(), mode)
    if c.word in ("SHALLOW", "DEEP"):
        return _clone(s, wanted)
    if c.word == "LIKE":
        return _like(s, wanted)
    first = c.at
    if not (_may_be_ours(s, wanted) and _in_our_catalog(s, wanted)):
        return None
    s.is_ours = True
    c.at = first
    if c.word == "(" and c.ahead(1) not in (*QUERY, "("):
        _columns(s, wanted)
    _clauses(s, wanted)
    c.took("AS")
    if c.token is not None:
        if c.word not in (*QUERY, "("):
            raise c.unexpected("a clause of CREATE TABLE", "a query")
        wanted.query = c.rest()
    c.end()
    if wanted.query is None:
        return lambda: create_empty(s, wanted)
    if wanted.columns:
        raise c.error(
            "[PARSE_SYNTAX_ERROR] A table that is made AS SELECT has the columns of the query: "
            "leave out the list of columns",
            wanted.columns[0].at,
        )
    return lambda: create_as(s, wanted)


def _mode(s: CommandContext) -> CreateMode | None:
    """Go past the words before the name."""
    c = s.cursor
    if c.took("REPLACE"):
        c.need("TABLE")
        return "replace"
    c.need("CREATE")
    if c.took("OR", "REPLACE", "TABLE"):
        return "create_or_replace"
    if not c.took("TABLE"):
        return None  # a view, a function, a schema, an external table of Hive's
    return "create_if_not_exists" if c.took("IF", "NOT", "EXISTS") else "create"


def _may_be_ours(s: CommandContext, wanted: NewTable) -> bool:
    """Whether the table is to be one of Delta: by its path, its USING, or the session's default."""
    c = s.cursor
    c.skip("USING", "AS", *QUERY) if c.word != "(" else c.skip_group()
    c.skip("USING", "AS", *QUERY)
    if c.took("USING"):
        return c.name().parts[0].lower() in FORMATS
    parts = wanted.name.parts
    return (
        path_in(parts) is not None or entry_elsewhere(s.spark, parts) is not None or _is_default(s)
    )


def _in_our_catalog(s: CommandContext, wanted: NewTable) -> bool:
    """Whether the name is a path, or one of a catalog that is asked; others know what they make."""
    parts = wanted.name.parts
    if path_in(parts) is not None or qualified(s.spark, parts) is not None:
        return True
    return entry_elsewhere(s.spark, parts) is not None


def _is_default(s: CommandContext) -> bool:
    """Whether a table without USING is one of Delta."""
    return str(s.spark.conf.get("spark.sql.sources.default", "parquet")).lower() in FORMATS


def _columns(s: CommandContext, wanted: NewTable) -> None:
    c = s.cursor
    c.need("(")
    while True:
        if c.word in ("CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK") and c.ahead(1) != ")":
            raise constraint_error(c)
        wanted.columns.append(column_definition(s))
        if not c.took(","):
            break
    c.need(")")


def _clauses(s: CommandContext, wanted: NewTable) -> None:
    c = s.cursor
    seen: set[str] = set()
    while c.token is not None and c.word not in ("AS", "(", *QUERY):
        word = c.word
        if word in seen:
            raise c.error(f"[DUPLICATE_CLAUSES] Found duplicate clauses: {word}")
        seen.add(word)
        if c.took("USING"):
            wanted.provider = c.name().parts[0].lower()
        elif c.took("PARTITIONED"):
            c.need("BY")
            _partitioning(s, wanted)
        elif c.took("CLUSTER"):
            c.need("BY")
            if not c.took("NONE"):
                wanted.cluster_by = [each.text for each in c.names()]
        elif c.took("LOCATION"):
            wanted.location = text(s, "the folder")
        elif c.took("COMMENT"):
            wanted.comment = text(s, "the comment")
        elif c.took("TBLPROPERTIES"):
            wanted.properties = {**wanted.properties, **properties(s)}
        elif c.took("OPTIONS"):
            _options(wanted, properties(s))
        else:
            raise c.unexpected("a clause of CREATE TABLE")
    if path_in(wanted.name.parts) is not None and wanted.location is not None:
        raise c.error(
            "[DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH] Creating path-based Delta table "
            f"with a different location isn't supported. Identifier: {wanted.name.text}, "
            f"Location: {wanted.location}",
            wanted.name.first,
        )


def _options(wanted: NewTable, given: dict[str, str]) -> None:
    for key, value in given.items():
        if key.lower() == "path":
            wanted.location = value
        elif key.lower().startswith("delta."):
            wanted.properties[key] = value


def _partitioning(s: CommandContext, wanted: NewTable) -> None:
    """Names of columns; or, as Hive has it, columns that come after the others."""
    c = s.cursor
    c.need("(")
    while True:
        if c.ahead(1) in (",", ")"):
            wanted.partition_by.append(c.identifier())
        elif c.ahead(1) == "(":
            raise s.not_supported(f"Partitioning by expressions ({c.word.lower()}(…))")
        else:
            column = column_definition(s)
            wanted.columns.append(column)
            wanted.partition_by.append(column.path[0])
        if not c.took(","):
            break
    c.need(")")


def _like(s: CommandContext, wanted: NewTable) -> Command | None:
    """`CREATE TABLE t LIKE other [USING delta] [TBLPROPERTIES …] [LOCATION …]`."""
    c = s.cursor
    c.need("LIKE")
    source = s.place()
    if source is None:
        return None
    _clauses(s, wanted)
    c.end()
    if wanted.provider is not None and wanted.provider not in FORMATS:
        return None
    if wanted.partition_by or wanted.cluster_by:
        raise s.not_supported("CREATE TABLE … LIKE with another layout")
    return lambda: create_like(s, wanted, source)


def _clone(s: CommandContext, wanted: NewTable) -> Command | None:
    """`CREATE TABLE t SHALLOW CLONE source [VERSION AS OF …] [TBLPROPERTIES …] [LOCATION …]`."""
    c = s.cursor
    shallow = c.need_any("SHALLOW", "DEEP") == "SHALLOW"
    c.need("CLONE")
    source = s.ours("CLONE")
    when = as_of(s, "TBLPROPERTIES", "LOCATION", "COMMENT")
    _clauses(s, wanted)
    c.end()
    return lambda: clone_into(s, wanted, source, when, shallow=shallow)
