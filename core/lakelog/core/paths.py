"""The names of a table: its URI, the files of its log, and the paths of its data files.

A *table URI* and everything made from it is spelled as `lakelog.logstores` wants it: a full URI
that is not percent-encoded, or a plain absolute path for local tables. The `path` of an action
is another thing: a URI that *is* percent-encoded, relative to the table or absolute
(PROTOCOL.md, "Add File and Remove File"). Only the functions of this module cross over.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

from lakelog.core.errors import CorruptLogError
from lakelog.logstores.locations import check_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENGINE_FOLDER = "engine.folder"
"""The entry of a conf that an engine's session makes, an `EngineFolder`."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")

_MANY_SLASHES = re.compile(r"/{2,}")

_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^/]*")

_DOTTED = re.compile(r"//|(?:^|/)\.{1,2}(?:/|$)")

# The ASCII that `java.net.URI` leaves bare in a path, so that Spark and we spell a file alike.
_BARE = "/!$&'()*+,;=:@~-._"

_ENCODED = frozenset(("Cc", "Zs", "Zl", "Zp"))

_OTHER = re.compile(r"[^A-Za-z0-9/!$&'()*+,;=:@~._-]")


class EngineFolder(str):
    """The folder from where an engine's relative paths start; asked for at the first of them.

    As a text, and once it was pickled, it is empty: what is sent elsewhere has whole paths.
    """

    __slots__ = ("path",)

    path: Callable[[], str]

    def __new__(cls, path: Callable[[], str]) -> Self:
        """Ask nothing yet.

        Args:
            path: gives the folder, without a trailing slash.
        """
        made = super().__new__(cls, "")
        made.path = path
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, ("",)


def normalize_table_uri(uri: str | os.PathLike[str], conf: Mapping[str, str] | None = None) -> str:
    """Give the one spelling of a table's URI.

    A relative path becomes absolute; `file:/x` and `file:///x` become `/x`; repeated and
    trailing slashes of the path go. Other schemes, their authority and case are kept.

    Args:
        uri: where a table is.
        conf: may say from where an engine's relative paths start (`ENGINE_FOLDER`); else they
            start from this process's working directory.

    Raises:
        LogStoreConfError: the URI holds credentials, or names no bucket; also a `ValueError`.
        TypeError: it is neither text nor a path that gives text.
        ValueError: the URI is empty, holds U+0000, or is a `file:` URI that names a host.
    """
    text: object = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if not isinstance(text, str):
        raise TypeError(
            "a table's path must be a str or an os.PathLike of str, but it is "
            f"{type(text).__name__}"
        )
    if not text:
        raise ValueError("a table's path can't be empty")
    if "\0" in text:
        raise ValueError(f"a table's path can't hold the character U+0000: {text!r}")
    check_uri(text)
    scheme = _SCHEME.match(text)
    if scheme is None:
        text = os.path.expanduser(text)  # noqa: PTH111  # a Path would drop a trailing slash
        engine = (conf or {}).get(ENGINE_FOLDER)
        if isinstance(engine, EngineFolder) and not os.path.isabs(text):  # noqa: PTH117
            text = f"{engine.path()}/{text}"
        return _tidy(os.path.abspath(text))  # noqa: PTH100  # no symlinks
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


def is_local(path: str) -> bool:
    """Whether a path is one of the local file system."""
    scheme = _SCHEME.match(path)
    return scheme is None or scheme[1].lower() == "file"


def is_near(table: str) -> bool:
    """Whether a table lies on a file system, where one more small file costs next to nothing."""
    scheme = _SCHEME.match(table)
    return scheme is None or scheme[1].lower() in ("hdfs", "viewfs", "webhdfs", "swebhdfs")


def data_path(table: str, add_path: str) -> str:
    """Where the storage keeps the file of an action: decoded exactly once, and absolute.

    An absolute path may lie anywhere, as those of shallow clones do; a relative one is the table's
    own.

    Args:
        table: a URI as `normalize_table_uri` gives it.
        add_path: the action's `path`.

    Raises:
        CorruptLogError: a relative path that leaves the table, or none that a file can have.
    """
    if ".." in add_path or "%" in add_path:
        refuse_escape(table, add_path)
    path = path_key(table, add_path)
    if not add_path or "\0" in path:
        raise CorruptLogError(
            f"the log of {table} names a file {add_path!r}, which no storage can have",
            table=table,
            path=add_path,
        )
    return path


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
            "outside the table was touched. The writer of this log made a mistake, or is "
            "malicious.",
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


def encode_path(path: str, *, bare: bool = False) -> str:
    """Spell a path of the file system, relative to the table, as the `path` of an action.

    The inverse of the decoding in `data_path`. Spark would leave letters beyond ASCII as they
    are; here they are encoded too, because deltalake compares the paths of its removes, which it
    encodes, with those of the adds as text.

    Args:
        path: not encoded.
        bare: leave letters beyond ASCII as Spark does, that is, as `java.net.URI` does.
    """
    if bare and not path.isascii():
        text = _OTHER.sub(_as_java, path)
    else:
        text = quote(path, safe=_BARE, errors="strict")
    first, slash, rest = text.partition("/")
    # A reader would take `a:b/part` for a URI of scheme `a`.
    return first.replace(":", "%3A") + slash + rest


def _as_java(found: re.Match[str]) -> str:
    """A character as Java's URIs have it: beyond ASCII, only spaces and controls are encoded."""
    character = found[0]
    kept = character > "\x7f" and unicodedata.category(character) not in _ENCODED
    return character if kept else quote(character, safe="", errors="strict")
