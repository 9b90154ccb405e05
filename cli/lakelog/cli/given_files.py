"""Rows from files of Parquet, CSV or JSON lines, for commands that write them to a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.cli.shared_options import Option
    from lakelog.core.schema import StructType

_FORMATS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


files_argument: Option = click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
"""The files, at least one, on this host. Passed on as `files`."""
format_option: Option = click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "csv", "json"]),
    help="What the files are: CSV has a header, JSON is lines. Default: by their names.",
)
"""What the files are, where their names don't say. Passed on as `form`."""


def rows_of(files: Sequence[Path], form: str | None, known: StructType | None) -> Any:
    """The rows of files, read while they are written; those of JSON lines are read before.

    Args:
        files: all of one form.
        form: `parquet`, `csv` or `json`; `None`: as the names end.
        known: the types of columns of CSV and JSON, where they are known: those of the table.

    Raises:
        click.UsageError: the names don't say what the files are, or say different things.
        DeltaAnalysisError: a file is not what it should be, or has a value of another type.
    """
    import pyarrow as pa

    from lakelog.core.errors import DeltaAnalysisError

    forms = {form or _FORMATS.get(each.suffix.lower(), "") for each in files}
    if len(forms) > 1 or "" in forms:
        raise click.UsageError("Give --format: the file names don't show the format.")
    (one,) = forms
    try:
        if one == "json":
            parts = [_json(each, known) for each in files]
            return pa.concat_tables(parts, promote_options="permissive")
        return _dataset(files, one, known)
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(f"{', '.join(map(str, files))} can't be read: {exc}") from exc


def _dataset(files: Sequence[Path], form: str, known: StructType | None) -> Any:
    """The rows of all files, with the columns of all."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    from lakelog.core.engine.values import to_arrow_schema

    kind: Any = pads.ParquetFileFormat()
    if form == "csv":
        from pyarrow.csv import ConvertOptions

        types = None if known is None else to_arrow_schema(known)
        kind = pads.CsvFileFormat(convert_options=ConvertOptions(column_types=types))
    parts = [pads.dataset(str(each.absolute()), format=kind) for each in files]
    schema = pa.unify_schemas([each.schema for each in parts], promote_options="permissive")
    return pads.UnionDataset(schema, [each.replace_schema(schema) for each in parts])


def _json(file: Path, known: StructType | None) -> Any:
    import pyarrow as pa
    from pyarrow.json import ParseOptions, read_json

    from lakelog.core.engine.values import to_arrow_field

    # A name that is only in some line is known when all are read.
    found = read_json(str(file))
    fields = [] if known is None else [each for each in known if each.name in found.column_names]
    types = [to_arrow_field(each) for each in fields]
    # Arrow's reader makes times of them.
    dates = [each for each in types if pa.types.is_date(each.type)]
    types = [each for each in types if each not in dates]
    if types:
        options = ParseOptions(explicit_schema=pa.schema(types))
        found = read_json(str(file), parse_options=options)
    for each in dates:
        at = found.column_names.index(each.name)
        found = found.set_column(at, each, found.column(at).cast(each.type))
    return found
