"""How Java runs the Spark of a test: compiled for a few rows, its classes loaded from an archive.

Most of what a session's start takes is classes: found in 300 jars, inflated, parsed, verified. An
archive of them (class data sharing) is made once for each PySpark and each Java, and mapped by all
sessions afterwards. It takes part only where the class path is the one that it was made with, so
no folder of confs may stand there: confs go as system properties.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from support.delta_spark import (
    STEP_SECONDS,
    PeerUnavailableError,
    cache_folder,
    exclusively,
    installed,
)
from support.tools import tool

VARIABLE = "SPARK_SUBMIT_OPTS"

# To compile well takes longer than a test's few rows do. With the first compiler alone Java keeps
# 48 MB for its code, which Delta's plans overflow: what is thrown out is interpreted, and compiled
# once more. To verify the bytecode of Spark's own classes is a sixth of the start. Java warns
# on standard output, where answers may be read, of an archive that it can't use.
_JAVA = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-Xlog:disable",
)
# Nobody looks at the UI, for which queries draw plans and tasks tell their progress; Spark's rules
# are its own to check. And where a user made a Column PySpark tells Java in three calls of four.
_CONFS = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "-1s",
}
_TRAINING = Path(__file__).with_name("spark_training.py")


def submit_options(python: Path | None = None) -> str:
    """What `SPARK_SUBMIT_OPTS` is to say for the PySpark of an interpreter, by default ours."""
    return _options(f"-XX:SharedArchiveFile={_archive(python)}")


@tool("spark_classes")
def archived_classes() -> Path:
    """Make the archive of our PySpark's classes, if that has not been done.

    Raises:
        PeerUnavailableError: there is no Java, or it made none.
    """
    return _made(None)


@tool("delta_spark_classes")
def archived_classes_of_delta_spark() -> Path:
    """The same for the PySpark that delta-spark runs on."""
    return _made(installed().python)


def _made(python: Path | None) -> Path:
    archive = _archive(python)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with exclusively(archive.with_suffix(".lock")):
        if not archive.exists():
            _make(archive, str(python or sys.executable))
    return archive


def _make(archive: Path, python: str) -> None:
    if shutil.which("java") is None:
        raise PeerUnavailableError("no `java` on the PATH; Spark needs Java 17")
    with tempfile.TemporaryDirectory(prefix="spark-training-") as folder:
        draft = Path(folder) / "classes.jsa"
        foreign = ("PYTHON", "SPARK", "PYSPARK", "VIRTUAL_ENV")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        environment |= {
            VARIABLE: _options(f"-XX:ArchiveClassesAtExit={draft}"),
            "PYSPARK_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        try:
            # Java writes it when it ends, for which its pipes stay open.
            done = subprocess.run(
                [python, str(_TRAINING), folder],
                env=environment,
                capture_output=True,
                text=True,
                timeout=STEP_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise PeerUnavailableError(f"no archive of Spark's classes: {exc}") from exc
        if not draft.exists():
            raise PeerUnavailableError(f"no archive of Spark's classes: {done.stderr[-2000:]}")
        half = archive.with_suffix(".half")
        shutil.copyfile(draft, half)
        half.replace(archive)


def _options(archive: str) -> str:
    confs = (f"-D{key}={value}" for key, value in _CONFS.items())
    return " ".join([*_JAVA, f'"{archive}"', *confs])


def _archive(python: Path | None) -> Path:
    """Where the archive is to be: another one for each Java and each set of jars."""
    known = hashlib.sha256(os.fsencode(os.path.realpath(shutil.which("java") or "java")))
    for jar in sorted(_jars(python).glob("*.jar")):
        about = jar.stat()
        known.update(f"{jar} {about.st_size} {about.st_mtime_ns}\n".encode())
    return cache_folder().absolute() / "spark-classes" / f"{known.hexdigest()[:12]}.jsa"


def _jars(python: Path | None) -> Path:
    if python is None:
        # Found without an import, which every process of tests would pay for.
        spec = find_spec("pyspark")
        places = spec.submodule_search_locations if spec else None
        return Path(places[0] if places else "none") / "jars"
    environment = python.absolute().parents[1]
    with contextlib.suppress(ValueError):
        (jars,) = environment.glob("lib/python*/site-packages/pyspark/jars")
        return jars
    return environment / "none"
