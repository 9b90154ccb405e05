"""Compile `io.lakelog.BridgeLogStore` into the jar that the package ships: `make jar`.

The jar is in the repository. A wheel is built, and a clone installed, where there is neither a
Java compiler nor Maven; so what they ship has to be there. It is made so that anybody can make it
again, to the byte: for one release of Java, entries in order, without times and uncompressed. Its
manifest has the digest of the sources, and a test compares both.

    python scripts/bridge_jar.py [target.jar]
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = REPOSITORY / "java"
TARGET = REPOSITORY / "logstores/lakelog/logstores/service/lakelog-bridge.jar"
RELEASE = "8"
"""Of Java, as delta-storage 3.2 has it."""
DELTA_STORAGE = "io.delta:delta-storage:4.4.0"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def sources() -> list[Path]:
    """The Java files, in order."""
    return sorted(SOURCES.rglob("*.java"))


def source_digest() -> str:
    """SHA-256 of the names and contents of the sources."""
    digest = hashlib.sha256()
    for path in sources():
        data = path.read_bytes()
        digest.update(f"{path.relative_to(SOURCES).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def compiler_version() -> str | None:
    """The first number of the Java compiler's version, `None` where there is no compiler."""
    if shutil.which("javac") is None:
        return None
    said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True)
    return str(re.search(r"\d+", said.stdout + said.stderr).group())  # type: ignore[union-attr]


def hadoop_api() -> Path:
    """The jar of PySpark's that has Hadoop's classes."""
    import pyspark

    (found,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    return found


def build(target: Path, *class_path: Path) -> None:
    """Compile the sources against some jars, and pack them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", RELEASE, "-g:source,lines", "-Xlint:-options"]
        command += ["-encoding", "UTF-8", "-cp", os.pathsep.join(map(str, class_path))]
        subprocess.run([*command, "-d", folder, *map(str, sources())], check=True)
        manifest = (
            "Manifest-Version: 1.0\r\n"
            "Automatic-Module-Name: io.lakelog\r\n"
            f"Build-Jdk-Spec: {compiler_version()}\r\n"
            # In two lines: a line of a manifest has 72 bytes at the most.
            f"Lakelog-Source-1: {source_digest()[:32]}\r\n"
            f"Lakelog-Source-2: {source_digest()[32:]}\r\n\r\n"
        )
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
            jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), manifest)
            for path in sorted(Path(folder).rglob("*.class")):
                name = path.relative_to(folder).as_posix()
                jar.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())


def manifest_of(jar: Path) -> dict[str, str]:
    """What the manifest of a jar says."""
    with zipfile.ZipFile(jar) as archive:
        lines = archive.read("META-INF/MANIFEST.MF").decode().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def class_names(jar: Path) -> list[str]:
    """The classes in a jar."""
    with zipfile.ZipFile(jar) as archive:
        return archive.namelist()


def main(target: Path) -> None:
    """Fetch delta-storage by Maven, where it is not in the cache, and build."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from support.delta_spark import cache_folder, copied_jars

    version = DELTA_STORAGE.rpartition(":")[2]
    delta = copied_jars(cache_folder() / "jars" / f"delta-storage-{version}", [DELTA_STORAGE])
    draft = target.with_suffix(".draft")
    build(draft, *delta, hadoop_api())
    draft.replace(target)  # a JVM that has the old one open keeps that
    sys.stdout.write(f"{target}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
