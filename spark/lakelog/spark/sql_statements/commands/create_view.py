"""CREATE VIEW and ALTER VIEW over tables of ours, temporary and persistent ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.lookup import is_watched
from lakelog.spark.names.plain import plain_method
from lakelog.spark.names.provider import reads_delta
from lakelog.spark.names.stored_views import StoredView, with_query
from lakelog.spark.sql_statements.commands.column_definitions import text
from lakelog.spark.sql_statements.commands.persistent_views import by_options
from lakelog.spark.sql_statements.queries.named_tables import entry_of, place_of
from lakelog.spark.sql_statements.queries.view_rows import view_columns
from lakelog.spark.sql_statements.text.options_clause import given_options
from lakelog.spark.sql_statements.text.renaming import renaming
from lakelog.spark.sql_statements.text.statement import Statement, rewritten
from lakelog.spark.types.path_forms import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.text.cursor import Name

_GLOBAL = "global_temp"


@dataclass(slots=True)
class NewView:
    """A view that a statement makes."""

    name: Name
    temporary: bool = False
    shared: bool = False
    """Whether other sessions see it: GLOBAL."""
    replaces: bool = False
    columns: list[tuple[str, str | None]] = field(default_factory=list)
    """Names and comments."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The name of a temporary view as the catalog has it."""
        return (_GLOBAL, self.name.parts[-1]) if self.shared else self.name.parts


def create_view(s: CommandContext) -> Command | None:
    """`CREATE [OR REPLACE] [[GLOBAL] TEMPORARY] VIEW [IF NOT EXISTS] v [(columns)] … AS query`."""
    c = s.cursor
    c.need("CREATE")
    replaces = c.took("OR", "REPLACE")
    shared = c.took("GLOBAL")
    temporary = c.took("TEMPORARY") or c.took("TEMP")
    if not c.took("VIEW"):
        return None  # a function, a schema, an external table of Hive's
    if c.took("IF", "NOT", "EXISTS") and temporary:
        return None  # which Spark refuses
    wanted = NewView(c.name(), temporary, shared, replaces)
    if c.word == "(":
        _columns(s, wanted)
    if temporary and c.word == "USING":
        return _using(s, wanted)
    while c.token is not None and not c.took("AS"):
        if c.took("COMMENT"):
            c.string()
        elif c.took("TBLPROPERTIES"):
            c.skip_group()
        else:
            c.need("WITH", "SCHEMA")
            c.took("TYPE")
            c.need_any("BINDING", "COMPENSATION", "EVOLUTION")
    return _view_of_query(s, wanted)


def alter_view(s: CommandContext) -> Command | None:
    """`ALTER VIEW v [AS] query`, `ALTER VIEW v RENAME TO w`."""
    c = s.cursor
    c.need("ALTER", "VIEW")
    name = c.name()
    entry = entry_of(s.spark, name.parts)
    temporary = entry is not None and entry.kind == "temporary view"
    shared = entry is not None and entry.parts[0] == _GLOBAL
    wanted = NewView(name, temporary, shared, replaces=True)
    if c.took("RENAME", "TO"):
        new = c.name()
        c.end()
        if entry is None or entry.view is None or not temporary:
            return None
        kept = entry.view
        return lambda: _renamed(s, wanted, NewView(new, temporary, shared), kept)
    if c.word in ("SET", "UNSET", "WITH") and c.ahead(1) in ("TBLPROPERTIES", "SCHEMA"):
        return None
    c.took("AS")
    return _view_of_query(s, wanted)


def _columns(s: CommandContext, wanted: NewView) -> None:
    c = s.cursor
    c.need("(")
    while True:
        name = c.identifier()
        comment = text(s, "a comment") if c.took("COMMENT") else None
        wanted.columns.append((name, comment))
        if not c.took(","):
            break
    c.need(")")


def _view_of_query(s: CommandContext, wanted: NewView) -> Command | None:
    """What makes a view, if its query reads a table of ours, or a view that does."""
    c = s.cursor
    begin = c.at
    query = c.rest()
    if wanted.temporary:
        return made_view(s, wanted, query)
    before, at = c.text(0, begin), c.tokens[begin].start if begin < len(c.tokens) else 0
    lasting = by_options(s, query, at)
    if lasting is None:
        if not _reads_views(s.spark, query):
            return None
        # Spark reads views of ours as it reads others, and refuses temporary ones here.
        return lambda: s.runner.plain(f"{before} {query.text}")
    s.is_ours = True
    _check_frames(s, query)
    return lambda: s.runner.plain(f"{before} {lasting()}")


def _reads_views(spark: SparkSession, query: Statement) -> bool:
    """Whether a query reads views that may read tables of ours."""
    entries = (entry_of(spark, each.parts) for each in query.references)
    return any(entry is not None and entry.view is not None for entry in entries)


def _using(s: CommandContext, wanted: NewView) -> Command | None:
    """`CREATE TEMPORARY VIEW v USING delta OPTIONS (path '…')`."""
    c = s.cursor
    c.need("USING")
    if c.name().parts != ("delta",) or reads_delta(s.spark) or wanted.columns:
        return None  # a registered source can also write
    s.is_ours = True
    given = given_options(c.group(), s.runner.value) if c.took("OPTIONS") else {}
    c.end()
    path = given.pop("path", None)
    if path is None:
        raise c.error("[DELTA_TABLE_NOT_FOUND] the view needs OPTIONS (path '/its/table')")
    query = f"SELECT * FROM delta.{quoted(path)}"
    if (version := given.pop("versionasof", None)) is not None:
        query += f" VERSION AS OF {version}"
    if (moment := given.pop("timestampasof", None)) is not None:
        query += f" TIMESTAMP AS OF {text_literal(moment)}"
    if given:
        raise c.error(
            f"[UNSUPPORTED_FEATURE] a view of a table takes the options path, versionAsOf and "
            f"timestampAsOf, not {', '.join(given)}: use CREATE TEMPORARY VIEW … AS SELECT …"
        )
    return made_view(s, wanted, Statement(query))


def made_view(s: CommandContext, wanted: NewView, query: Statement) -> Command | None:
    """What makes a temporary view.

    Args:
        s: the statement.
        wanted: the view.
        query: its query, with values in the places of parameters.

    Returns:
        `None` if Spark can make it: the query reads no table of ours.

    Raises:
        SqlSyntaxError: it can't be made.
    """
    c = s.cursor
    _check_frames(s, query)
    runner = s.runner.inside(tuple(each.lower() for each in wanted.parts))
    frame = runner.query_of_ours(query)
    if frame is None:
        return None
    s.is_ours = True
    if not is_watched(s.spark):
        raise c.error(
            "[UNSUPPORTED_FEATURE] this keeps a query that reads a Delta table for later, when "
            "Spark evaluates it without lakelog: call lakelog.spark.enable(spark) first",
            wanted.name.first,
        )
    if len(wanted.name.parts) != 1 and not wanted.shared:
        raise c.error(
            "[INVALID_TEMP_OBJ_QUALIFIER] the name of a temporary view has one part",
            wanted.name.first,
        )
    if wanted.columns and len(wanted.columns) != len(frame.columns):
        many = len(wanted.columns) > len(frame.columns)
        raise c.error(
            f"[CREATE_VIEW_COLUMN_ARITY_MISMATCH.{'NOT_ENOUGH' if many else 'TOO_MANY'}"
            f"_DATA_COLUMNS] The view names {len(wanted.columns)} columns, and its query gives "
            f"{len(frame.columns)}: {', '.join(frame.columns)}",
            wanted.name.first,
        )
    names = tuple(name for name, _ in wanted.columns) or tuple(frame.columns)
    comments = tuple(comment for _, comment in wanted.columns)
    view = StoredView(_whole(s.spark, query), (), tuple(frame.columns), names, (), comments)

    def run() -> DataFrame:
        _put(wanted, view, frame)
        return s.nothing()

    return run


def _put(wanted: NewView, view: StoredView, frame: DataFrame) -> None:
    shown = view_columns(frame, view.output, view.names, view.comments)
    kind = "GlobalTempView" if wanted.shared else "TempView"
    verb = "createOrReplace" if wanted.replaces else "create"
    kept = with_query(shown, wanted.parts, view)
    plain_method(kept, f"{verb}{kind}")(wanted.name.parts[-1])


def _renamed(s: CommandContext, old: NewView, new: NewView, view: StoredView) -> DataFrame:
    """A temporary view with another name."""
    frame = s.runner.query(Statement(view.text))
    _put(NewView(new.name, shared=old.shared), view, frame)
    drop = "dropGlobalTempView" if old.shared else "dropTempView"
    plain_method(s.spark.catalog, drop)(old.name.parts[-1])
    return s.nothing()


def _check_frames(s: CommandContext, query: Statement) -> None:
    """Refuse a view of a table of ours and `{df}`, which is there while the statement runs."""
    if not any(name in query.text for name in s.frames):
        return
    named = [each.parts for each in query.references if not each.is_call]
    if _reads_views(s.spark, query) or any(place_of(s.spark, each) for each in named):
        raise DeltaAnalysisError(
            "[UNSUPPORTED_FEATURE] a view can't keep a DataFrame that is given as {name}: make a "
            "temporary view of it with createOrReplaceTempView, and name that one"
        )


def _whole(spark: SparkSession, query: Statement) -> str:
    """A query whose tables have their catalog and database, so that it means the same later."""
    found, names = [], []
    for each in query.references:
        entry = None if each.is_call else entry_of(spark, each.parts)
        if entry is not None and entry.kind != "temporary view" and each.parts != entry.parts:
            found.append(each)
            names.append(entry.parts)
    return rewritten(query.text, renaming(query.tokens, found, names))
