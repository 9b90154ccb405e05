"""MinIO: an S3 server whose conditional put is atomic."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.servers._service import (
    ServerUnavailableError,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
ENDPOINT_VARIABLE = "LAKELOG_TEST_S3_ENDPOINT"
USER, PASSWORD = "lakelog-test", "lakelog-test-secret"


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """An S3 service that tests may fill."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf that leads to it, in Hadoop's names."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": self.region,
            "spark.hadoop.fs.s3a.access.key": self.access_key,
            "spark.hadoop.fs.s3a.secret.key": self.secret_key,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def client(self, service: str = "s3", *, verify: str | bool = True, tries: int = 5) -> Any:
        """A boto3 client of its own, for what tests do around the store."""
        from boto3.session import Session
        from botocore.config import Config

        return Session().client(
            service,
            endpoint_url=self.url,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            verify=verify,
            config=Config(retries={"total_max_attempts": tries}),
        )


@tool("minio")
def install() -> Path:
    """The program: on the PATH, or built from source into the cache (some three minutes, once)."""
    with contextlib.suppress(ServerUnavailableError):
        return Path(need_program("minio", "S3"))
    return built(f"minio-{VERSION}", _build) / "minio"


def _build(folder: Path) -> None:
    go = need_program("go", "building MinIO")
    run_step(
        [go, "install", f"github.com/minio/minio@{VERSION}"],
        cwd=folder,
        env={"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"},
    )


def _serves(client: Any) -> bool:
    """Whether a signed request is answered: MinIO calls itself ready a moment before that."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client.list_buckets()
    except (BotoCoreError, ClientError):
        return False
    return True


@contextlib.contextmanager
def run_minio(region: str = "us-east-1", certificates: Path | None = None) -> Iterator[S3Endpoint]:
    """A MinIO of its own, empty, until the block ends. It refuses signatures for other regions.

    With a folder that holds `public.crt` and `private.key` it speaks TLS, and only that.
    """
    program = install()
    with tempfile.TemporaryDirectory(prefix="minio-") as folder:
        port, console = free_port(), free_port()
        url = f"{'https' if certificates else 'http'}://127.0.0.1:{port}"
        argv = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{port}"]
        argv += ["--certs-dir", str(certificates)] if certificates else []
        argv += ["--console-address", f"127.0.0.1:{console}", folder]
        env = {
            "MINIO_ROOT_USER": USER,
            "MINIO_ROOT_PASSWORD": PASSWORD,
            "MINIO_SITE_REGION": region,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "HOME": folder,
        }
        endpoint = S3Endpoint(url, USER, PASSWORD, region)
        trust = str(certificates / "public.crt") if certificates else True
        client = endpoint.client(verify=trust, tries=1)
        with running(argv, ready=lambda: _serves(client), env=env):
            client.close()
            yield endpoint


@pytest.fixture(scope="session")
def minio() -> Iterator[S3Endpoint]:
    """An S3 endpoint for the session: the one that the environment names, or a MinIO."""
    url = os.environ.get(ENDPOINT_VARIABLE)
    if url:
        yield S3Endpoint(
            url,
            os.environ.get("AWS_ACCESS_KEY_ID", USER),
            os.environ.get("AWS_SECRET_ACCESS_KEY", PASSWORD),
            os.environ.get("AWS_REGION", "us-east-1"),
        )
        return
    try:
        with run_minio() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def s3_bucket(minio: S3Endpoint) -> Iterator[str]:
    """A bucket for the tests of one module, emptied and removed in the end."""
    client = minio.client()
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=name)
    yield name
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
        keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
        if keys:
            client.delete_objects(Bucket=name, Delete={"Objects": keys})
    client.delete_bucket(Bucket=name)
    client.close()


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine that nobody has set up for AWS, and what can set it up for the test."""
    from lakelog.logstores.s3 import sdk as _s3_sdk

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    # A client keeps what it found in the environment.
    monkeypatch.setattr(_s3_sdk, "_shelf", _s3_sdk._Shelf())
    return monkeypatch
