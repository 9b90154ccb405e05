"""What vends keys for MinIO that end, for a catalog's double."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelog.core import Clock
    from support.servers.minio import S3Endpoint
    from support.unity_server import Table


class Vendor:
    """Session keys of MinIO's, as long-lived as a test says; MinIO knows the newest alone."""

    def __init__(self, minio: S3Endpoint, clock: Clock) -> None:
        self._minio, self._clock = minio, clock
        self.given: list[dict[str, str]] = []
        self.lasts: int | None = None
        """Milliseconds; `None`: for ever, while a test gets ready by the machine's clock."""
        self.ends_others = True
        """Whether a new one ends those before it; else `end_all` alone does."""

    def __call__(self, table: Table, operation: str) -> list[dict[str, Any]]:
        if self.ends_others:
            self.end_all()
        sts = self._minio.client("sts")
        found = sts.assume_role(RoleArn="arn:aws:iam::lakelog:role/test", RoleSessionName="test")[
            "Credentials"
        ]
        sts.close()
        config = {
            "s3.access-key-id": found["AccessKeyId"],
            "s3.secret-access-key": found["SecretAccessKey"],
            "s3.session-token": found["SessionToken"],
        }
        self.given.append(config)
        return [
            {
                "prefix": table.location,
                "operation": operation,
                "config": config,
                "expiration-time-ms": self.lasts and self._clock.now_ms() + self.lasts,
            }
        ]

    def end_all(self) -> None:
        """Let MinIO forget every session key, by its administrators' API."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        from botocore.httpsession import URLLib3Session

        url = f"{self._minio.url}/minio/admin/v3/revoke-tokens/builtin?fullRevoke=true"
        asked = AWSRequest("POST", url, data=b"")
        keys = Credentials(self._minio.access_key, self._minio.secret_key)
        asked.headers["X-Amz-Content-Sha256"] = (
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing
        )
        SigV4Auth(keys, "s3", self._minio.region).add_auth(asked)
        session = URLLib3Session()
        answer = session.send(asked.prepare())
        session.close()
        assert answer.status_code == 204, answer.text
