"""The names of a table: its URI, the files of its log, and the paths of its data files.

A *table URI* and everything made from it is spelled as `lakelog.logstores` wants it: a full URI
that is not percent-encoded, or a plain absolute path for local tables. The `path` of an action
is another thing: a URI that *is* percent-encoded, relative to the table or absolute
(PROTOCOL.md, "Add File and Remove File"). Only the functions of this module cross over.
"""

from __future__ import annotations

import enum
import os
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from lakelog.core.errors import CorruptLogError

__all__ = [
    "LAST_CHECKPOINT",
    "LOG_FOLDER",
    "SIDECAR_FOLDER",
    "LogFileKind",
    "LogFileName",
    "canonical_path",
    "checkpoint_name",
    "checkpoint_path",
    "checksum_path",
    "commit_name",
    "commit_path",
    "data_path",
    "encode_path",
    "is_local",
    "is_near",
    "is_nearly_log_name",
    "log_path",
    "normalize_table_uri",
    "parse_log_name",
    "part_name",
    "path_key",
    "refuse_escape",
    "sidecar_path",
]

LOG_FOLDER = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"
SIDECAR_FOLDER = "_sidecars"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
_MANY_SLASHES = re.compile(r"/{2,}")
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^/]*")
_DOTTED = re.compile(r"//|(?:^|/)\.{1,2}(?:/|$)")

# The ASCII that `java.net.URI` leaves bare in a path, so that Spark and we spell a file alike.
_BARE = "/!$&'()*+,;=:@~-._"


def normalize_table_uri(uri: str | os.PathLike[str]) -> str:
    """Give the one spelling of a table's URI.

    A relative path becomes absolute; `file:/x` and `file:///x` become `/x`; repeated and
    trailing slashes of the path go. Other schemes, their authority and case are kept.

    Raises:
        ValueError: the URI is empty, or a `file:` URI names a host.
    """
    text = os.fspath(uri)
    if not text:
        raise ValueError("a table's path can't be empty")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _tidy(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100,PTH111 # no symlinks
    rest = text[scheme.end() :]
    if scheme[1].lower() == "file":
        return _local(text, rest)
    authority, path = "", rest
    if rest.startswith("//"):
        name, slash, tail = rest[2:].partition("/")
        authority, path = f"//{name}", slash + tail
    return f"{scheme[1]}:{authority}{_tidy(path) if path.strip('/') else ''}"


def _local(text: str, rest: str) -> str:
    if rest.startswith("//") and not rest.startswith("///"):
        host, _, rest = rest[2:].partition("/")
        if host != "localhost":
            raise ValueError(f"{text!r} names the host {host!r}; write file:///path or /path")
    return _tidy("/" + rest)


def _tidy(path: str) -> str:
    return _MANY_SLASHES.sub("/", path).rstrip("/") or "/"


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


def checkpoint_path(table: str, version: int) -> str:
    """Where the classic checkpoint of a version lies."""
    return log_path(table, checkpoint_name(version))


def checksum_path(table: str, version: int) -> str:
    """Where the version checksum of a version lies."""
    return log_path(table, f"{version:020d}.crc")


def is_local(path: str) -> bool:
    """Whether a path is one of the local file system."""
    scheme = _SCHEME.match(path)
    return scheme is None or scheme[1].lower() == "file"


def is_near(table: str) -> bool:
    """Whether a table lies on a file system, where one more small file costs next to nothing."""
    scheme = _SCHEME.match(table)
    return scheme is None or scheme[1].lower() in ("hdfs", "viewfs", "webhdfs", "swebhdfs")


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


# `isdigit` and `\d` accept digits of every script; a version is ASCII, and of 20 digits: a file
# `20240131120000.json` is somebody's export.
_DIGITS = 20
_LAST = (1 << 63) - 1  # a version is a long
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
    """Whether a name is one of the protocol but for its version: its digits, or its size."""
    digits = len(name) - len(name.lstrip("0123456789"))
    if not digits or parse_log_name(name) is not None:
        return False
    return parse_log_name("0" * _DIGITS + name[digits:]) is not None


def data_path(table: str, add_path: str) -> str:
    """Where the storage keeps the file of an action: decoded exactly once, and absolute.

    An absolute path may lie anywhere, as those of shallow clones do; a relative one is the table's
    own.

    Args:
        table: a URI as `normalize_table_uri` gives it.
        add_path: the action's `path`.

    Raises:
        CorruptLogError: a relative path that leaves the table.
    """
    if ".." in add_path or "%" in add_path:
        refuse_escape(table, add_path)
    return path_key(table, add_path)


def refuse_escape(table: str, add_path: str) -> None:
    """Refuse a relative path that leads out of the table.

    Raises:
        CorruptLogError: it does.
    """
    path = canonical_path(table, add_path)
    if path in (".", "..") or path.startswith("../"):
        raise CorruptLogError(
            f"the log of {table} names the file {add_path}, which is not in the table: a relative "
            "path must stay there, and only an absolute one may name a file elsewhere. No file "
            "outside was touched. Whoever wrote this log made a mistake, or means harm.",
            table=table,
            path=add_path,
        )


def path_key(table: str, add_path: str) -> str:
    """What all `path`s of one file have in common: where it is, or would be.

    Args:
        table: a URI as `normalize_table_uri` gives it.
        add_path: the action's `path`; it may leave the table.
    """
    path = canonical_path(table, add_path)
    if path.startswith("/") or _SCHEME.match(path):
        return path
    return f"{table.rstrip('/')}/{path}"


def canonical_path(table: str, add_path: str) -> str:
    """The spelling under which two `path`s of one file are equal.

    Decoded; relative stays relative; an absolute path without a scheme, or without an authority,
    gets that of the table; `file:/x` and `file:///x` become `/x`; `.`, `..` and empty segments
    are resolved, as Hadoop's `Path` does. Only a path that leaves the table begins with `../`.
    """
    path = unquote(add_path) if "%" in add_path else add_path
    scheme = None if add_path.startswith("/") else _SCHEME.match(add_path)
    if scheme is not None and scheme[1].lower() == "file":
        path = "/" + path[scheme.end() :].removeprefix("//localhost/").lstrip("/")
    elif scheme is not None or path.startswith("/"):
        path = _with_authority(table, path, scheme)
    if "/." in path or path.startswith(".") or "//" in path:
        root = _ROOT.match(path)
        rest = path[root.end() :] if root else path
        if _DOTTED.search(rest):
            # `normpath` keeps two leading slashes apart from one.
            rest = f"/{rest.lstrip('/')}" if rest.startswith("/") else rest
            path = (root[0] if root else "") + posixpath.normpath(rest)
    return path


def _with_authority(table: str, path: str, scheme: re.Match[str] | None) -> str:
    root = _ROOT.match(table)
    if root is None:
        return path
    if scheme is None:
        return root[0] + path
    rest = path[scheme.end() :]
    if rest.startswith("//") and not rest.startswith("///"):
        return path
    same = root[0].partition(":")[0] == scheme[1]
    return root[0] + "/" + rest.lstrip("/") if same else path


def encode_path(path: str) -> str:
    """Spell a path of the file system, relative to the table, as the `path` of an action.

    The inverse of the decoding in `data_path`. Spark would leave letters beyond ASCII as they
    are; here they are encoded too, because deltalake compares the paths of its removes, which it
    encodes, with those of the adds as text.
    """
    first, slash, rest = quote(path, safe=_BARE, errors="strict").partition("/")
    # A reader would take `a:b/part` for a URI of scheme `a`.
    return first.replace(":", "%3A") + slash + rest
