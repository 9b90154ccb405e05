"""Replies of Google Cloud Storage, trusted only if they are Google's and complete."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from lakelog.logstores.errors import MissingExtraError
from lakelog.logstores.gcs.errors import ForeignReplyError


def successful(reply: Any, *, in_part: bool = False) -> Any:
    """The reply, if its status says success.

    Args:
        reply: to a request.
        in_part: whether the request was for a part of an object.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: it does not.
    """
    from google.api_core.exceptions import from_http_response

    if reply.status_code not in ((200, 204, 206) if in_part else (200, 204)):
        raise from_http_response(reply)
    return reply


def json_of(reply: Any, kind: str) -> dict[str, Any]:
    """The resource of that kind in a successful reply.

    Raises:
        ForeignReplyError: there is none in it: a proxy's page, or a reply cut short.
        google.api_core.exceptions.GoogleAPICallError: the reply is a failure.
    """
    try:
        found = successful(reply).json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise ForeignReplyError(f"a successful reply has no {kind}")
    return found


def checked_body(reply: Any) -> bytes:
    """The bytes of an object, compared with the checksum in the headers.

    Raises:
        ForeignReplyError: the headers are not Google's, or the bytes are not those of the object.
    """
    data: bytes = reply.content
    if "x-goog-generation" not in reply.headers:
        raise ForeignReplyError("a successful reply has none of Google's headers")
    # Of what Google unpacked on its way out, the checksum is that of the packed bytes.
    if reply.headers.get("x-goog-stored-content-encoding", "identity") == "identity":
        hashes = [each.strip() for each in reply.headers.get("x-goog-hash", "").split(",")]
        sums = [each.removeprefix("crc32c=") for each in hashes if each.startswith("crc32c=")]
        if sums and sums != [crc32c(data)]:
            raise ForeignReplyError("the bytes do not match the checksum that came with them")
    return data


def ranged_body(reply: Any, length: int) -> tuple[str, bytes]:
    """The generation of an object, and the part of it that was asked for.

    Raises:
        ForeignReplyError: the headers are not Google's, or the part is not whole.
    """
    generation = reply.headers.get("x-goog-generation")
    data: bytes = reply.content
    if generation is None or reply.status_code != 206:
        raise ForeignReplyError("a successful reply is not part of an object of Google's")
    if len(data) != length:
        raise ForeignReplyError(f"a reply has {len(data)} of the {length} bytes asked for")
    return generation, data


def crc32c(body: bytes) -> str:
    """The checksum as Google writes it: Base64 of four bytes, the highest first.

    Raises:
        MissingExtraError: the extra `gcs` is not installed.
    """
    try:
        import google_crc32c
    except ImportError as error:
        raise MissingExtraError("gcs", "Google Cloud Storage") from error

    return base64.b64encode(google_crc32c.Checksum(body).digest()).decode()


def millis(time: str | None) -> int | None:
    """Milliseconds since 1970-01-01 UTC of a time such as `2026-01-31T12:00:00.123Z`."""
    return None if time is None else int(datetime.fromisoformat(time).timestamp() * 1000)
