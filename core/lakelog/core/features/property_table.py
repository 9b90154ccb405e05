"""Every table property that Delta knows: its name, its default, and the values it takes."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.core.features.byte_sizes import parse_byte_size
from lakelog.logstores.keys import meaning

if TYPE_CHECKING:
    from collections.abc import Callable

FEATURE_STATES: Final = ("supported", "enabled")
"""The two values of `delta.feature.<name>`; they mean the same."""


class Property(NamedTuple):
    """What is known of one property."""

    parse: Callable[[str], Any]
    """Text -> value; `ValueError` with the words that complete "must be …"."""
    default: str | None = None
    """Text of the default; `None`: not set."""


def _integer(least: int, most: int | None = None) -> Callable[[str], int]:
    return partial(meaning, "whole", least=least, most=most)


def _interval(text: str) -> int:
    try:
        value = parse_interval_ms(text)
    except ValueError as exc:
        raise ValueError(f"an interval of fixed length such as 'interval 7 days' ({exc})") from None
    if value < 0:
        raise ValueError("an interval that is not negative")
    return value


def _one_of(*words: str) -> Callable[[str], str]:
    by_lower = {word.lower(): word for word in words}

    def parse(text: str) -> str:
        word = by_lower.get(text.strip().lower())
        if word is None:
            raise ValueError("one of " + ", ".join(words))
        return word

    return parse


_boolean: Final = partial(meaning, "flag")

_NO: Final = Property(_boolean, "false")

_YES: Final = Property(_boolean, "true")

_FLAG: Final = Property(_boolean)

_TEXT: Final = Property(str)

KNOWN: Final[dict[str, Property]] = {
    "delta.appendOnly": _NO,
    "delta.autoOptimize": _FLAG,
    # Databricks knows more values than true and false here, as `auto` and `legacy`.
    "delta.autoOptimize.autoCompact": _TEXT,
    "delta.autoOptimize.optimizeWrite": _FLAG,
    "delta.castIcebergTimeType": _NO,
    "delta.checkpoint.writeStatsAsJson": _YES,
    "delta.checkpoint.writeStatsAsStruct": _YES,
    "delta.checkpointInterval": Property(_integer(1), "10"),
    "delta.checkpointPolicy": Property(_one_of("classic", "v2"), "classic"),
    "delta.checkpointRetentionDuration": Property(_interval, "interval 2 days"),
    "delta.columnMapping.maxColumnId": Property(_integer(0), "0"),
    "delta.columnMapping.mode": Property(_one_of("none", "name", "id"), "none"),
    "delta.compatibility.symlinkFormatManifest.enabled": _NO,
    "delta.coordinatedCommits.commitCoordinator-preview": _TEXT,
    "delta.coordinatedCommits.commitCoordinatorConf-preview": _TEXT,
    "delta.coordinatedCommits.tableConf-preview": _TEXT,
    "delta.dataSkippingNumIndexedCols": Property(_integer(-1), "32"),
    "delta.dataSkippingStatsColumns": _TEXT,
    "delta.dataSkippingStringPrefixLength": Property(_integer(0)),
    "delta.deletedFileRetentionDuration": Property(_interval, "interval 1 week"),
    "delta.dropFeatureTruncateHistory.retentionDuration": Property(_interval, "interval 24 hours"),
    "delta.enableChangeDataFeed": _NO,
    "delta.enableDeletionVectors": _NO,
    "delta.enableExpiredLogCleanup": _YES,
    "delta.enableFullRetentionRollback": _YES,
    "delta.enableIcebergCompatV1": _FLAG,
    "delta.enableIcebergCompatV2": _FLAG,
    "delta.enableIcebergCompatV3": _FLAG,
    "delta.enableInCommitTimestamps": _NO,
    "delta.enableMaterializePartitionColumnsFeature": _FLAG,
    "delta.enableRowTracking": _NO,
    "delta.enableTypeWidening": _NO,
    "delta.enableVariantShredding": _NO,
    "delta.ignoreIcebergBucketPartition": _NO,
    "delta.ignoreProtocolDefaults": _NO,
    "delta.inCommitTimestampEnablementTimestamp": Property(_integer(0)),
    "delta.inCommitTimestampEnablementVersion": Property(_integer(0)),
    "delta.isolationLevel": Property(
        _one_of("Serializable", "WriteSerializable", "SnapshotIsolation"), "Serializable"
    ),
    "delta.logRetentionDuration": Property(_interval, "interval 30 days"),
    "delta.minReaderVersion": Property(_integer(1, 3)),
    "delta.minWriterVersion": Property(_integer(1, 7)),
    "delta.parquet.compression.codec": Property(
        _one_of("snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw", "uncompressed", "none")
    ),
    "delta.parquet.format.version": Property(str, "1.0.0"),
    "delta.randomPrefixLength": Property(_integer(1), "2"),
    "delta.randomizeFilePrefixes": _NO,
    "delta.redirectReaderWriter-preview": _TEXT,
    "delta.redirectWriterOnly-preview": _TEXT,
    "delta.requireCheckpointProtectionBeforeVersion": Property(_integer(0), "0"),
    "delta.rowTracking.materializedRowCommitVersionColumnName": _TEXT,
    "delta.rowTracking.materializedRowIdColumnName": _TEXT,
    "delta.rowTrackingSuspended": _NO,
    "delta.sampleRetentionDuration": Property(_interval, "interval 7 days"),
    "delta.setTransactionRetentionDuration": Property(_interval),
    # Of Databricks and deltalake; delta-spark takes it where arbitrary properties are allowed.
    "delta.targetFileSize": Property(parse_byte_size),
    "delta.universalFormat.enabledFormats": Property(str, ""),
    "delta.universalFormat.iceberg.atomicConversion.supported": _NO,
    "delta.writePartitionColumnsToParquet": _FLAG,
}
"""Name -> what is known of it."""

OLD_NAMES: Final = {"delta.enableChangeDataFeed": "delta.enableChangeDataCapture"}
"""Name of today -> the one before; old tables may still hold it."""


@lru_cache(maxsize=1024)
def parse_value(name: str, text: str) -> Any:
    """The value that a property's text stands for: each snapshot asks, mostly for the same.

    Raises:
        ValueError: none; the message completes the sentence "must be …".
        KeyError: an unknown property.
    """
    return KNOWN[name].parse(text)


_MICROSECONDS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}

_NO_FIXED_LENGTH = {"year", "quarter", "month"}

_TERM = re.compile(r"([+-]?)\s*(\d+)(?:\.(\d{0,9}))?\s+([a-z]+)\s*")


def parse_interval_ms(text: str) -> int:
    """The span in milliseconds, rounded down.

    Args:
        text: terms of a whole number and a unit, in any order, with or without the word
            `interval`; seconds may have a fraction. Case does not matter.

    Raises:
        ValueError: not an interval, or one with months or years, whose length depends on the date.
    """
    rest = re.sub(r"^\s*interval(?=\s)", "", text.lower()).strip()
    if not rest:
        raise ValueError(f"not an interval: {text!r}; write it as 'interval 7 days'")
    micros = 0
    position = 0
    while position < len(rest):
        term = _TERM.match(rest, position)
        if term is None:
            raise ValueError(f"not an interval: {text!r}; write it as 'interval 7 days'")
        micros += _term(text, *term.groups())
        position = term.end()
    return micros // 1000


def _term(text: str, sign: str, whole: str, fraction: str | None, word: str) -> int:
    unit = word.removesuffix("s")
    if unit in _NO_FIXED_LENGTH:
        raise ValueError(
            f"the interval {text!r} has {unit}s, which differ in length; write it in days"
        )
    size = _MICROSECONDS.get(unit)
    if size is None:
        raise ValueError(
            f"the interval {text!r} has the unknown unit {word!r}; "
            f"use {', '.join(f'{name}s' for name in _MICROSECONDS)}"
        )
    micros = int(whole) * size
    if fraction is not None:
        if unit != "second":
            raise ValueError(f"the interval {text!r}: only seconds may have a fraction")
        micros += int(fraction.ljust(9, "0")) // 1000
    return -micros if sign == "-" else micros
