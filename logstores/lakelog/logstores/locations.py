"""Where a storage is, as users write it: checked before anything sees it, shown without secrets.

A URI ends up in logs, events, errors and the notes of other programs, and so does an endpoint. One
that carries a password or a signature is refused at once, by a message that does not show it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import LogStoreConfError

if TYPE_CHECKING:
    from collections.abc import Mapping

STARS: Final = "******"

_SCHEME: Final = r"[a-z][a-z0-9+.\-]*"
_PASSWORDS: Final = (
    # A key may hold slashes, so it ends at the last `@`; `host:port/…@…` is a path.
    re.compile(rf"({_SCHEME}:/+)[^/@:\s\"']*:(?!\d+/)[^\s\"']*@", re.IGNORECASE),
    # With nothing after a colon it is a key, or a token, where nothing else goes before an `@`.
    re.compile(r"((?:https?|s3[an]?|gs|oss):/+)[^\s/\"']*@", re.IGNORECASE),
    # A bucket has no port.
    re.compile(r"((?:s3[an]?|gs|oss):/+)[^/@:\s\"']*:[^\s\"']*@", re.IGNORECASE),
)
_NAMES: Final = (
    r"(?:sig|signature|accountkey|sharedaccesssignature|x-amz-signature|x-amz-credential|"
    r"x-amz-security-token|x-goog-signature|x-goog-credential|awsaccesskeyid)(?:=|%3d)"
)
_SIGNATURES: Final = re.compile(rf"((?:[?&;]|%3f|%26|\b){_NAMES})[^&;\s\"']+", re.IGNORECASE)
_FOLDERS: Final = re.compile(rf"(?<=/){_NAMES}[^/?&;%]*(?=/|$)", re.IGNORECASE)
"""What only looks like one: the folder of a partition, such as `/signature=x`."""
_LOCAL: Final = re.compile(r"file:/|/|(?!.*[a-z][a-z0-9+.\-]+:/)", re.IGNORECASE)
"""No user goes before the path of a local file."""
_WITH_AUTHORITY: Final = re.compile(
    r"(s3|s3a|s3n|gs|abfs|abfss|wasb|wasbs|az|oss|cos|oci):(?!//[^/])", re.IGNORECASE
)
"""Storages whose URIs name a bucket or container, followed by something else."""
_DRIVE: Final = re.compile(r"([A-Za-z]):[\\/](.*)|\\\\.*", re.DOTALL)
"""A path of Windows, by its drive or by the host that shares it."""
_RELATIVE: Final = re.compile(r"file:(?!/)(.*)", re.IGNORECASE | re.DOTALL)
_ADDRESS: Final = re.compile(r"(endpoint|url)(?=[.\d\s]|$)", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Any text with stars for the passwords and signatures of the URIs and URLs in it."""
    if ":" not in text and "=" not in text:
        return text
    for pattern in _PASSWORDS:
        text = pattern.sub(rf"\1{STARS}@", text)
    return _SIGNATURES.sub(rf"\1{STARS}", text)


def shown(uri: str) -> str:
    """A URI in quotes, for a message, without its secrets."""
    return repr(without_secrets(uri))


def check_uri(uri: str) -> None:
    """Refuse a URI that must not, or can't, be used; nothing else has seen it before.

    Raises:
        LogStoreConfError: it carries credentials, which are not shown; its scheme is one of an
            object store, and no bucket follows; it is a path of another system; or it is `file:`
            with a relative path.
    """
    named = _FOLDERS.sub("", uri)
    if _LOCAL.match(uri) is None and without_secrets(named) != named:
        raise LogStoreConfError(
            f"{shown(uri)} is refused, because its original holds credentials, and URIs end up in "
            "logs. Set them in the conf, such as spark.hadoop.fs.s3a.access.key and .secret.key, "
            "and leave them out of the URI. Whoever could read it can use them: replace them"
        )
    match = _WITH_AUTHORITY.match(uri)
    if match is not None:
        path = uri[match.end() :].lstrip("/") or "bucket/table"
        raise LogStoreConfError(
            f"{uri!r} names no bucket: two slashes and the bucket follow the scheme, as in "
            f"{match[1].lower()}://{path}"
        )
    if os.name != "nt" and (match := _DRIVE.fullmatch(uri)):
        here = f"/mnt/{match[1].lower()}/{match[2]}" if match[1] else "/mnt/share"
        raise LogStoreConfError(
            f"{uri!r} is a path of Windows, and this system has none. Write the path at which the "
            "folder is mounted here, such as WSL's " + here.replace("\\", "/")
        )
    if match := _RELATIVE.match(uri):
        raise LogStoreConfError(
            f"{uri!r} is neither a URI nor a path: write file:///path, or {match[1] or '.'} alone"
        )


def check_endpoints(conf: Mapping[str, str]) -> None:
    """Refuse an address that carries credentials.

    Raises:
        LogStoreConfError: names the key, and shows nothing of its value.
    """
    for key, value in conf.items():
        # Connection strings, which are meant to hold keys, have other names.
        if "://" in value and _ADDRESS.search(key) and without_secrets(value) != value:
            raise LogStoreConfError(
                f"{key} holds credentials beside an address, and addresses end up in logs. Leave "
                "the address alone there, and set the credentials by their own keys"
            )
