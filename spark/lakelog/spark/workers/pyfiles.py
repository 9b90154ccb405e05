"""lakelog as an archive that Spark's Python workers can import.

The archive holds directory entries, without which Python's zip importer does not find a namespace
package, and compiled modules next to the sources: a worker would otherwise compile some eighty
files each time one starts.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import marshal
import sys
import tempfile
import threading
import weakref
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PACKAGES = ("logstores", "core", "spark")
# PEP 552: the flags of a file that is identified by its source's hash, which is not checked.
_UNCHECKED_HASH = (1).to_bytes(4, "little")
# PythonStreamingSourceRunner.scala; the folder is that of files sent to a session of this name.
_OF_STREAMS = "streaming_job"
_shipped: weakref.WeakKeyDictionary[SparkSession, Path] = weakref.WeakKeyDictionary()
_given: weakref.WeakSet[SparkContext] = weakref.WeakSet()
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


def ship_to_streams(context: SparkContext) -> None:
    """Send lakelog to the processes that plan a stream's batches, too.

    They alone don't have what was sent to a session, but only what its context was given; and
    Spark has them look for that in another folder than the one where it is.

    Args:
        context: of a classic session.
    """
    from pyspark import SparkFiles

    with _shipping:
        if context in _given:
            return
        before = list(sys.path)
        context.addPyFile(str(archive()))
        # This process has lakelog already, and there is no second one for it to find.
        sys.path[:] = before
        looked_in = Path(SparkFiles.getRootDirectory(), _OF_STREAMS)
        looked_in.mkdir(exist_ok=True)
        (looked_in / archive().name).symlink_to(archive())
        _given.add(context)


@functools.cache
def archive() -> Path:
    """The archive of this process's lakelog; made once per process, in a temporary folder.

    It is also made where lakelog was itself imported from one, as of `spark-submit --py-files`.
    """
    contents = dict(sorted(_sources()))
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(name.encode() + b"\0" + content)
    folder = Path(tempfile.mkdtemp(prefix="lakelog-"))
    target = folder / f"lakelog-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.mkdir("lakelog")
        for parent in sorted({str(Path(name).parent) for name in contents}):
            packed.mkdir(parent)
        for name, content in contents.items():
            _pack(packed, name, content)
            if name.endswith(".py"):
                _pack(packed, name + "c", compiled(content, name))
    return target


def _pack(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    # Without the time, so that equal content makes an equal archive: Spark compares the bytes.
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(entry, content)


def _sources() -> Iterator[tuple[str, bytes]]:
    """Name in the archive, and content."""
    for package in _PACKAGES:
        yield from _below(files(f"lakelog.{package}"), f"lakelog/{package}")


def _below(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _below(each, f"{name}/{each.name}")
        elif not each.name.endswith(".pyc"):
            yield f"{name}/{each.name}", each.read_bytes()


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
