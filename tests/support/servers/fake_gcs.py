"""fake-gcs-server: Google Cloud Storage's JSON API, whose conditional insert is atomic."""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.servers._service import (
    ServerUnavailableError,
    answers,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "v1.56.1"
ENDPOINT_VARIABLE = "LAKELOG_TEST_GCS_ENDPOINT"
PROJECT_VARIABLE = "LAKELOG_TEST_GCS_PROJECT"
REAL = "https://storage.googleapis.com"


@dataclass(frozen=True, slots=True)
class GCSEndpoint:
    """A Google Cloud Storage that tests may fill."""

    url: str
    project: str = "lakelog-test"
    anonymous: bool = True
    _buckets: list[str] = field(default_factory=list)

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf that leads to it, in the names of Google's Hadoop connector."""
        conf = {
            "spark.hadoop.fs.gs.storage.root.url": self.url,
            "spark.hadoop.fs.gs.project.id": self.project,
        }
        if self.anonymous:
            conf["spark.hadoop.fs.gs.auth.type"] = "UNAUTHENTICATED"
        return conf

    def new_bucket(self) -> str:
        """Make an empty bucket, which is removed with its objects at the end of the session."""
        name = f"lakelog-{uuid.uuid4().hex[:20]}"
        self._client().create_bucket(name)
        self._buckets.append(name)
        return name

    def remove_buckets(self) -> None:
        """Remove what `new_bucket` made."""
        client = self._client()
        for name in self._buckets:
            bucket = client.bucket(name)
            bucket.delete_blobs(list(client.list_blobs(name)))
            bucket.delete()

    def _client(self) -> Any:  # google-cloud-storage has no types
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        options = {"api_endpoint": self.url}
        if self.anonymous:
            return storage.Client(
                self.project, credentials=AnonymousCredentials(), client_options=options
            )
        return storage.Client(self.project, client_options=options)


@tool("fake_gcs")
def install() -> Path:
    """The program: on the PATH, or built from source into the cache (two minutes, once)."""
    with contextlib.suppress(ServerUnavailableError):
        return Path(need_program("fake-gcs-server", "Google Cloud Storage"))
    return built(f"fake-gcs-server-{VERSION}", _build) / "fake-gcs-server"


def _build(folder: Path) -> None:
    go = need_program("go", "building fake-gcs-server")
    run_step(
        [go, "install", f"github.com/fsouza/fake-gcs-server@{VERSION}"],
        cwd=folder,
        env={"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"},
    )


@contextlib.contextmanager
def run_fake_gcs() -> Iterator[GCSEndpoint]:
    """A fake-gcs-server of its own, empty, in memory, until the block ends."""
    program = install()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    # It tells clients where to go on with a resumable upload: to itself, by the way they came.
    argv += ["-backend", "memory", "-public-host", f"127.0.0.1:{port}", "-external-url", url]
    argv += ["-log-level", "error"]
    health = f"{url}/_internal/healthcheck"
    with running(argv, ready=lambda: answers(health, lambda status: status == 200)):
        yield GCSEndpoint(url)


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[GCSEndpoint]:
    """A GCS endpoint for the session: the one that the environment names, or a fake-gcs-server.

    The real service is named by its URL; it needs Application Default Credentials and a project.
    """
    url = os.environ.get(ENDPOINT_VARIABLE)
    if url:
        project = os.environ.get(PROJECT_VARIABLE, "lakelog-test")
        endpoint = GCSEndpoint(url, project, anonymous=url.rstrip("/") != REAL)
        yield endpoint
        endpoint.remove_buckets()
        return
    try:
        with run_fake_gcs() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def gcs_bucket(fake_gcs: GCSEndpoint) -> str:
    """A new, empty bucket."""
    return fake_gcs.new_bucket()
