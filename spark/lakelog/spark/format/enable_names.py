"""What `enable` does to the methods of PySpark that take the name of a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lakelog.core import drop_table
from lakelog.core.engine.tables import known_catalogs
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.format.claims import is_ours
from lakelog.spark.format.our_names import is_governed_name, is_our_name, is_our_view
from lakelog.spark.format.requests import (
    READER_NOTES,
    Note,
    Request,
    note_cluster_by,
    note_format,
    note_option,
    note_options,
    note_partition_by,
    noting,
    request_of,
    session_of_reader,
)
from lakelog.spark.format.stream_reader import is_plain
from lakelog.spark.names.frame_views import note_alias, note_view
from lakelog.spark.names.identifiers import SESSION_CATALOG, parse, path_in, quoted_name
from lakelog.spark.names.lookup import chosen_namespace, entry_elsewhere, forget
from lakelog.spark.names.placing import exists
from lakelog.spark.names.resolve import location_of
from lakelog.spark.reading.reader import DeltaReader
from lakelog.spark.session.session import is_connect, session_conf, set_confs
from lakelog.spark.sql_statements.names_of_methods import (
    cache_table,
    is_table_cached,
    named_frame,
    uncache_table,
)
from lakelog.spark.sql_statements.queries.cached_rows import forget_cached
from lakelog.spark.sql_statements.queries.named_tables import Place
from lakelog.spark.sql_statements.queries.written_views import refreshed, written_place
from lakelog.spark.types.path_forms import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.format.requests import Wrap
    from lakelog.spark.format.stream_reader import DeltaStreamReader
    from lakelog.spark.writing.writer import DeltaWriter

_UNGUESSABLE = ("_pyspark_", "_lakelog_")
"""What the names of PySpark's own and of our temporary views begin with."""


def name_classes(spark: SparkSession) -> tuple[Any, Any, Any]:
    """PySpark's DataFrame, `DataFrameWriterV2` and Catalog for sessions of this kind."""
    module = sys.modules[type(spark.read).__module__]
    if is_connect(spark):
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

        return ConnectFrame, module.DataFrameWriterV2, type(spark.catalog)
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    return ClassicFrame, module.DataFrameWriterV2, type(spark.catalog)


def frame_of(writer: Any, spark: Any) -> DataFrame:
    """The DataFrame that a writer of rows or of a stream writes; Connect keeps its plan only."""
    if not is_connect(spark):
        frame: DataFrame = writer._df
        return frame
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    stream = getattr(writer, "_write_stream", None)
    return ConnectFrame(writer._df if stream is None else stream._child, spark)


_STAND_IN = "lakelog_elsewhere"
"""A name that Spark takes for one of its own catalog, and never looks up."""
_OF_VERSIONS = ("versionasof", "timestampasof")


def _session_table(original: Any) -> Any:
    def table(self: Any, tableName: str) -> Any:  # noqa: N803  # PySpark's name
        frame = _by_name(self, tableName)
        return original(self, tableName) if frame is None else frame

    return table


def _by_name(spark: SparkSession, name: Any) -> Any:
    """The rows of a Delta table, or of a view over one; `None` for what Spark reads."""
    if not (is_our_name(spark, name) or is_our_view(spark, name)):
        return None
    return named_frame(spark, name)


def _load_of(reader: type[DeltaReader | DeltaStreamReader]) -> Callable[[Any], Any]:
    """A reader's `load`, by our reader where the format is ours."""

    def replaced(original: Any) -> Any:
        def load(
            self: Any,
            path: Any = None,
            format: str | None = None,  # noqa: A002  # PySpark's name
            schema: Any = None,
            **options: Any,
        ) -> Any:
            request, spark = request_of(self), session_of_reader(self)
            if is_plain(self) or not is_ours(spark, format or request.format):
                return original(self, path, format, schema, **options)
            expected = request.schema if schema is None else schema
            ours = reader(spark).options(**request.options)
            return ours.load(path, schema=expected, **options)

        return load

    return replaced


def _table_of(reader: type[DeltaReader | DeltaStreamReader]) -> Callable[[Any], Any]:
    """A reader's `table`, by our reader where the name is that of a Delta table."""

    def replaced(original: Any) -> Any:
        def table(self: Any, tableName: str) -> Any:  # noqa: N803  # PySpark's name
            spark, options = session_of_reader(self), request_of(self).options
            if reader is DeltaReader and (not options or is_our_view(spark, tableName)):
                # Spark refuses an older version of a view, and passes over other options.
                travels = not {each.lower() for each in options}.isdisjoint(_OF_VERSIONS)
                frame = None if travels else _by_name(spark, tableName)
                return original(self, tableName) if frame is None else frame
            if not is_our_name(spark, tableName):
                return original(self, tableName)
            return reader(spark).options(**options).table(tableName)

        return table

    return replaced


def _insert_into(original: Any) -> Any:
    def insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        place = _written(self._spark, tableName, "INSERT")
        if place is None:
            original(self, tableName, overwrite)
            return
        from lakelog.spark.sql_statements.commands.insert import insert_rows

        request = request_of(self)
        asked = [
            *request.layout,
            *(["clusterBy"] if request.cluster_by else []),
            *([] if request.partition_by is None else ["partitionBy"]),
        ]
        if asked:
            raise DeltaAnalysisError(
                f"insertInto() can't be used together with {', '.join(asked)}: the table "
                f"{tableName} exists and has its own layout. Leave it out",
                table=tableName,
            )
        mode = (request.mode or "").lower()
        replaces = mode == "overwrite" if overwrite is None else overwrite
        insert_rows(
            frame_of(self, self._spark),
            parse(tableName),
            overwrite=replaces,
            options=request.options,
            location=place.path if place.view else None,
        )
        refreshed(self._spark, place)

    return insert_into


def _written(spark: SparkSession, name: object, verb: str) -> Place | None:
    """The table whose rows a method changes, by its name or by that of a view that means it."""
    if is_our_name(spark, name):
        return Place("", parse(str(name)))
    if not isinstance(name, str) or not is_ours(spark, "delta"):
        return None
    try:
        parts = parse(name)
    except DeltaAnalysisError:
        return None
    found = None if path_in(parts) is not None else written_place(spark, parts, verb)
    return found if found is not None and not found.in_catalog else None


def _makes_ours(spark: SparkSession, source: str | None, name: object) -> bool:
    """Whether a table that is made, or replaced, is one of Delta.

    Where no format is named, a table that is there keeps its own: Spark would put one of the
    default format in its place.
    """
    return is_ours(spark, source) or (source is None and is_our_name(spark, name))


def refuse_format(spark: SparkSession, source: str | None, name: object) -> None:
    """Refuse to make a table of another format in a catalog that Spark does not know.

    Raises:
        DeltaAnalysisError: Spark would make it in its own.
    """
    if chosen_namespace(spark) is None or not isinstance(name, str):
        return
    found = entry_elsewhere(spark, parse(name))
    if found is not None:
        raise DeltaAnalysisError(
            f"{found.text} can't be made as {source or 'a table of the default format'}: lakelog "
            f"makes Delta tables in the catalog {found.parts[0]}. Leave the format out or use "
            f"delta, or name a table of Spark's own, as {SESSION_CATALOG}.default.{name}",
            table=found.text,
        )


def asked_writer(
    writer: Any, mode: str | None, partition_by: Any, options: dict[str, Any]
) -> DeltaWriter:
    """What a PySpark writer was asked for, and the arguments of the call that ends it.

    Raises:
        DeltaAnalysisError: a layout that no Delta table has.
    """
    from lakelog.spark.writing.writer import DeltaWriter

    request = request_of(writer)
    if request.layout:
        raise DeltaAnalysisError(
            f"a Delta table does not support {', '.join(request.layout)}: partition it with "
            "partitionBy, cluster it with clusterBy, and sort rows within files with "
            "df.sortWithinPartitions",
            methods=[*request.layout],
        )
    note_options(request, **options)
    found = DeltaWriter(frame_of(writer, writer._spark)).options(**request.options)
    if (chosen := mode or request.mode) is not None:
        found.mode(chosen)
    if partition_by is not None:
        note_partition_by(request, partition_by)
    if request.partition_by is not None:
        found.partitionBy(*request.partition_by)
    if request.cluster_by:
        found.clusterBy(*request.cluster_by)
    return found


def _save_as_table(original: Any) -> Any:
    def save_as_table(
        self: Any,
        name: str,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> None:
        request = request_of(self)
        if not _makes_ours(self._spark, format or request.format, name):
            refuse_format(self._spark, format or request.format, name)
            try:
                original(self, name, format, mode, partitionBy, **options)
            finally:
                forget()
            return
        asked_writer(self, mode, partitionBy, options).saveAsTable(name)

    return save_as_table


def _write_to(original: Any) -> Any:
    def write_to(self: Any, table: str) -> Any:
        # Spark loads the class of a name's catalog at once, and may have none.
        governed = is_governed_name(self.sparkSession, table)
        made = original(self, _STAND_IN if governed else table)
        request = request_of(made)
        request.governed = governed
        request.frame, request.table = self, table
        return made

    return write_to


def _merge_into(original: Any) -> Any:
    def merge_into(self: Any, table: str, condition: Any) -> Any:
        spark = self.sparkSession
        place = _written(spark, table, "MERGE")
        if place is None:
            return original(self, table, condition)
        from lakelog.spark.table.delta_table import DeltaTable
        from lakelog.spark.table.merge_into import TableMerge

        if place.view:
            opened = DeltaTable.forPath(spark, place.path)
        else:
            opened = DeltaTable.forName(spark, table)
        merge = opened.alias(parse(table)[-1]).merge(self, condition)
        return TableMerge(merge, lambda: refreshed(spark, place))

    return merge_into


def _note_property(request: Request, property: str, value: str) -> None:  # noqa: A002
    request.properties[property] = value


def _note_partitioned_by(request: Request, col: Any, *cols: Any) -> None:
    request.partition_by = [col, *cols]


_V2_NOTES: dict[str, Note] = {
    "using": note_format,
    "option": note_option,
    "options": note_options,
    "tableProperty": _note_property,
    "partitionedBy": _note_partitioned_by,
    "clusterBy": note_cluster_by,
}


def _verb(name: str, *, makes: bool) -> Any:
    """A method that writes: by the format where it makes a table, by the name where it does not."""

    def wrap(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> None:
            request, spark = request_of(self), self._spark
            table = request.table
            ours = request.governed or (
                _makes_ours(spark, request.format, table) if makes else is_our_name(spark, table)
            )
            if not ours or table is None:
                if makes:
                    refuse_format(spark, request.format, table)
                try:
                    original(self, *args, **kwargs)
                finally:
                    forget()
                return
            from lakelog.spark.writing.writer_v2 import DeltaWriterV2

            writer = DeltaWriterV2(request.frame, table).options(**request.options)
            if request.governed and request.format is not None:
                writer.using(request.format)
            for key, value in request.properties.items():
                writer.tableProperty(key, value)
            if request.partition_by:
                writer.partitionedBy(*request.partition_by)
            if request.cluster_by:
                writer.clusterBy(*request.cluster_by)
            getattr(writer, name)(*args, **kwargs)

        return method

    return wrap


def _forgetting(original: Any) -> Any:
    """What Spark does itself, and what may give names another meaning."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        finally:
            given = args[0] if args else next(iter(kwargs.values()), "")
            if not str(given).startswith(_UNGUESSABLE):
                forget()

    return method


def _alias(original: Any) -> Any:
    def alias(self: Any, alias: str) -> Any:
        named = original(self, alias)
        note_alias(self, named, alias)
        return named

    return alias


def _makes_view(*, shared: bool) -> Any:
    """What makes a temporary view of a DataFrame, which may be the rows of a table of ours."""

    def wrap(original: Any) -> Any:
        forgetting = _forgetting(original)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            made = forgetting(self, *args, **kwargs)
            name = str(args[0] if args else next(iter(kwargs.values()), ""))
            if not name.startswith(_UNGUESSABLE):
                note_view(self.sparkSession, self, name, shared=shared)
            return made

        return method

    return wrap


def _refuse_changes(original: Any) -> Any:
    """Refuse `changes(name)` of a reader, for tables of ours."""

    def changes(self: Any, tableName: str) -> Any:  # noqa: N803  # PySpark's name
        spark = session_of_reader(self)
        if not is_our_name(spark, tableName):
            return original(self, tableName)
        raise DeltaAnalysisError(
            f"changes() is for tables whose catalog keeps their changes; {tableName} is a Delta "
            'table, which does so itself: option("readChangeFeed", "true") with startingVersion, '
            "and table(name)",
            table=tableName,
        )

    return changes


def _refusing(method: str, reason: str) -> Any:
    def wrap(original: Any) -> Any:
        def refuse(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803
            if not is_our_name(self._sparkSession, tableName):
                return original(self, tableName, *args, **kwargs)
            raise DeltaAnalysisError(
                f"{method} has no meaning for the Delta table {tableName}: {reason}",
                table=tableName,
            )

        return refuse

    return wrap


def _cache_method(act: Any) -> Any:
    """A method about what is cached of a table or view.

    Args:
        act: does it; answers `None` or false where the name is not one of ours.
    """

    def wrap(original: Any) -> Any:
        def method(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803
            spark = self._sparkSession
            if is_our_name(spark, tableName) or is_our_view(spark, tableName):
                answer = act(spark, tableName, *args, **kwargs)
                if act is is_table_cached and answer is not None:
                    return answer
                if act is not is_table_cached and answer:
                    return None
            return original(self, tableName, *args, **kwargs)

        return method

    return wrap


def _clear_cache(original: Any) -> Any:
    def clear_cache(self: Any) -> None:
        original(self)
        forget_cached(self._sparkSession)

    return clear_cache


def _truncate(original: Any) -> Any:
    def truncate(self: Any, tableName: str) -> None:  # noqa: N803  # PySpark's name
        if not is_our_name(self._sparkSession, tableName):
            original(self, tableName)
            return
        from lakelog.spark.table.delta_table import DeltaTable

        DeltaTable.forName(self._sparkSession, tableName).delete()

    return truncate


def _table_exists(original: Any) -> Any:
    def table_exists(self: Any, tableName: str, dbName: str | None = None) -> bool:  # noqa: N803
        spark = self._sparkSession
        name = tableName if dbName is None else f"{dbName}.{tableName}"
        if not is_governed_name(spark, name):
            found: bool = original(self, tableName, dbName)
            return found
        return exists(spark, location_of(spark, name))

    return table_exists


def _drop_table(original: Any) -> Any:
    forgetting = _forgetting(original)

    def drop(self: Any, tableName: str, ifExists: bool = False, purge: bool = False) -> None:  # noqa: N803
        spark = self._sparkSession
        if not is_governed_name(spark, tableName):
            forgetting(self, tableName, ifExists, purge)
            return
        drop_table(location_of(spark, tableName), if_exists=ifExists, conf=session_conf(spark))

    return drop


def _create_table(original: Any) -> Any:
    def create_table(
        self: Any,
        tableName: str,  # noqa: N803  # PySpark's name
        path: str | None = None,
        source: str | None = None,
        schema: Any = None,
        description: str | None = None,
        **options: Any,
    ) -> Any:
        spark = self._sparkSession
        if not is_ours(spark, source):
            refuse_format(spark, source, tableName)
            try:
                return original(self, tableName, path, source, schema, description, **options)
            finally:
                forget()
        from lakelog.spark.table.delta_table import DeltaTable

        given = {key.lower(): value for key, value in options.items()}
        location = path or given.get("path")
        made = DeltaTable.create(spark).tableName(tableName)
        if location is not None:
            made.location(str(location))
        if schema is not None:
            made.addColumns(schema)
        if description is not None:
            made.comment(description)
        for key, value in options.items():
            if key.lower().startswith("delta."):
                made.property(key, str(value))
        made.execute()
        return DeltaReader(spark).table(tableName)

    return create_table


def _current_part(number: int) -> Any:
    def wrap(original: Any) -> Any:
        def current(self: Any) -> Any:
            chosen = chosen_namespace(self._sparkSession)
            return original(self) if chosen is None else chosen[number]

        return current

    return wrap


def _using(words: str) -> Any:
    """A method that does what a statement does, where that may be about a catalog of ours."""

    def wrap(original: Any) -> Any:
        forgetting = _forgetting(original)

        def method(self: Any, *args: Any, **kwargs: Any) -> None:
            spark = self._sparkSession
            name = next(iter((*args, *kwargs.values())), None)
            if isinstance(name, str) and known_catalogs(set_confs(spark)):
                spark.sql(f"{words} {quoted_name(parse(name))}")
            else:
                forgetting(self, *args, **kwargs)

        return method

    return wrap


def _of_sparks_catalog(instead: str) -> Any:
    """A method that knows Spark's own catalogs alone.

    Args:
        instead: what to use while the current catalog is another one.
    """

    def wrap(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            chosen = chosen_namespace(self._sparkSession)
            given = [str(each).strip("`").lower() for each in (*args, *kwargs.values())]
            if chosen is None or any(each.startswith(SESSION_CATALOG) for each in given):
                return original(self, *args, **kwargs)
            raise DeltaAnalysisError(
                f"spark.catalog.{original.__name__} knows Spark's own catalogs, and the current "
                f"one is {chosen[0]}, which lakelog asks: use {instead.format(*chosen)}, or go "
                f"back with USE {SESSION_CATALOG}",
            )

        return method

    return wrap


def _list_catalogs(original: Any) -> Any:
    def list_catalogs(self: Any, pattern: str | None = None) -> Any:
        spark = self._sparkSession
        if not known_catalogs(set_confs(spark)):
            return original(self, pattern)
        from pyspark.sql.catalog import CatalogMetadata

        like = "" if pattern is None else f" LIKE {text_literal(pattern)}"
        rows = spark.sql(f"SHOW CATALOGS{like}").collect()
        return [CatalogMetadata(name=row.catalog, description=None) for row in rows]

    return list_catalogs


def _list_columns(original: Any) -> Any:
    """The columns of a table as its log has them: its entry in the catalog has none."""

    def list_columns(self: Any, tableName: str, dbName: str | None = None) -> Any:  # noqa: N803
        spark = self._sparkSession
        name = tableName if dbName is None else f"{dbName}.{tableName}"
        if not is_our_name(spark, name):
            return original(self, tableName, dbName)
        from pyspark.sql.catalog import Column

        from lakelog.core.engine.tables import shown_columns
        from lakelog.spark.table.delta_table import DeltaTable
        from lakelog.spark.types.spark_types import to_spark_schema

        snapshot = DeltaTable.forName(spark, name).log.update()
        clustered = shown_columns(snapshot)
        return [
            Column(
                name=each.name,
                description=each.metadata.get("comment"),
                dataType=each.dataType.simpleString(),
                nullable=each.nullable,
                isPartition=each.name in snapshot.partition_columns,
                isBucket=False,
                isCluster=each.name in clustered,
            )
            for each in to_spark_schema(snapshot.schema)
        ]

    return list_columns


def reader_methods(reader: type[DeltaReader | DeltaStreamReader]) -> dict[str, Wrap]:
    """Method of a reader of PySpark's -> what wraps it, so that ours reads tables of ours."""
    return {
        "load": _load_of(reader),
        "table": _table_of(reader),
        "changes": _refuse_changes,
        **noting(READER_NOTES),
    }


SESSION_NAMES: dict[str, Wrap] = {"table": _session_table}
"""Method -> what wraps PySpark's own; and so the others."""
READER: dict[str, Wrap] = reader_methods(DeltaReader)
WRITER: dict[str, Wrap] = {"insertInto": _insert_into, "saveAsTable": _save_as_table}
FRAME: dict[str, Wrap] = {
    "writeTo": _write_to,
    "mergeInto": _merge_into,
    "alias": _alias,
    "createTempView": _makes_view(shared=False),
    "createOrReplaceTempView": _makes_view(shared=False),
    "createGlobalTempView": _makes_view(shared=True),
    "createOrReplaceGlobalTempView": _makes_view(shared=True),
    "registerTempTable": _makes_view(shared=False),
}
WRITER_V2: dict[str, Wrap] = {
    **noting(_V2_NOTES),
    **{name: _verb(name, makes=True) for name in ("create", "replace", "createOrReplace")},
    **{name: _verb(name, makes=False) for name in ("append", "overwrite", "overwritePartitions")},
}
CATALOG: dict[str, Wrap] = {
    "truncateTable": _truncate,
    "cacheTable": _cache_method(cache_table),
    "uncacheTable": _cache_method(uncache_table),
    "isCached": _cache_method(is_table_cached),
    "clearCache": _clear_cache,
    "recoverPartitions": _refusing("recoverPartitions", "its log has its partitions"),
    "listColumns": _list_columns,
    "tableExists": _table_exists,
    "dropTable": _drop_table,
    "createTable": _create_table,
    "createExternalTable": _create_table,
    "currentCatalog": _current_part(0),
    "currentDatabase": _current_part(1),
    "setCurrentCatalog": _using("SET CATALOG"),
    "setCurrentDatabase": _using("USE NAMESPACE"),
    "listCatalogs": _list_catalogs,
    "listTables": _of_sparks_catalog("SHOW TABLES IN {}.{}"),
    "listDatabases": _of_sparks_catalog("SHOW SCHEMAS IN {}"),
    "databaseExists": _of_sparks_catalog("SHOW SCHEMAS IN {}"),
    "getTable": _of_sparks_catalog("DESCRIBE DETAIL {}.{}.t"),
    **dict.fromkeys(
        (
            *("dropTempView", "dropGlobalTempView", "dropView", "createDatabase"),
            *("dropDatabase", "refreshTable"),
        ),
        _forgetting,
    ),
}
