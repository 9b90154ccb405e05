"""Apache Kafka: one broker that is its own controller, out of Maven Central."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.servers._service import (
    STEP_SECONDS,
    ServerUnavailableError,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

VERSION = "4.4.0"

_SLF4J = "1.7.36"
"""Its binding must be of the release that Kafka's jars log by."""
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lakelog.tests</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>{_SLF4J}</version>
    </dependency>
  </dependencies>
</project>
"""
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_CLUSTER = "bGFrZWxvZyB0ZXN0cyBydQ"
"""Its id: 16 bytes of base64."""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}
auto.create.topics.enable=false
# One of each, and small.
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.network.threads=1
num.io.threads=2
log.cleaner.dedupe.buffer.size=4194304
# At once, where a cluster takes its time.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
log.cleaner.backoff.ms=50
# One that was killed is let in again after this.
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
"""


@tool("kafka")
def install() -> Path:
    """The jars, an empty log and the class archive, in the cache (half a minute, once)."""
    return built(f"kafka-{VERSION}", _build)


def _build(folder: Path) -> None:
    maven = need_program("mvn", "fetching Kafka")
    java = need_program("java", "Kafka")
    (folder / "pom.xml").write_text(_POM)
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    run_step([maven, "-B", "-q", copy, "-DoutputDirectory=lib"], cwd=folder)
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(broker=1, controller=2, folder="formatted"))
    storage = [*_command(java, folder), "kafka.tools.StorageTool"]
    run_step([*storage, "format", "-t", _CLUSTER, "-c", str(properties)], cwd=folder)
    # Of the classes that a start loads: half of its CPU time.
    with KafkaBroker(folder, "-XX:ArchiveClassesAtExit=classes.jsa") as broker:
        process = broker.start()
        process.terminate()
        process.wait(STEP_SECONDS)


def _command(java: str, folder: Path) -> list[str]:
    # An archive takes class paths of jars only, and these by relative name.
    jars = sorted(f"lib/{path.name}" for path in (folder / "lib").glob("*.jar"))
    return [java, *_JAVA, "-cp", ":".join(jars)]


class KafkaBroker(contextlib.AbstractContextManager["KafkaBroker"]):
    """A broker that may be killed and started again, on the same port with the same log."""

    def __init__(self, program: Path, *options: str) -> None:
        """Start nothing yet.

        Args:
            program: the folder that `install` gives.
            options: of Java.
        """
        self.address = f"127.0.0.1:{free_port()}"
        self._program, self._options = program, options
        self._running = contextlib.ExitStack()
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        self._properties = self._folder / "server.properties"
        shutil.copytree(program / "formatted", self._folder / "log")
        self._properties.write_text(
            _PROPERTIES.format(
                broker=self.address.rpartition(":")[2],
                controller=free_port(),
                folder=self._folder / "log",
            )
        )

    def start(self) -> subprocess.Popen[str]:
        """The process, once it answers.

        Raises:
            ServerUnavailableError: it ended instead, or was not ready in time.
        """
        argv = _command(need_program("java", "Kafka"), self._program)
        argv[1:1] = self._options
        argv += ["kafka.Kafka", str(self._properties)]
        server = running(argv, cwd=self._program, ready=self._answers)
        process = self._running.enter_context(server)
        # What it has is kept by the system, or nobody's: it need not end in order.
        self._running.callback(process.kill)
        return process

    def kill(self) -> None:
        """End it, as by a crash."""
        self._running.close()

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        """Leave nothing of it."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def run_kafka() -> Iterator[KafkaBroker]:
    """A broker of its own, without topics, until the block ends."""
    options = ("-XX:TieredStopAtLevel=1", "-XX:SharedArchiveFile=classes.jsa")
    with KafkaBroker(install(), *options) as broker:
        broker.start()
        yield broker


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A broker for the session."""
    try:
        with run_kafka() as broker:
            yield broker
    except ServerUnavailableError as error:
        pytest.skip(str(error))
