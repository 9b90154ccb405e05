"""`lakelog-python`: the interpreter for Spark's Python processes that begins sooner.

    PYSPARK_PYTHON=lakelog-python python job.py

It is the Python that lakelog is installed in, with two differences. Spark puts its own archives,
`pyspark.zip` and Py4J's, before all else on the path of each process that it starts, and Python
recompiles what it imports from an archive in each of them: where the same modules are installed,
the archives are left out in favour of the installed modules, which were compiled once. And the
daemon, which Spark forks for each worker, is `lakelog.spark.workers.daemon`.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGES: Final = ("pyspark", "py4j")
_DAEMON: Final = ["-m", "pyspark.daemon"]
_OURS: Final = ["-m", "lakelog.spark.workers.daemon"]
_NOT_COMPARED: Final = (
    "pandas/", "ml/", "mllib/", "tests/", "testing/", "examples/", "sql/streaming/benchmark/",
)  # fmt: skip
"""Parts of PySpark that no worker needs to begin, and half of its files; not all are on PyPI."""


def main() -> NoReturn:
    """Become the interpreter, with the arguments that were given."""
    arguments = sys.argv[1:]
    if arguments[:2] == _DAEMON:
        arguments[:2] = _OURS
    environment = dict(os.environ)
    given = environment.get("PYTHONPATH")
    if given:
        kept = without_archives(given.split(os.pathsep), sys.path)
        environment["PYTHONPATH"] = os.pathsep.join(kept)
    os.execve(sys.executable, [sys.executable, *arguments], environment)


def without_archives(given: Sequence[str], path: Sequence[str]) -> list[str]:
    """A path without Spark's archives, if this interpreter has just the modules that they have.

    A vendor's Spark may have other modules under the same version, which belong to its JVM.

    Args:
        given: what Spark set, in its order.
        path: where this interpreter looks for modules.
    """
    archives = {package: _archive_of(package, given) for package in _PACKAGES}
    rest = [each for each in path if each not in archives.values()]
    if all(archive and _is_installed(name, archive, rest) for name, archive in archives.items()):
        return [each for each in given if each not in archives.values()]
    return list(given)


def _archive_of(package: str, path: Sequence[str]) -> str:
    """The first archive that Spark would name so; empty if there is none."""
    for each in path:
        if Path(each).name.startswith(package) and each.endswith(".zip") and Path(each).is_file():
            return each
    return ""


def _is_installed(package: str, archive: str, path: Sequence[str]) -> bool:
    """Whether a package of this interpreter has the modules of an archive, and not others."""
    found = PathFinder.find_spec(package, path)
    if found is None or found.origin is None:
        return False
    folder = Path(found.origin).parent
    spark = PathFinder.find_spec(_PACKAGES[0], path)
    # PySpark from PyPI brings the archives along.
    if spark and spark.origin and Path(spark.origin).parent in Path(archive).parents:
        return True
    return _has_same_modules(package, archive, folder)


def _has_same_modules(package: str, archive: str, folder: Path) -> bool:
    # An import of a few milliseconds, which the archives of PyPI's PySpark don't need.
    from zipfile import BadZipFile, ZipFile
    from zlib import crc32

    try:
        with ZipFile(archive) as packed:
            for each in packed.infolist():
                name = each.filename.removeprefix(f"{package}/")
                if not name.endswith(".py") or name.startswith(_NOT_COMPARED) or "/tests/" in name:
                    continue
                content = (folder / name).read_bytes()
                if (len(content), crc32(content)) != (each.file_size, each.CRC):
                    return False
    except (OSError, BadZipFile):
        return False
    return True
