"""What a commit did, in the few words and numbers that people ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.shown.texts import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAYS_NOTHING: Final = (None, False, "", "[]", "{}", "null", "false")
_COUNTS: Final = (
    ("written", "row", ("numOutputRows", "numAddedRows")),
    ("inserted", "row", ("numTargetRowsInserted",)),
    ("updated", "row", ("numUpdatedRows", "numTargetRowsUpdated")),
    ("deleted", "row", ("numDeletedRows", "numTargetRowsDeleted")),
    ("copied", "row", ("numCopiedRows", "numTargetRowsCopied")),
    ("added", "file", ("numFiles", "numAddedFiles", "numTargetFilesAdded", "numConvertedFiles")),
    ("removed", "file", ("numRemovedFiles", "numTargetFilesRemoved", "numDeletedFiles")),
    ("added", "byte", ("numOutputBytes", "numAddedBytes", "numTargetBytesAdded")),
    ("removed", "byte", ("numRemovedBytes", "numTargetBytesRemoved")),
)
"""What is shown of an operation's metrics, by the names that Delta's operations give them."""
_MOST: Final = 2**63 - 1
_DIGITS: Final = len(str(-_MOST))


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """The parameters worth showing: neither empty nor false."""
    return ", ".join(
        f"{name}={value}" for name, value in parameters.items() if value not in _SAYS_NOTHING
    )


def effect_text(metrics: Mapping[str, Any]) -> str:
    """Rows, files and bytes: `10 rows written, 1 file added, 2.0 KiB added`."""
    return ", ".join(
        f"{bytes_text(number) if unit == 'byte' else count_text(number, unit)} {verb}"
        for (verb, unit), number in _counts(metrics).items()
    )


def rows_changed(metrics: Mapping[str, Any]) -> tuple[int, int]:
    """How many rows a commit wrote, inserted or updated, and how many it deleted."""
    found = _counts(metrics)
    written = sum(found.get((verb, "row"), 0) for verb in ("written", "inserted", "updated"))
    return written, found.get(("deleted", "row"), 0)


def _counts(metrics: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Verb and unit -> how many, where it is not 0 and can be a number of things."""
    known = {_camel(name): value for name, value in metrics.items()}
    if "numTargetRowsInserted" in known:
        # A MERGE counts its inserts and updates, and then the total of both.
        known.pop("numOutputRows", None)
    counts = {}
    for verb, unit, names in _COUNTS:
        count = next((found for found in map(known.get, names) if found is not None), None)
        number = metric_value(count)
        if isinstance(number, int) and 0 < number <= _MOST:
            counts[verb, unit] = number
    return counts


def _camel(name: str) -> str:
    """delta-rs writes `num_added_files` for `numAddedFiles`."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def metric_value(value: Any) -> Any:
    """A metric as a number, where it is one: in the log they are texts."""
    # The log may hold any text: a longer one is no number that an engine counted.
    if isinstance(value, str) and len(value) <= _DIGITS and value.removeprefix("-").isdecimal():
        return int(value)
    return value
