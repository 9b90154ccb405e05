"""Columns for which a dictionary does not pay, by what the table's newest file shows.

Spark's Parquet writer tries a dictionary for each column of each file. Where nearly all values
differ it gives up, after it has hashed and kept those it saw: up to a tenth of the write's CPU.
lakelog's own writer decides by a sample of the rows (`lakelog.core.portable.hive_writer`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.engine.tables import data_path

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from lakelog.core import DeltaLog

logger: logging.Logger = logging.getLogger("lakelog")

_ENOUGH_ROWS = 100_000
"""In fewer rows any column looks as if its values never came again."""
_ENOUGH_BYTES = 1 << 18
_RETRY_EVERY = 16
"""Versions after which all columns are tried again, since values change over time."""
_OF_DICTIONARIES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def columns_without_dictionary(log: DeltaLog, filesystem: FileSystem, root: str) -> list[str]:
    """The leaf columns, as dotted paths, whose dictionary failed in the newest large file.

    It reads one footer, and nothing of the log: where the files are not known yet, or the footer
    can't be read, it returns no columns.

    Args:
        log: the table's; it may not exist yet.
        filesystem: where its files lie.
        root: the table's folder, as the file system spells it.
    """
    if log.known_version is None:
        return []
    snapshot = log.snapshot
    if snapshot.version % _RETRY_EVERY == _RETRY_EVERY - 1 or not snapshot.state.files.is_at_hand:
        return []
    path = _newest(snapshot.file_table)
    if path is None:
        return []
    try:
        full = data_path(root, path)
        if not full.startswith(f"{root}/"):
            return []
        with filesystem.open_input_file(full) as source:
            return _failed(_footer(source))
    except (OSError, pa.ArrowException) as exc:
        # This is for speed alone; reading the file's rows will raise the error.
        logger.debug("No dictionaries were judged by %s of %s: %s", path, log.table, exc)
        return []


def _newest(files: pa.Table) -> str | None:
    sizes, times = files["size"].to_numpy(), files["modification_time"].to_numpy()
    large = (sizes >= _ENOUGH_BYTES).nonzero()[0]
    if not len(large):
        return None
    return str(files["path"][int(large[times[large].argmax()])].as_py())


def _footer(source: Any) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(source).metadata


def _failed(footer: Any) -> list[str]:
    if not footer.num_row_groups or footer.row_group(0).num_rows < _ENOUGH_ROWS:
        return []
    group = footer.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return [each.path_in_schema for each in columns if _gave_up(set(each.encodings))]


def _gave_up(encodings: set[str]) -> bool:
    """Whether there are values outside the dictionary, or there is none.

    In the format's older version, which Spark writes, the dictionary itself counts as
    PLAIN_DICTIONARY, so PLAIN is that of values (parquet-format, Encodings).
    """
    if not encodings & _OF_DICTIONARIES:
        return True
    return {"PLAIN", "PLAIN_DICTIONARY"} <= encodings
