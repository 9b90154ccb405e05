"""What a run of OPTIMIZE goes by: sizes of files, shares of deleted rows, commits, threads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.arguments import read_whole, refusal
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.byte_sizes import parse_byte_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.conf import DeltaConf
    from lakelog.logstores.keys import Key

TARGET_PROPERTY = "delta.targetFileSize"
"""The table property with the size that files should have."""

_GIB = 1 << 30


def byte_size(text: str, key: str) -> int:
    """A number of bytes as Spark and Delta write them: `134217728`, `128m`, `128MB`.

    Args:
        text: the size.
        key: the conf or the property that says so, for the error.

    Raises:
        DeltaAnalysisError: not a size, or not above 0.
    """
    try:
        return parse_byte_size(text)
    except ValueError as exc:
        raise DeltaAnalysisError(
            f"{key} must be {exc}, but it is {text!r}", key=key, value=text
        ) from None


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """The limits of one run."""

    target_size: int
    """Files are packed up to so many bytes."""
    min_size: int
    """Smaller files are candidates."""
    max_deleted_ratio: float
    """A file of which more rows are deleted is a candidate, whatever its size."""
    batch_size: int | None
    """Input bytes of one commit; `None` for a single commit."""
    min_cube_size: int
    """Rows that were ordered together are left alone from this size on."""
    cube_size: int
    """The most bytes that are ordered together."""
    threads: int
    """Bins that are rewritten at once."""

    @classmethod
    def chosen(
        cls,
        conf: DeltaConf,
        properties: Mapping[str, str],
        *,
        target_size: int | None = None,
        batch_size: int | None = None,
    ) -> OptimizeSettings:
        """What arguments, the session and the table say, in this order.

        Args:
            conf: the session's.
            properties: the table's.
            target_size: the caller's, in bytes.
            batch_size: the caller's, in bytes.

        Raises:
            DeltaAnalysisError: a value that is not a size, a share or a number of threads.
        """
        for name, given in (("target_size", target_size), ("batch_size", batch_size)):
            if given is not None and read_whole(given, name) <= 0:
                raise refusal(given, name, "a number of bytes above 0")
        target = target_size or _size(conf, keys.OPTIMIZE_MAX_SIZE)
        if target is None and TARGET_PROPERTY in properties:
            target = byte_size(properties[TARGET_PROPERTY], f"the table property {TARGET_PROPERTY}")
        target = target or _GIB
        ratio = conf.read(keys.OPTIMIZE_DELETED)
        threads = conf.read(keys.OPTIMIZE_THREADS)
        for key, value, fits in (
            (keys.OPTIMIZE_DELETED, ratio, 0 <= ratio <= 1),
            (keys.OPTIMIZE_THREADS, threads, threads > 0),
        ):
            if not fits:
                wanted = "between 0 and 1" if isinstance(value, float) else "above 0"
                raise DeltaAnalysisError(
                    f"the conf {key.name} must be {wanted}, but it is {value}", key=key.name
                )
        min_cube = byte_size(conf.read(keys.MIN_CUBE), f"the conf {keys.MIN_CUBE}")
        cube = byte_size(conf.read(keys.TARGET_CUBE), f"the conf {keys.TARGET_CUBE}")
        return cls(
            target_size=target,
            min_size=_size(conf, keys.OPTIMIZE_MIN_SIZE) or target,
            max_deleted_ratio=ratio,
            batch_size=batch_size or _size(conf, keys.OPTIMIZE_BATCH),
            min_cube_size=min_cube,
            cube_size=max(cube, min_cube),
            threads=min(threads, os.cpu_count() or 1),
        )


def _size(conf: DeltaConf, key: Key[str | None]) -> int | None:
    text = conf.read(key)
    return None if text is None else byte_size(text, f"the conf {key.name}")
