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

# Texts, which `re` compiles and keeps where they are first used: most paths need none of them.
_SCHEME: Final = r"[a-z][a-z0-9+.\-]*"
_PASSWORDS: Final = (
    # A key may hold slashes, so it ends at the last `@`; `host:port/…@…` is a path.
    rf"(?i)({_SCHEME}:/+)[^/@:\s\"']*:(?!\d+/)[^\s\"']*@",
    # With nothing after a colon it is a key, or a token, where nothing else goes before an `@`.
    r"(?i)((?:https?|s3[an]?|gs|oss):/+)[^\s/\"']*@",
    # A bucket has no port.
    r"(?i)((?:s3[an]?|gs|oss):/+)[^/@:\s\"']*:[^\s\"']*@",
)
_NAMES: Final = (
    r"(?:sig|signature|accountkey|sharedaccesssignature|x-amz-signature|x-amz-credential|"
    r"x-amz-security-token|x-goog-signature|x-goog-credential|awsaccesskeyid)(?:=|%3d)"
)
_SIGNATURES: Final = rf"(?i)((?:[?&;]|%3f|%26|\b){_NAMES})[^&;\s\"']+"
_FOLDERS: Final = rf"(?i)(?<=/){_NAMES}[^/?&;%]*(?=/|$)"
"""What only looks like one: the folder of a partition, such as `/signature=x`."""
_LOCAL: Final = r"(?i)file:/|/|(?!.*[a-z][a-z0-9+.\-]+:/)"
"""No user goes before the path of a local file."""
_WITH_AUTHORITY: Final = r"(?i)(s3|s3a|s3n|gs|abfs|abfss|wasb|wasbs|az|oss|cos|oci):(?!//[^/])"
"""Storages whose URIs name a bucket or container, followed by something else."""
_DRIVE: Final = r"(?s)([A-Za-z]):[\\/](.*)|\\\\.*"
"""A path of Windows, by its drive or by the host that shares it."""
_RELATIVE: Final = r"(?is)file:(?!/)(.*)"
_ADDRESS: Final = r"(?i)(endpoint|url)(?=[.\d\s]|$)"


def without_secrets(text: str) -> str:
    """Any text with stars for the passwords and signatures of the URIs and URLs in it."""
    if ":" not in text and "=" not in text:
        return text
    for pattern in _PASSWORDS:
        text = re.sub(pattern, rf"\1{STARS}@", text)
    return re.sub(_SIGNATURES, rf"\1{STARS}", text)


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
    if ":" not in uri and "=" not in uri and not uri.startswith("\\\\"):
        return
    named = re.sub(_FOLDERS, "", uri)
    if re.match(_LOCAL, uri) is None and without_secrets(named) != named:
        raise LogStoreConfError(
            f"{shown(uri)} is refused, because its original holds credentials, and URIs end up in "
            "logs. Set them in the conf, such as spark.hadoop.fs.s3a.access.key and .secret.key, "
            "and leave them out of the URI. Whoever could read it can use them: replace them"
        )
    match = re.match(_WITH_AUTHORITY, uri)
    if match is not None:
        path = uri[match.end() :].lstrip("/") or "bucket/table"
        raise LogStoreConfError(
            f"{uri!r} names no bucket: two slashes and the bucket follow the scheme, as in "
            f"{match[1].lower()}://{path}"
        )
    if os.name != "nt" and (match := re.fullmatch(_DRIVE, uri)):
        here = f"/mnt/{match[1].lower()}/{match[2]}" if match[1] else "/mnt/share"
        raise LogStoreConfError(
            f"{uri!r} is a path of Windows, and this system has none. Write the path at which the "
            "folder is mounted here, such as WSL's " + here.replace("\\", "/")
        )
    if match := re.match(_RELATIVE, uri):
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
        if "://" in value and re.search(_ADDRESS, key) and without_secrets(value) != value:
            raise LogStoreConfError(
                f"{key} holds credentials beside an address, and addresses end up in logs. Leave "
                "the address alone there, and set the credentials by their own keys"
            )
