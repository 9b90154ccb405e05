"""INSERT INTO, INSERT OVERWRITE and INSERT INTO … REPLACE WHERE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.core import DeltaConf, keys
from lakelog.core.engine.schemas import fits_by_name
from lakelog.core.engine.tables import one_call
from lakelog.core.engine.write import overwrites_dynamically
from lakelog.core.errors import DeltaAnalysisError, SchemaMismatchError
from lakelog.spark.names.resolve import with_location
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.sql_statements.queries.named_tables import Place
from lakelog.spark.sql_statements.text.keywords import QUERY
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.types.type_sql import type_sql
from lakelog.spark.writing.enforced_rules import checked_default
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.save import save_frame
from lakelog.spark.writing.stored import inserted, spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core import Snapshot
    from lakelog.core.engine.write import SaveMode
    from lakelog.core.schema import StructType
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.text.cursor import Cursor
    from lakelog.spark.sql_statements.text.statement import Edit


@dataclass(slots=True)
class _Insert:
    place: Place
    overwrite: bool
    partition: list[tuple[str, str | None]]
    """Columns of PARTITION, with the value of each that has one."""
    evolves: bool = False
    """Whether it lets the table's schema grow."""
    by_name: bool = False
    columns: list[str] | None = None
    replace_where: str | None = None
    query: Statement = field(default_factory=lambda: Statement(""))


@dataclass(slots=True)
class _Command:
    """The statement, ready to run."""

    s: CommandContext
    wanted: _Insert

    def __call__(self) -> DataFrame:
        return _run(self.s, self.wanted)


def check_insert(command: Command) -> None:
    """See whether an INSERT's query fits its table, and write nothing.

    Args:
        command: any; others are not looked at.

    Raises:
        DeltaError, PySparkException: what running it would raise before it writes.
    """
    if isinstance(command, _Command):
        _rows(command.s, command.wanted)


def insert(s: CommandContext) -> Command | None:
    """`INSERT INTO|OVERWRITE [TABLE] t [PARTITION (…)] [(columns)|BY NAME] query`, and the like."""
    c = s.cursor
    c.need("INSERT")
    evolves = c.took("WITH", "SCHEMA", "EVOLUTION")
    if c.need_any("INTO", "OVERWRITE", "TABLE") == "OVERWRITE":
        overwrite = True
        if c.has("DIRECTORY") or c.has("LOCAL", "DIRECTORY"):
            return None
    else:
        overwrite = False
    c.took("TABLE")
    place = s.written("INSERT")
    if place is None or c.has("WITH", "("):
        return None
    partition = _partition(c) if c.took("PARTITION") else []
    wanted = _Insert(place, overwrite, partition, evolves)
    if c.took("IF", "NOT", "EXISTS"):
        raise c.error(
            "[UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS] The feature is not "
            "supported: INSERT with IF NOT EXISTS in the PARTITION spec of a Delta table. Use "
            "MERGE … WHEN NOT MATCHED THEN INSERT, which adds the rows that are not there yet",
            c.at - 3,
        )
    wanted.by_name = c.took("BY", "NAME")
    if not wanted.by_name and c.word == "(" and c.ahead(1) not in (*QUERY, "("):
        wanted.columns = [each.text for each in c.names()]
    if c.has("REPLACE", "WHERE") and not overwrite:
        c.need("REPLACE", "WHERE")
        wanted.replace_where = c.expression(*QUERY, what="a condition").text
    _refuse_replace_on(c)
    if c.word not in (*QUERY, "("):
        raise c.unexpected("a query")
    wanted.query = c.rest()
    return _Command(s, wanted)


def insert_query(s: CommandContext) -> tuple[Place, Statement] | None:
    """The table of an INSERT, and its query without DEFAULT; `None` if it isn't ours."""
    command = insert(s)
    if not isinstance(command, _Command):
        return None
    wanted = command.wanted
    static = [(name, value) for name, value in wanted.partition if value is not None]
    return wanted.place, _query(s.log(wanted.place).snapshot, wanted, static)[0]


def _query(
    snapshot: Snapshot, wanted: _Insert, static: Sequence[tuple[str, str]]
) -> tuple[Statement, list[str]]:
    """The query with values in the places of DEFAULT, and the columns that it is for."""
    targets = _targets(wanted, snapshot.schema, {name.lower() for name, _ in static})
    if wanted.by_name:
        return wanted.query, targets
    return _with_defaults(wanted.query, snapshot, targets), targets


def _refuse_replace_on(c: Cursor) -> None:
    """Refuse `INSERT INTO t [[AS] alias] REPLACE ON c | USING (columns) …`."""
    skipped = 1 if c.word == "AS" else 0
    for at in (0, skipped + 1):
        if c.ahead(at) == "REPLACE" and c.ahead(at + 1) in ("ON", "USING"):
            raise c.error(
                "[UNSUPPORTED_FEATURE.TABLE_OPERATION] The feature is not supported: a Delta table "
                f"has no INSERT INTO … REPLACE {c.ahead(at + 1)}. Use MERGE, whose ON says which "
                "rows are replaced, or REPLACE WHERE with a condition that the new rows keep",
                c.at + at,
            )


@one_call()
def insert_rows(
    frame: DataFrame,
    parts: Sequence[str],
    *,
    overwrite: bool,
    options: Mapping[str, Any],
    location: str | None = None,
) -> None:
    """Insert the rows of a DataFrame by the positions of their columns, as `insertInto` does.

    Args:
        frame: the rows.
        parts: the table's name.
        overwrite: whether they replace those that are there.
        options: of the writer.
        location: the table's, where the name is that of a view.

    Raises:
        DeltaError: the columns don't fit; and what `DeltaWriter.save` raises.
    """
    spark = frame.sparkSession

    def insert(location: str) -> None:
        conf = with_storage(session_conf(spark), {k: str(v) for k, v in options.items()})
        snapshot = session_log(spark, location, DeltaConf.from_mapping(conf)).update()
        given = {
            k: str(v).lower() if isinstance(v, bool) else str(v)
            for k, v in options.items()
            if k.lower() != "path"
        }
        mode: SaveMode = "overwrite" if overwrite else "append"
        evolves = bool(WriteOptions.from_options(mode, None, given, snapshot.conf).merge_schema)
        wanted = _Insert(Place(location, tuple(parts)), overwrite, [], evolves)
        rows = _fitted(frame, snapshot, wanted, snapshot.schema.names, [])
        save_frame(rows, location, mode, None, given)

    if location is None:
        with_location(spark, parts, insert)
    else:
        insert(location)


def _partition(c: Cursor) -> list[tuple[str, str | None]]:
    c.need("(")
    found: list[tuple[str, str | None]] = []
    while True:
        name = c.identifier()
        found.append((name, c.expression(",").text if c.took("=") else None))
        if not c.took(","):
            break
    c.need(")")
    return found


def _run(s: CommandContext, wanted: _Insert) -> DataFrame:
    snapshot, rows, static = _rows(s, wanted)
    options = {"mergeSchema": "true"} if wanted.evolves else {}
    if wanted.replace_where is not None:
        options["replaceWhere"] = wanted.replace_where
    elif wanted.overwrite and static and not overwrites_dynamically(snapshot.conf):
        options["replaceWhere"] = " AND ".join(_equals(snapshot.schema, *each) for each in static)
    replaces = wanted.overwrite or wanted.replace_where is not None
    mode: SaveMode = "overwrite" if replaces else "append"
    reads = replaces and (s.runner.has_read(wanted.place.path) or bool(wanted.place.view))
    save_frame(
        rows,
        wanted.place.path,
        mode,
        None,
        options,
        read_version=snapshot.version if reads else None,
    )
    return s.nothing()


def _rows(s: CommandContext, wanted: _Insert) -> tuple[Snapshot, DataFrame, list[tuple[str, str]]]:
    """The table, the rows as it will have them, and the values of PARTITION."""
    # Before the rows are planned: where the query reads the table itself, at a version that another
    # writer made in between, the write sees that the versions differ and refuses. The other way
    # round it would replace rows that the query has not seen.
    snapshot = s.log(wanted.place).snapshot
    static = [(name, value) for name, value in wanted.partition if value is not None]
    _check_partition(snapshot, wanted)
    query, targets = _query(snapshot, wanted, static)
    frame = s.runner.query(s.with_ctes(query))
    return snapshot, _fitted(frame, snapshot, wanted, targets, static), static


def _equals(schema: StructType, name: str, value: str) -> str:
    field = schema.get(name)
    assert field is not None
    if value.strip().upper() == "NULL":
        return f"{quoted(name)} IS NULL"
    return f"{quoted(name)} = CAST({value} AS {type_sql(field.data_type)})"


def _check_partition(snapshot: Snapshot, wanted: _Insert) -> None:
    known = {name.lower() for name in snapshot.partition_columns}
    for name, _ in wanted.partition:
        if name.lower() not in known:
            raise DeltaAnalysisError(
                f"[NON_PARTITION_COLUMN] PARTITION clause cannot contain the non-partition column "
                f"{name}; {snapshot.table} is partitioned by "
                f"{', '.join(snapshot.partition_columns) or 'no column'}",
                column=name,
                table=snapshot.table,
            )


def _targets(wanted: _Insert, schema: StructType, static: set[str]) -> list[str]:
    """The columns that the query gives, in its order."""
    if wanted.columns is not None:
        from lakelog.core.engine.schemas import split_path

        return [split_path(each)[0] for each in wanted.columns]
    names = [name for name in schema.names if name.lower() not in static]
    dynamic = [name for name, value in wanted.partition if value is None]
    if not dynamic:
        return names
    last = {name.lower() for name in dynamic}
    return [*(name for name in names if name.lower() not in last), *dynamic]


def _with_defaults(query: Statement, snapshot: Snapshot, targets: Sequence[str]) -> Statement:
    """The query, with the defaults of columns for the word DEFAULT in `VALUES (…)`."""
    tokens = query.tokens
    if not tokens or tokens[0].upper != "VALUES":
        return query
    edits: list[Edit] = []
    depth, column = 0, 0
    for number, token in enumerate(tokens):
        if token.text in ("(", "["):
            depth += 1
            column = 0 if depth == 1 else column
        elif token.text in (")", "]"):
            depth -= 1
        elif token.text == "," and depth <= 1:
            column += depth
        elif token.upper == "DEFAULT" and depth <= 1 and column < len(targets):
            after = tokens[number + 1].text if number + 1 < len(tokens) else ","
            if tokens[number - 1].text in ("(", ",") and after in (")", ","):
                edits.append((token.start, token.end, _default(snapshot, targets[column])))
    return query.replaced(edits)


def _default(snapshot: Snapshot, name: str) -> str:
    field = snapshot.schema.get(name)
    if field is None:
        return "NULL"
    sql = checked_default(field, snapshot.table, snapshot.conf) or "NULL"
    return f"CAST(({sql}\n) AS {type_sql(field.data_type)})"


def _fitted(
    frame: DataFrame,
    snapshot: Snapshot,
    wanted: _Insert,
    targets: Sequence[str],
    static: Sequence[tuple[str, str]],
) -> DataFrame:
    """The rows under the names and in the types of the table, as INSERT stores them."""
    schema, given = snapshot.schema, to_delta_schema(frame.schema)
    evolves = wanted.evolves or snapshot.conf.read(keys.MERGE_SCHEMA)
    widens = evolves and snapshot.properties.type_widening
    names = list(given.names)
    if not wanted.by_name:
        names = _by_position(snapshot, wanted, list(targets), given, evolves=evolves)
    pairs = [(each, schema.get(name)) for name, each in zip(names, given, strict=True)]
    by_name = all(
        field is None
        or fits_by_name(
            field.data_type, each.data_type, in_order=wanted.columns is not None, widens=widens
        )
        for each, field in pairs
    )
    if not wanted.by_name and wanted.columns is None:
        # Columns that are not the table's by name are the table's by position, with all in them.
        by_name &= names == given.names
    # By number: a query may give two columns of one name.
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
    columns = [
        sf.col(f"c{i}").alias(name)
        if field is None
        else inserted(sf.col(f"c{i}"), each.data_type, field, by_name=by_name, widens=widens)
        for i, (name, (each, field)) in enumerate(zip(names, pairs, strict=True))
    ]
    for name, value in static:
        field = schema.get(name)
        assert field is not None
        columns.append(sf.expr(value).cast(spark_type(field.data_type)).alias(field.name))
    return plain.select(*columns)


def _by_position(
    snapshot: Snapshot, wanted: _Insert, names: list[str], given: StructType, *, evolves: bool
) -> list[str]:
    """The name of each column of the query."""
    count = len(given.fields)
    unknown = [name for name in names if snapshot.schema.get(name) is None]
    if unknown:
        raise SchemaMismatchError(
            f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] the table {snapshot.table} has no column "
            f"{', '.join(unknown)}; it has {', '.join(snapshot.schema.names)}",
            table=snapshot.table,
            columns=unknown,
        )
    if count < len(names) or (count > len(names) and (wanted.columns is not None or not evolves)):
        raise SchemaMismatchError(
            f"[DELTA_INSERT_COLUMN_ARITY_MISMATCH] Cannot write to {wanted.place.text}: "
            f"{len(names)} columns are to be written ({', '.join(names)}), but the inserted data "
            f"has {count}. Name the columns that it has: INSERT INTO t (a, b) …",
            table=snapshot.table,
            expected=names,
            given=list(given.names),
        )
    return [*names, *given.names[len(names) :]]
