"""File systems sent to Spark's workers, which can report a module that is missing there.

A file system that is written in Python is pickled by the names of its classes. A worker that can't
import one of them would end with a bare `ModuleNotFoundError` out of PySpark's own code.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSystemHandler, PyFileSystem

from lakelog.logstores.errors import LogStoreClassError
from lakelog.spark.workers.marked_errors import marked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyarrow.fs import FileSystem


def for_workers(filesystem: FileSystem) -> FileSystem:
    """The same file system, to be pickled and sent to Spark's workers.

    There `LogStoreClassError` says which module is missing, and how to send it along.

    Args:
        filesystem: a store's. One that Arrow has in C++ is given back as it is.
    """
    if not isinstance(filesystem, PyFileSystem):
        return filesystem
    return PyFileSystem(_Sent(filesystem.handler))


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs)

    return method


class _Handler(FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """Passes everything on to `inner`; is `inner` itself where it arrives."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, bytes]]:
        from pyspark import cloudpickle

        cls = type(self.inner)
        pickled = cloudpickle.dumps(self.inner)  # type: ignore[no-untyped-call]  # PySpark
        return _arrived, (f"{cls.__module__}.{cls.__qualname__}", pickled)


_Sent: Any = type(
    "_Sent",
    (_Handler,),
    {name: _passed_on(name) for name in FileSystemHandler.__abstractmethods__},
)


def _arrived(name: str, pickled: bytes) -> Any:
    """The handler, on a worker.

    Raises:
        RuntimeError: it can't be imported; `unwrap_error` makes a `LogStoreClassError` of it.
    """
    with marked():
        try:
            return pickle.loads(pickled)
        except (ImportError, AttributeError) as exc:
            raise LogStoreClassError(
                f"the file system {name} of the table's store can't be imported on Spark's workers "
                f"({type(exc).__name__}: {exc}). Install its package on every worker, or send it "
                "along: spark-submit --py-files, SparkContext.addPyFile, or on Spark Connect "
                "spark.addArtifacts(path, pyfile=True)."
            ) from exc
