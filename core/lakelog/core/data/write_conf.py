"""Session settings that apply to every write, through whichever API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core import keys
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Mapping

CODEC_KEY = "spark.sql.parquet.compression.codec"
OVERWRITE_KEY = "spark.sql.sources.partitionOverwriteMode"
DEFAULT_CODEC = "zstd"
"""As small as gzip at nearly the speed of snappy, and known to every reader of Delta tables."""
_CODECS = ("snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw", "uncompressed", "none")
_SAME = {"uncompressed": "none", "lz4_raw": "lz4"}
_OVERWRITES = {"dynamic": True, "static": False}


def file_settings(conf: Mapping[str, str] | None) -> dict[str, Any]:
    """The fields of `WritePlan` that a session decides: the codec, and what else its conf sets.

    Raises:
        DeltaAnalysisError: a value that is not valid; names the key.
    """
    given = DeltaConf.from_mapping(conf)
    codec = given.read(keys.CODEC)
    found: dict[str, Any] = {
        "compression": DEFAULT_CODEC if codec is None else parquet_codec(codec, CODEC_KEY)
    }
    if given.read(keys.MAX_ROWS) is not None:
        found["max_rows_per_file"] = rows_per_file(given)
    return found


def rows_per_file(conf: DeltaConf) -> int:
    """The rows that a data file may have; 0 means no limit.

    Raises:
        DeltaAnalysisError: not a whole number.
    """
    return max(0, conf.read(keys.MAX_ROWS) or 0)


def parquet_codec(text: str, key: str) -> str:
    """A codec of Parquet by Spark's name for it.

    Args:
        text: the name, in any case.
        key: the conf or the option that named it, for the error.

    Raises:
        DeltaAnalysisError: an unknown name.
    """
    codec = text.strip().lower()
    if codec not in _CODECS:
        raise DeltaAnalysisError(
            f"unknown compression {text!r} ({key}): use one of {', '.join(_CODECS)}",
            option=key,
            value=text,
        )
    return _SAME.get(codec, codec)


def overwrites_dynamically(conf: DeltaConf) -> bool:
    """Whether an overwrite without its own setting replaces only the partitions it has rows for.

    Raises:
        DeltaAnalysisError: the mode is neither `static` nor `dynamic`.
    """
    text = conf.read(keys.OVERWRITE_MODE)
    found = _OVERWRITES.get(text.strip().lower())
    if found is None:
        raise DeltaAnalysisError(
            f"the conf {OVERWRITE_KEY} must be static or dynamic, not {text!r}",
            key=OVERWRITE_KEY,
            value=text,
        )
    return found and conf.read(keys.DYNAMIC)
