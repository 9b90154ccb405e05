"""`lakelog-python`: the interpreter for Spark's Python processes that begins sooner.

    PYSPARK_PYTHON=lakelog-python python job.py

It is the Python that lakelog is installed in, with two differences. Spark puts its own archives,
`pyspark.zip` and Py4J's, before all else on the path of each process that it starts, and Python
compiles what it imports from an archive anew in each of them: where the same versions are installed
they are left out, and the installed modules, which were compiled once, are used. And the daemon,
which Spark forks for each worker, is `lakelog.spark.workers.daemon`.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from zipimport import ZipImportError, zipimporter

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_PACKAGES: Final = ("pyspark", "py4j")
_DAEMON: Final = ["-m", "pyspark.daemon"]
_OURS: Final = ["-m", "lakelog.spark.workers.daemon"]


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
    """A path without Spark's archives, if this interpreter has the same versions of their packages.

    Args:
        given: what Spark set, in its order.
        path: where this interpreter looks for modules.
    """
    archives = [each for each in given if each.endswith(".zip") and _version_in(each)]
    rest = [each for each in path if each not in archives]
    installed = {name: _version_of(name, rest) for name in _PACKAGES}
    theirs = dict.fromkeys(_PACKAGES, "") | dict(filter(None, map(_version_in, archives)))
    if not archives or installed != theirs:
        return list(given)
    return [each for each in given if each not in archives]


def _version_in(archive: str) -> tuple[str, str] | None:
    """The package of Spark's in an archive, and the text of the module that tells its version."""
    for name in _PACKAGES:
        try:
            return name, zipimporter(archive).get_data(f"{name}/version.py").decode()
        except (ZipImportError, OSError):
            continue
    return None


def _version_of(name: str, path: Sequence[str]) -> str | None:
    """The same of a package that is installed."""
    found = PathFinder.find_spec(name, path)
    try:
        return Path(str(found and found.origin)).with_name("version.py").read_text()
    except OSError:
        return None
