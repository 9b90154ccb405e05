"""The real delta-spark, installed beside the project: a PySpark of its own and Delta's jars.

delta-spark is built for one Spark at a time, and its newest release lags the newest Spark; so it
gets a virtual environment of its own. Both live in the checkout's `.cache` (or in the folder that
`LAKELOG_CACHE` names), are made once, and are found again by a stamp file.

    cd tests && python -m support.delta_spark --json    # install now, and print where
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DELTA = "4.4.0"
PYSPARK = "4.2.0"
# What delta-spark needs at run time. Its pom also names an AWS SDK of hundreds of megabytes,
# for stores that the tests don't touch: hence each jar by name, and nothing transitive.
JARS = (
    f"io.delta:delta-spark_4.2_2.13:{DELTA}",
    f"io.delta:delta-storage:{DELTA}",
    f"io.delta:delta-kernel-api:{DELTA}",
    f"io.delta:delta-kernel-defaults:{DELTA}",
    f"io.delta:delta-kernel-unitycatalog:{DELTA}",
    "io.unitycatalog:unitycatalog-client:0.6.0",
    "io.unitycatalog:unitycatalog-hadoop:0.6.0",
)
STEP_SECONDS = 900
REPOSITORY = Path(__file__).resolve().parents[2]


class PeerUnavailableError(RuntimeError):
    """delta-spark can't be installed here; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class DeltaSpark:
    """Where an installed delta-spark stands."""

    python: Path
    jars: tuple[Path, ...]


def cache_folder() -> Path:
    """The folder for what is downloaded once."""
    return Path(os.environ.get("LAKELOG_CACHE", REPOSITORY / ".cache"))


@tool("delta_spark")
def installed() -> DeltaSpark:
    """Install delta-spark if that has not been done, and say where it is.

    Processes that ask at once wait for the first. A step is bounded to fifteen minutes.

    Raises:
        PeerUnavailableError: Java or Maven is missing, or a download failed.
    """
    java_home = os.environ.get("JAVA_HOME")
    if not (java_home or shutil.which("java")):
        raise PeerUnavailableError("no `java` on the PATH and no JAVA_HOME; Spark needs Java 17")
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "delta-spark.lock"):
        python = _virtual_environment(cache / f"venv-delta-{PYSPARK}")
        jars = copied_jars(cache / "jars" / f"delta-{DELTA}", JARS)
    return DeltaSpark(python, jars)


@tool("delta_tables")
def python_package() -> Path:
    """The folder of delta-spark's own Python package, which its jars do not have.

    Raises:
        PeerUnavailableError: it can't be downloaded.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"python-delta-{DELTA}"
    stamp = folder / ".complete"
    with exclusively(cache / "delta-spark-python.lock"):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            wanted = [f"delta-spark=={DELTA}", "--no-deps", "--target", str(folder)]
            run([sys.executable, "-m", "pip", "install", "--quiet", *wanted])
            stamp.touch()
    return folder


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Hold a lock file, whichever process asks."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _virtual_environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    stamp = folder / ".complete"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}"])
        stamp.touch()
    return python


def copied_jars(folder: Path, coordinates: Sequence[str]) -> tuple[Path, ...]:
    """Jars by name, without what they depend on, in a folder of their own.

    Raises:
        PeerUnavailableError: Maven is missing, or a download failed.
    """
    stamp = folder / ".complete"
    if not stamp.exists():
        if shutil.which("mvn") is None:
            raise PeerUnavailableError("no `mvn` on the PATH; Maven fetches delta-spark's jars")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pom = folder / "pom.xml"
        pom.write_text(_pom(coordinates))
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = ["mvn", "-B", "-q", "-f", str(pom), copy, f"-DoutputDirectory={folder}"]
        run(command)
        stamp.touch()
    return tuple(sorted(folder.glob("*.jar")))


def _pom(coordinates: Sequence[str]) -> str:
    entries = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        entries.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><exclusions><exclusion><groupId>*</groupId>"
            "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lakelog</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{''.join(entries)}</dependencies></project>\n"
    )


def run(command: Sequence[str]) -> None:
    """Run one step of an installation, bounded in time.

    Raises:
        PeerUnavailableError: it failed, or took too long.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise PeerUnavailableError(f"{' '.join(command)} took over {STEP_SECONDS} s") from exc
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise PeerUnavailableError(f"{' '.join(command)} failed:\n{said}")


def main() -> int:
    """Install now, whoever wants it later, and say what is there: for programs with `--json`."""
    try:
        where = installed()
    except PeerUnavailableError as exc:
        print(f"without delta-spark: {exc}", file=sys.stderr)
        return 1
    if "--json" in sys.argv[1:]:
        print(json.dumps({"python": str(where.python), "jars": list(map(str, where.jars))}))
    else:
        print(f"delta-spark {DELTA} on PySpark {PYSPARK}: {where.python}, {len(where.jars)} jars")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
