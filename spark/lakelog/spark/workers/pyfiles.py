"""lakelog as an archive that Spark's Python workers can import.

The archive holds directory entries, without which Python's zip importer does not find a namespace
package, and compiled modules next to the sources: a worker would otherwise compile some eighty
files each time one starts.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import marshal
import tempfile
import threading
import weakref
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("logstores", "core", "spark")
# PEP 552: the flags of a file that is identified by its source's hash, which is not checked.
_UNCHECKED_HASH = (1).to_bytes(4, "little")
_shipped: weakref.WeakKeyDictionary[SparkSession, Path] = weakref.WeakKeyDictionary()
_shipping = threading.Lock()
"""Spark refuses the same archive twice, which threads of one session would send."""


def ship(spark: SparkSession) -> None:
    """Send lakelog to the session's Python workers, its planner daemons included.

    Holds for data sources and functions that are registered afterwards. Does nothing where the
    session has them.

    Args:
        spark: a session, classic or Connect.
    """
    with _shipping:
        if _shipped.get(spark) != archive():
            spark.addArtifacts(str(archive()), pyfile=True)
            _shipped[spark] = archive()


@functools.cache
def archive() -> Path:
    """The archive of this process's lakelog; made once per process, in a temporary folder.

    Raises:
        FileNotFoundError: lakelog was itself imported from an archive; it has no files to pack.
    """
    files = dict(_sources())
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + path.read_bytes())
    folder = Path(tempfile.mkdtemp(prefix="lakelog-"))
    target = folder / f"lakelog-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.mkdir("lakelog")
        for parent in sorted({str(Path(name).parent) for name in files}):
            packed.mkdir(parent)
        for name, path in files.items():
            content = path.read_bytes()
            _pack(packed, name, content)
            if path.suffix == ".py":
                _pack(packed, name + "c", compiled(content, str(path)))
    return target


def _pack(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    # Without the time, so that equal content makes an equal archive: Spark compares the bytes.
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(entry, content)


def _sources() -> list[tuple[str, Path]]:
    """Name in the archive -> file, sorted."""
    found = []
    for package in _PACKAGES:
        module = importlib.import_module(f"lakelog.{package}")
        root = Path(str(module.__file__)).parent
        if not root.is_dir():
            raise FileNotFoundError(
                f"lakelog was imported from {root}, which is not a folder; install it as a "
                "package where Spark's driver runs"
            )
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.append((f"lakelog/{package}/{path.relative_to(root).as_posix()}", path))
    return found


def compiled(source: bytes, filename: str) -> bytes:
    """A module's source as the content of its `.pyc`: the same bytes each time.

    Args:
        source: the text of the file.
        filename: what tracebacks say.
    """
    # Never checked against the source's time, which an archive keeps to two seconds only. An
    # interpreter of another version ignores it and compiles the source.
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(source)
    code = compile(source, filename, "exec", dont_inherit=True)
    # From version 3 on marshal marks objects with several references, which is not a property of
    # the source: an archive of the same name was seen to have other bytes.
    return head + marshal.dumps(code, 2)
