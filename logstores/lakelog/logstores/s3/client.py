"""One bucket of an S3 service, one request at a time, on boto3."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from lakelog.logstores.limits import check_declared_length
from lakelog.logstores.object_store.store import TOKEN_NAME, ObjectClient, ObjectEntry, Owner
from lakelog.logstores.s3.conf import S3Settings, is_aws
from lakelog.logstores.s3.errors import Place, check_reply, speaking_s3
from lakelog.logstores.s3.sdk import sdk_client, wire_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lakelog.logstores.object_store.store import PreparedRequest

_DIRECTORY_BUCKET: Final = "--x-s3"


class S3Client(ObjectClient):
    """A bucket. Holds settings only, so it may be pickled, forked and shared by threads."""

    page_size: ClassVar[int | None] = None
    """Entries of a page of a listing where nobody asks for fewer; `None` leaves it to S3."""

    def __init__(self, settings: S3Settings, bucket: str) -> None:
        """Connect to nothing yet."""
        self.settings = settings
        self.bucket = bucket
        encryption = settings.encryption
        # What each kind of request carries besides its bucket and key.
        self._always: dict[str, Any] = {"Bucket": bucket}
        if settings.requester_pays:
            self._always["RequestPayer"] = "requester"
        self._opening = dict(self._always)
        self._storing = dict(self._always)
        if encryption and encryption.customer_key is not None:
            own = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": encryption.customer_key}
            self._opening |= own
            self._storing |= own
        elif encryption:
            self._storing["ServerSideEncryption"] = encryption.algorithm
            if encryption.kms_key:
                self._storing["SSEKMSKeyId"] = encryption.kms_key

    @classmethod
    def from_conf(cls, conf: Mapping[str, str], bucket: str) -> S3Client:
        """The client of a bucket, by the user's conf.

        Raises:
            LogStoreConfError: a setting is invalid.
        """
        return cls(S3Settings.from_conf(conf, bucket), bucket)

    @property
    def sdk(self) -> Any:
        """The boto3 client of this process; it may also serve other buckets."""
        return sdk_client(self.settings)

    @property
    def endpoint(self) -> str:  # the base class says it
        return f"{self.sdk.meta.endpoint_url.rstrip('/')}/{self.bucket}"

    @property
    def is_known(self) -> bool:
        """Whether the host is AWS's: conditional writes are documented there."""
        return is_aws(urlsplit(self.sdk.meta.endpoint_url).hostname or "")

    @property
    def lists_in_order(self) -> bool:
        """Whether it is no directory bucket: those list in no order."""
        return not self.bucket.endswith(_DIRECTORY_BUCKET)

    def create(self, key: str, body: bytes, token: str) -> None:
        """One PUT with `If-None-Match: *`, of 5 GB at most."""
        place = self._place(key)
        with speaking_s3("create", place):
            # The token is metadata: in the body it would be a line of the log, which readers of all
            # clients see.
            reply = self.sdk.put_object(
                Key=key, Body=body, IfNoneMatch="*", Metadata={TOKEN_NAME: token}, **self._storing
            )
        check_reply(reply, "ETag", place)

    def put(self, key: str, body: bytes, *, token: str | None = None) -> None:
        """One PUT that replaces; with a token, that is what `owner` finds."""
        place = self._place(key)
        named = {"Metadata": {TOKEN_NAME: token}} if token else {}
        with speaking_s3("put", place):
            reply = self.sdk.put_object(Key=key, Body=body, **named, **self._storing)
        check_reply(reply, "ETag", place)

    def get(self, key: str) -> bytes:
        place = self._place(key)
        with speaking_s3("read", place):
            reply = self._opened(key)
            with contextlib.closing(reply["Body"]) as body:
                check_reply(reply, "ETag", place)
                check_declared_length(reply.get("ContentLength"))
                data: bytes = body.read()
        return data

    def _opened(self, key: str) -> dict[str, Any]:
        quick = wire_of(self.settings).get(key, self._opening)
        if quick is not None:
            return quick
        reply: dict[str, Any] = self.sdk.get_object(Key=key, **self._opening)
        return reply

    def owner(self, key: str) -> Owner | None:
        place = self._place(key)
        try:
            with speaking_s3("read", place):
                reply = self.sdk.head_object(Key=key, **self._opening)
        except FileNotFoundError:
            return None
        check_reply(reply, "ETag", place)
        made = int(reply["LastModified"].timestamp() * 1000) if "LastModified" in reply else None
        return Owner(reply.get("Metadata", {}).get(TOKEN_NAME), made)

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        asked: dict[str, Any] = {"Prefix": prefix, "Delimiter": "/", **self._always}
        if continuation is not None:
            # Some servers fail when a continuation comes with a start.
            asked["ContinuationToken"] = continuation
        elif start and not self.bucket.endswith(_DIRECTORY_BUCKET):
            # StartAfter leaves out the name itself, and the start is wanted.
            asked["StartAfter"] = prefix + start[:-1]
        if (size := limit or self.page_size) is not None:
            asked["MaxKeys"] = size
        place = self._place(prefix)
        with speaking_s3("list", place):
            reply = self.sdk.list_objects_v2(**asked)
        check_reply(reply, "IsTruncated", place)
        if reply["IsTruncated"]:  # else the rest of the log would be missing
            check_reply(reply, "NextContinuationToken", place)
        cut = len(prefix)
        entries = [
            ObjectEntry(
                each["Key"][cut:], each["Size"], int(each["LastModified"].timestamp() * 1000)
            )
            for each in reply.get("Contents", ())
        ]
        entries += [
            ObjectEntry(each["Prefix"][cut:].rstrip("/"), 0, 0, is_prefix=True)
            for each in reply.get("CommonPrefixes", ())
        ]
        return entries, reply.get("NextContinuationToken") if reply["IsTruncated"] else None

    def delete(self, key: str) -> None:
        with speaking_s3("delete", self._place(key)):
            self.sdk.delete_object(Key=key, **self._always)

    @property
    def most_deletions(self) -> int:
        """What `DeleteObjects` takes."""
        return 1000

    def delete_many(self, keys: Sequence[str]) -> list[str]:
        asked = {"Objects": [{"Key": key} for key in keys]}
        with speaking_s3("delete", self._place(keys[0])):
            reply = self.sdk.delete_objects(Delete=asked, **self._always)
        # Not what failed: the page of a proxy in between names no failures, either.
        deleted = {each["Key"] for each in reply.get("Deleted", ())}
        return [key for key in keys if key not in deleted]

    def upload(self, key: str, source: Path) -> None:
        """One PUT, or parts of which none is visible before the last request."""
        from lakelog.logstores.s3.upload import upload

        upload(self.sdk, self._storing, self._opening, self._place(key), source)

    def prepared_create(
        self, key: str, body: bytes, token: str, *, streamed: bool = False
    ) -> PreparedRequest | None:
        from lakelog.logstores.s3.prepared import prepared_put

        if self.bucket.endswith(_DIRECTORY_BUCKET):  # signed for a session, by a request more
            return None
        return prepared_put(self.settings, self._storing, key, body, token, signs_body=not streamed)

    def _place(self, key: str) -> Place:
        meta = self.sdk.meta
        return Place(meta.endpoint_url, meta.region_name, self.bucket, key)
