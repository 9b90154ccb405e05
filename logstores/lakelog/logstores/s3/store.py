"""The log on S3 and on what speaks its protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.contract import Scope
from lakelog.logstores.errors import LogStoreError, UnsafeLogStoreError
from lakelog.logstores.lines import encode_lines
from lakelog.logstores.locks import process_lock
from lakelog.logstores.object_store.store import KeyTakenError, ObjectLogStore, create_once
from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.uri import bucket_and_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow.fs

    from lakelog.logstores.contract import Capabilities

SINGLE_WRITER_KEY: Final = keys.SINGLE_WRITER.name


class S3ConditionalLogStore(ObjectLogStore):
    """A log on S3: a commit is one PUT with `If-None-Match: *`. The default for S3's schemes.

    Needs a service that lets one writer create a key, as AWS's does since August 2024 ("Add
    preconditions to S3 operations with conditional requests" in its user guide). An endpoint
    that refuses the header is reported; one that ignores it is found by the probe that goes
    before the first commit.

    Takes the user's `fs.s3a.*` settings, and else boto3's default credentials.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._clients: dict[str, S3Client] = {}
        self._bucket: str | None = None

    def _locate(self, path: str) -> tuple[S3Client, str]:
        bucket, key = bucket_and_key(path)
        return self._client(bucket), key

    def _client(self, bucket: str) -> S3Client:
        found = self._clients.get(bucket)
        if found is None:
            found = self._clients[bucket] = S3Client.from_conf(self.conf, bucket)
            self._bucket = self._bucket or bucket
        return found

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """Arrow's S3 file system with the same settings.

        Settings for one bucket (`fs.s3a.bucket.*`) count here for the first bucket that this
        store was asked about.

        Raises:
            LogStoreConfError: Arrow can't do what a setting asks for (SSE-KMS, SSE-C, requester
                pays, some credential sources).
        """
        from lakelog.logstores.s3.filesystem import arrow_filesystem

        return arrow_filesystem(self._client(self._bucket or "").settings)

    def filesystem_path(self, path: str) -> str:  # noqa: D102  # the contract says it
        bucket, key = bucket_and_key(path)
        self._client(bucket)
        return f"{bucket}/{key}".rstrip("/")

    def settings(self) -> Mapping[str, str]:
        """The conf's, and what results from them: endpoint, region, and whose credentials are used.

        Looks for credentials as the first request would, which may ask a metadata service.
        """
        from lakelog.logstores.s3.sdk import in_force

        found = dict(super().settings())
        try:
            found |= in_force(self._client(self._bucket or "").settings)
        except (OSError, LogStoreError) as error:
            found["s3 client"] = f"unavailable: {error}"
        return found


class S3SingleDriverLogStore(S3ConditionalLogStore):
    """A log on an S3 service that has no conditional put: safe for the threads of one process.

    A commit takes a lock of the process, asks whether the key is there, and puts. Two processes
    can overwrite each other's commits and both believe that they won, so no writer is excluded as
    far as `capabilities` go, and a commit is refused unless `spark.lakelog.unsafe.singleWriter`
    is `true`.
    """

    @property
    def capabilities(self) -> Capabilities:  # noqa: D102
        return replace(super().capabilities, exclusive_create=Scope.NONE)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """As the contract has it, within one process.

        Raises:
            UnsafeLogStoreError: `overwrite=False`, and the opt-in is not set.
        """
        if overwrite:
            super().write(path, lines, overwrite=True)
            return
        if not keys.SINGLE_WRITER.of(self.conf):
            raise UnsafeLogStoreError(
                f"{path} was not written: S3SingleDriverLogStore can't tell which of two writers "
                "came first. Use S3ConditionalLogStore (the default) if the endpoint supports "
                "If-None-Match, else S3DynamoDBLogStore; or set "
                f"{SINGLE_WRITER_KEY}=true if no other process ever writes this table."
            )
        body = b"".join(encode_lines(lines))
        bucket, key = bucket_and_key(path)
        client = _LookThenPut(self._client(bucket).settings, bucket)
        with process_lock(f"S3SingleDriverLogStore:{bucket}/{key}"):
            create_once(client, key, body, path, self._policy)


class _LookThenPut(S3Client):
    """A client whose create is two requests, which excludes no other process."""

    def create(self, key: str, body: bytes, token: str) -> None:
        if self.owner(key) is not None:
            raise KeyTakenError(f"s3://{self.bucket}/{key} exists")
        self.put(key, body, token=token)
