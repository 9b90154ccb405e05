"""The names of the files of a log: which kinds there are, and what a name says about a file."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from urllib.parse import unquote

# `isdigit` and `\d` accept digits of every script; a version is ASCII, and of 20 digits: a file
# `20240131120000.json` is an unrelated export.
_DIGITS = 20

_LAST = (1 << 63) - 1  # a version is a long

LOG_FOLDER = "_delta_log"

LAST_CHECKPOINT = "_last_checkpoint"

LAST_VACUUM = "_last_vacuum_info"

SIDECAR_FOLDER = "_sidecars"

STAGED_FOLDER = "_staged_commits"
"""Commits for a catalog to decide on."""


def log_path(table: str, name: str = "") -> str:
    """The path of a file of the table's log; of the log's folder without a name."""
    base = f"{table.rstrip('/')}/{LOG_FOLDER}"
    return f"{base}/{name}" if name else base


def commit_name(version: int) -> str:
    """`00000000000000000007.json`: the file that is version 7."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """`00000000000000000010.checkpoint.parquet`: the classic checkpoint in one file."""
    return f"{version:020d}.checkpoint.parquet"


def part_name(version: int, part: int, parts: int) -> str:
    """`N.checkpoint.M.K.parquet`: part M, counted from 1, of a classic checkpoint in K parts."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def commit_path(table: str, version: int) -> str:
    """Where the commit of a version lies."""
    return log_path(table, commit_name(version))


def checksum_path(table: str, version: int) -> str:
    """Where the version checksum of a version lies."""
    return log_path(table, f"{version:020d}.crc")


def sidecar_path(table: str, name: str) -> str:
    """Where a sidecar lies, by the `path` of its action: percent-encoded, mostly a bare name.

    Whatever the path says, it is a file of the log's own folder of sidecars.
    """
    return log_path(table, f"{SIDECAR_FOLDER}/{unquote(name).rpartition('/')[2]}")


class LogFileKind(enum.Enum):
    """What a file of the log is, by its name."""

    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    """Classic, in one file."""
    MULTIPART = "multipart"
    """One part of a classic checkpoint."""
    V2 = "v2"
    """Top level of a V2 checkpoint."""
    COMPACTED = "compacted"
    CRC = "crc"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """A parsed name."""

    kind: LogFileKind
    version: int
    """The last version that the file covers."""
    part: int = 1
    """1-based; only of `MULTIPART`."""
    parts: int = 1
    first: int | None = None
    """The first version that the file covers; only of `COMPACTED`."""


_LOG_NAME = re.compile(
    r"(?P<version>[0-9]{20})(?:"
    r"(?P<commit>\.json)"
    r"|(?P<crc>\.crc)"
    r"|\.(?P<end>[0-9]{20})\.compacted\.json"
    r"|(?P<checkpoint>\.checkpoint\.parquet)"
    r"|\.checkpoint\.(?P<part>[0-9]+)\.(?P<parts>[0-9]+)\.parquet"
    r"|(?P<v2>\.checkpoint\.[^.]+\.(?:json|parquet))"
    r")"
)


def parse_log_name(name: str) -> LogFileName | None:
    """Read a file name of the log; `None` for every name that the protocol does not have."""
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if version > _LAST or int(match["end"] or 0) > _LAST:
        return None
    if match["commit"]:
        return LogFileName(LogFileKind.COMMIT, version)
    if match["checkpoint"]:
        return LogFileName(LogFileKind.CHECKPOINT, version)
    if match["crc"]:
        return LogFileName(LogFileKind.CRC, version)
    if match["v2"]:
        return LogFileName(LogFileKind.V2, version)
    if match["end"]:
        end = int(match["end"])
        return LogFileName(LogFileKind.COMPACTED, end, first=version) if version < end else None
    part, parts = int(match["part"]), int(match["parts"])
    if not 1 <= part <= parts:
        return None
    return LogFileName(LogFileKind.MULTIPART, version, part, parts)


def is_nearly_log_name(name: str) -> bool:
    """Whether a name is one of the protocol except for the digits or the size of its version."""
    digits = len(name) - len(name.lstrip("0123456789"))
    if not digits or parse_log_name(name) is not None:
        return False
    return parse_log_name("0" * _DIGITS + name[digits:]) is not None
