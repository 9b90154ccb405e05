"""DynamoDB Local: Amazon's own emulator, which also deletes what has expired."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.servers._service import (
    ServerUnavailableError,
    built,
    need_program,
    ready_line,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2.6.1"
ENDPOINT_VARIABLE = "LAKELOG_TEST_DYNAMODB_ENDPOINT"
USER, PASSWORD = "lakelogtest", "lakelogtestsecret"
LAUNCHER = Path(__file__).with_name("LocalDynamo.java")
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lakelog.tests</groupId><artifactId>dynamodb</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


@dataclass(frozen=True, slots=True)
class DynamoDBEndpoint:
    """A DynamoDB service that tests may fill."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    def conf(self, table: str) -> dict[str, str]:
        """The Spark conf that leads to a table of it."""
        return {
            "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": table,
            "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region": self.region,
            "spark.lakelog.s3dynamodb.endpoint": self.url,
            "spark.lakelog.s3dynamodb.access.key": self.access_key,
            "spark.lakelog.s3dynamodb.secret.key": self.secret_key,
        }


@tool("dynamodb")
def install() -> Path:
    """The folder with its jars and our launcher, fetched and compiled once (about a minute)."""
    need_program("java", "DynamoDB Local")
    return built(f"dynamodb-{VERSION}", _build)


def _build(folder: Path) -> None:
    maven = need_program("mvn", "fetching DynamoDB Local")
    compiler = need_program("javac", "DynamoDB Local's launcher")
    (folder / "pom.xml").write_text(POM)
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    run_step([maven, "-B", "-q", copy, f"-DoutputDirectory={folder / 'lib'}"], cwd=folder)
    shutil.copy(LAUNCHER, folder)
    run_step([compiler, "-cp", "lib/*", "-d", "classes", LAUNCHER.name], cwd=folder)


@contextlib.contextmanager
def run_dynamodb() -> Iterator[DynamoDBEndpoint]:
    """A DynamoDB Local of its own, in memory and empty, until the block ends."""
    folder = install()
    argv = [need_program("java", "DynamoDB Local"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
    argv += ["-XX:+UseSerialGC", f"-Dsqlite4java.library.path={folder / 'lib'}"]
    argv += ["-cp", f"{folder / 'classes'}:{folder / 'lib'}/*", "LocalDynamo"]
    with running(argv, hold_stdin=True) as process:
        port = ready_line(process, "port ").split()[1]
        yield DynamoDBEndpoint(f"http://127.0.0.1:{port}", USER, PASSWORD)


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamoDBEndpoint]:
    """A DynamoDB endpoint for the session: the one that the environment names, or a local one."""
    url = os.environ.get(ENDPOINT_VARIABLE)
    if url:
        yield DynamoDBEndpoint(
            url,
            os.environ.get("AWS_ACCESS_KEY_ID", USER),
            os.environ.get("AWS_SECRET_ACCESS_KEY", PASSWORD),
            os.environ.get("AWS_REGION", "us-east-1"),
        )
        return
    try:
        with run_dynamodb() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))
