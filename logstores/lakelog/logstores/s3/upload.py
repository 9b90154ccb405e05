"""Objects of any size from a file: one PUT, or a multipart upload above a size."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from lakelog.logstores.object_store.store import RetryPolicy, TryAgainError
from lakelog.logstores.s3.errors import Place, check_reply, speaking_s3

if TYPE_CHECKING:
    from pathlib import Path

PART: Final = 64 * 1024 * 1024
"""Bytes; files up to this size go as one PUT."""
_MOST_PARTS: Final = 10_000
_ABORTING: Final = RetryPolicy(budget=2.0, reach=0.0)
_TRIES: Final = 4
"""A part is repeated this often: a whole large file is not, for one broken connection."""


def upload(
    sdk: Any, storing: dict[str, Any], opening: dict[str, Any], place: Place, source: Path
) -> None:
    """Make or replace an object, whole or not at all.

    Args:
        sdk: the boto3 client.
        storing: what a request that makes an object carries.
        opening: what a request that touches its bytes carries (an SSE-C key).
        place: bucket and key.
        source: a file that doesn't change meanwhile.

    Raises:
        TryAgainError: it may be started again; no part of this try is kept.
        OSError: it can't be done.
    """
    size = source.stat().st_size
    with source.open("rb") as file:
        if size <= PART:
            with speaking_s3("upload", place):
                reply = sdk.put_object(Key=place.key, Body=file.read(), **storing)
            check_reply(reply, "ETag", place)
        else:
            _in_parts(sdk, storing, opening, place, file, size)


def _in_parts(
    sdk: Any,
    storing: dict[str, Any],
    opening: dict[str, Any],
    place: Place,
    file: BinaryIO,
    size: int,
) -> None:
    with speaking_s3("upload", place):
        begun = sdk.create_multipart_upload(Key=place.key, **storing)
    check_reply(begun, "UploadId", place)
    this = {"Key": place.key, "UploadId": begun["UploadId"]}
    length = max(PART, -(-size // _MOST_PARTS))
    try:
        parts: list[dict[str, Any]] = []
        while block := file.read(length):
            number = len(parts) + 1
            tag = _upload_part(sdk, {**opening, **this, "PartNumber": number, "Body": block}, place)
            parts.append({"ETag": tag, "PartNumber": number})
        with speaking_s3("upload", place):
            done = sdk.complete_multipart_upload(
                **opening, **this, MultipartUpload={"Parts": parts}
            )
        check_reply(done, "ETag", place)
    except BaseException:
        request = {name: opening[name] for name in ("Bucket", "RequestPayer") if name in opening}
        _abort(sdk, request | this, place)
        raise


def _abort(sdk: Any, request: dict[str, Any], place: Place) -> None:
    """End an upload, tried again for two seconds: what failed it may spoil the first try.

    Parts of one that is never ended are stored, and paid for, until a rule of the bucket removes
    them.
    """
    patience = _ABORTING.start()
    with contextlib.suppress(Exception):
        while True:
            try:
                with speaking_s3("upload", place):
                    sdk.abort_multipart_upload(**request)
            except TryAgainError as error:
                if patience.pause_after(error):
                    continue
            return


def _upload_part(sdk: Any, request: dict[str, Any], place: Place) -> str:
    for tries in range(_TRIES):
        try:
            with speaking_s3("upload", place):
                reply = sdk.upload_part(**request)
            check_reply(reply, "ETag", place)
        except TryAgainError as error:
            if tries == _TRIES - 1:
                raise
            time.sleep(min(error.retry_after or 0.1 * 2**tries, 5.0))
        else:
            tag: str = reply["ETag"]
            return tag
    raise AssertionError("unreachable")
