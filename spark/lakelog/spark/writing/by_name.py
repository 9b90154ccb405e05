"""Writing to a table by its name: what `saveAsTable` does of `DataFrameWriter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import DeltaLog
from lakelog.core.engine.tables import one_call
from lakelog.core.errors import TableExistsError
from lakelog.spark.names.identifiers import parse
from lakelog.spark.names.placing import place_for
from lakelog.spark.session.given_options import without_path
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.writing.clustered import check_clustering
from lakelog.spark.writing.options import TableDefinition
from lakelog.spark.writing.save import save_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core.engine.write import SaveMode


@one_call()
def save_as_table(
    frame: DataFrame,
    name: str,
    mode: SaveMode,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
    cluster_by: Sequence[str] = (),
) -> int | None:
    """Write a DataFrame to a named table; see `DeltaWriter.saveAsTable`."""
    path, others = without_path(options)
    schema = to_delta_schema(frame.schema)
    with place_for(frame.sparkSession, parse(name), schema, "create_or_replace", path) as place:
        if place.exists and mode == "ignore":
            return None
        if place.exists and mode == "error":
            raise TableExistsError(
                f"[DELTA_TABLE_ALREADY_EXISTS] Table {name} already exists at {place.location}. "
                "Choose another name, or say what to do with the table: mode('append') adds to "
                "it, mode('overwrite') replaces its rows, mode('ignore') leaves it alone.",
                table=name,
            )
        definition = None
        if place.exists:
            if cluster_by:
                conf = with_storage(session_conf(frame.sparkSession), others)
                check_clustering(DeltaLog.for_table(place.location, conf), cluster_by)
        else:
            definition = TableDefinition(
                operation="CREATE TABLE AS SELECT",
                properties={k: v for k, v in others.items() if k.lower().startswith("delta.")},
                cluster_by=cluster_by,
                managed=place.managed,
            )
        return save_frame(
            frame,
            place.location,
            mode,
            partition_by,
            others,
            definition,
            casts=mode == "append",
        )
