"""A version of a table as a dataset of pyarrow, where that reads the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader, storage_root
from lakelog.core.errors import UnsupportedFeatureError
from lakelog.core.schema.column_paths import walk
from lakelog.core.schema.type_widening import TYPE_CHANGES
from lakelog.core.schema.types import is_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakelog.core.data.table_version import TableVersion
    from lakelog.core.expressions.tree import Expression


def arrow_dataset(snapshot: TableVersion, where: Expression | None = None) -> Any:
    """A `pyarrow.dataset.FileSystemDataset` of the files that may match, filtered.

    Raises:
        UnsupportedFeatureError: rows would be wrong or missing; says by which feature.
        InvalidPredicateError: pyarrow can't evaluate the condition.
        CorruptLogError: a partition value that can't be read.
    """
    import pyarrow.dataset
    import pyarrow.parquet

    dataset: Any = pyarrow.dataset
    files = snapshot.file_table_for(where)
    _refuse_features(snapshot, files)
    schema = to_arrow_schema(snapshot.read_schema)
    found = TableFileReader(snapshot, snapshot.read_schema).find(files)
    root = storage_root(snapshot.table)
    for each in found:
        if storage_root(each.path) != root:
            _refuse(snapshot, "shallow clones", f"{each.path} is in another storage")
    # INT96 is what Spark still writes by default.
    kind = dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragments = [
        kind.make_fragment(
            snapshot.store.filesystem_path(each.path),
            snapshot.store.filesystem,
            partition_expression=_guarantee(each.partition),
        )
        for each in found
    ]
    whole = dataset.FileSystemDataset(fragments, schema, kind, snapshot.store.filesystem)
    if where is None:
        return whole
    from lakelog.core.expressions.arrow.masks import to_arrow_filter

    return whole.filter(to_arrow_filter(where, snapshot.read_schema))


def _guarantee(partition: Mapping[str, Any]) -> Any:
    """What is true for every row of a file: the values of its partition columns."""
    found: Any = pc.scalar(True)
    for name, value in partition.items():
        column = pc.field(name)
        one = column == value if value.is_valid else column.is_null()
        found = found & one
    return found


def _refuse_features(snapshot: TableVersion, files: pa.Table) -> None:
    vectors = files["deletion_vector"]
    if vectors.null_count < len(vectors):
        count = len(vectors) - vectors.null_count
        _refuse(snapshot, "deletionVectors", f"{count} of its files have deleted rows")
    mode = snapshot.properties.column_mapping_mode
    if mode != "none":
        _refuse(snapshot, "columnMapping", f"its columns are found by {mode}")
    for path, field in walk(snapshot.read_schema):
        name = ".".join(path)
        if field.metadata.get(TYPE_CHANGES):
            _refuse(snapshot, "typeWidening", f"files may have {name} in an earlier type")
        kind = field.data_type
        if str(kind) in ("variant", "void") or is_interval(kind):
            _refuse(snapshot, str(field.data_type), f"{name} is of that type")


def _refuse(snapshot: TableVersion, feature: str, why: str) -> Never:
    raise UnsupportedFeatureError(
        f"version {snapshot.version} of {snapshot.table} can't be read as a dataset of pyarrow, "
        f"which knows nothing of {feature}: {why}. Read it with snapshot.scan(columns, where): its "
        "to_reader() goes wherever an Arrow stream does.",
        table=snapshot.table,
        features=[feature],
        access="read",
    )
