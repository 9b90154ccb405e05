"""Paths of files in three forms: the storage's, Hadoop's, and that of `_metadata.file_path`."""

from __future__ import annotations

import re
from urllib.parse import quote

# What `java.net.URI` leaves bare in a path: these, and letters beyond ASCII.
_BARE = "/!$&'()*+,;=:@~-._"

_LAST_CONTROL = 0xA0

_GLOB = re.compile(r"[\\\[\]{}*?]")

_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:(?://[^/]*)?)(.*)", re.DOTALL)


def hadoop_path(path: str) -> str:
    """A storage path for Hadoop: not percent-encoded, always with a scheme.

    A plain `/x` would be looked up in whatever `fs.defaultFS` names.
    """
    return f"file:{path}" if path.startswith("/") else path


def scheme_of(path: str) -> str:
    """The scheme of a storage path, in lower case; `file` for a plain path."""
    return hadoop_path(path).partition(":")[0].lower()


def glob_escaped(path: str) -> str:
    """A Hadoop path with its glob characters escaped, so that Spark finds just that file."""
    return _GLOB.sub(r"\\\g<0>", path)


def file_path_uri(path: str) -> str:
    """A storage path as Spark's column `_metadata.file_path` has it.

    That is `java.net.URI`: percent-encoded but for non-ASCII letters, `file:` with one slash.
    """
    match = _AUTHORITY.fullmatch(hadoop_path(path))
    if match is None:  # every storage path is absolute or has a scheme
        raise ValueError(f"{path!r} is not an absolute path")
    return match[1] + _java_encoded(match[2])


def _java_encoded(path: str) -> str:
    return "".join(
        c if ord(c) > _LAST_CONTROL and not c.isspace() else quote(c, safe=_BARE) for c in path
    )


def quoted(name: str) -> str:
    """A column name quoted for SQL, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string as an SQL literal that reads the same under every parser setting.

    `spark.sql.parser.escapedStringLiterals` decides what a backslash means, so strings with one, or
    with a quote, are written as hexadecimal digits. They are cast, not decoded: a list of VALUES
    takes no function that Spark replaces by another.
    """
    if text.isprintable() and not set(text) & {"'", '"', "\\"}:
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
