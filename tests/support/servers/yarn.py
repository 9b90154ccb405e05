"""YARN: a real ResourceManager and two NodeManagers in one JVM, from Hadoop's own mini cluster."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support.servers._service import built, need_program, ready_line, run_step, running
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["install", "run_yarn"]

VERSION = "3.5.0"
_MAIN = Path(__file__).with_name("MiniYarn.java")
# The mini cluster without what the servers' shaded jar leaves out.
_JARS = {
    "org.apache.hadoop:hadoop-client-minicluster": VERSION,
    "org.junit.jupiter:junit-jupiter-api": "5.13.4",
    "org.assertj:assertj-core": "3.27.3",
    "org.mockito:mockito-core": "5.18.0",
    "ch.qos.reload4j:reload4j": "1.2.26",
    "org.bouncycastle:bcpkix-jdk18on": "1.82",
}


@tool("yarn")
def install() -> Path:
    """The jars, in the cache (half a minute, once)."""
    return built(f"yarn-{VERSION}-{_MAIN.stat().st_size}", _build)


def _build(folder: Path) -> None:
    maven = need_program("mvn", "installing YARN")
    javac = need_program("javac", "compiling the mini cluster's main")
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for (group, _, name), version in ((k.partition(":"), v) for k, v in _JARS.items())
    )
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lakelog.tests</groupId><artifactId>mini-yarn</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"]
    run_step([maven, "-q", "-B", *goal], cwd=folder)
    run_step(
        [javac, "-cp", f"{folder / 'jars'}/*", "-d", str(folder / "classes"), str(_MAIN)],
        cwd=folder,
    )


@contextlib.contextmanager
def run_yarn() -> Iterator[Path]:
    """A cluster of two nodes until the block ends; the folder for `HADOOP_CONF_DIR`.

    Raises:
        ServerUnavailableError: it did not start.
    """
    folder = install()
    java = need_program("java", "YARN")
    with tempfile.TemporaryDirectory(prefix="yarn-", ignore_cleanup_errors=True) as name:
        data, conf = Path(name, "data"), Path(name, "conf")
        data.mkdir()
        conf.mkdir()
        argv = [java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        argv += ["-cp", f"{folder / 'classes'}:{folder / 'jars'}/*", "MiniYarn"]
        env = {"JAVA_HOME": str(Path(java).resolve().parents[1])}
        with running([*argv, str(data), str(conf)], env=env, cwd=data, hold_stdin=True) as process:
            ready_line(process, "ready")
            yield conf
