"""S3 servers that break the promise of `If-None-Match: *`, each in its own way.

- s3rver never looks at the header: every writer is told that it created the object.
- S3Proxy looks first and writes afterwards: alone it behaves, in a race it has several winners.

Both are here for what has to notice them: `lakelog doctor`, and the probe at a first use.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

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
from support.servers.minio import S3Endpoint
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

S3RVER = "3.7.1"
S3PROXY = "3.0.0"
BUCKET = "lake"
"""Exists in both when they are up."""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lakelog.tests</groupId><artifactId>bad-s3</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.gaul</groupId><artifactId>s3proxy</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
_PROPERTIES = """s3proxy.authorization=aws-v2-or-v4
s3proxy.endpoint={url}
s3proxy.identity={key}
s3proxy.credential={secret}
jclouds.provider=filesystem-nio2
jclouds.identity=unused
jclouds.credential=unused
jclouds.filesystem.basedir={folder}
"""


def install() -> None:
    """Both, in the cache."""
    install_s3rver()
    install_s3proxy()


@tool("s3rver")
def install_s3rver() -> Path:
    """The script that starts s3rver (some ten seconds, once)."""
    modules = built(f"s3rver-{S3RVER}", _build_s3rver) / "node_modules"
    return modules / "s3rver" / "bin" / "s3rver.js"


@tool("s3proxy")
def install_s3proxy() -> Path:
    """The folder of S3Proxy's jars (less than a minute, once)."""
    return built(f"s3proxy-{S3PROXY}", _build_s3proxy) / "jars"


def _build_s3rver(folder: Path) -> None:
    npm = need_program("npm", "installing s3rver")
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts"]
    run_step([npm, "install", *quiet, "--prefix", str(folder), f"s3rver@{S3RVER}"], cwd=folder)


def _build_s3proxy(folder: Path) -> None:
    maven = need_program("mvn", "installing S3Proxy")
    (folder / "pom.xml").write_text(_POM.format(version=S3PROXY))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    run_step([maven, "-q", "-B", *goal, f"-DoutputDirectory={folder / 'jars'}"], cwd=folder)


@contextlib.contextmanager
def run_s3rver() -> Iterator[S3Endpoint]:
    """An s3rver with an empty bucket, until the block ends."""
    script = install_s3rver()
    node = need_program("node", "s3rver")
    with tempfile.TemporaryDirectory(prefix="s3rver-") as folder:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        argv = [node, str(script), "--silent", "--address", "127.0.0.1", "--port", str(port)]
        argv += ["--directory", folder, "--configure-bucket", BUCKET]
        with running(argv, ready=lambda: answers(url)):
            yield S3Endpoint(url, "S3RVER", "S3RVER")


@contextlib.contextmanager
def run_s3proxy() -> Iterator[S3Endpoint]:
    """An S3Proxy on a folder of the disk, with an empty bucket, until the block ends."""
    jars = install_s3proxy()
    java = need_program("java", "S3Proxy")
    with tempfile.TemporaryDirectory(prefix="s3proxy-") as name:
        folder = Path(name)
        # A bucket of this provider is a folder.
        (folder / "data" / BUCKET).mkdir(parents=True)
        endpoint = S3Endpoint(f"http://127.0.0.1:{free_port()}", "s3proxy-test", "s3proxy-secret")
        settings = folder / "s3proxy.conf"
        settings.write_text(
            _PROPERTIES.format(
                url=endpoint.url,
                key=endpoint.access_key,
                secret=endpoint.secret_key,
                folder=folder / "data",
            )
        )
        argv = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        argv += ["org.gaul.s3proxy.Main", "--properties", str(settings)]
        with running(argv, ready=lambda: answers(endpoint.url), cwd=folder):
            yield endpoint


@pytest.fixture(scope="session")
def s3rver() -> Iterator[S3Endpoint]:
    """An S3 endpoint that ignores `If-None-Match`."""
    try:
        with run_s3rver() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def s3proxy() -> Iterator[S3Endpoint]:
    """An S3 endpoint that honours `If-None-Match`, but not atomically."""
    try:
        with run_s3proxy() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))
