"""Enables every Spark session of a program, `delta.tables` included, without a changed line.

Python imports a module of this name when it starts, if this folder is on `PYTHONPATH`: `lakelog
run` puts it there, and `lakelog run --path` prints it. Spark's workers inherit it, so nothing of
lakelog or PySpark is imported here: only the classes that make sessions are watched for.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # as type checkers know it, without the import
if TYPE_CHECKING:
    from typing import Any

_SESSIONS = ("pyspark.sql.session", "pyspark.sql.connect.session")
# By os.path, since pathlib and typing would be most of what each start of Python costs.
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


class _Finder:
    """Finds PySpark's session modules where they are, and `delta` where no other finder does."""

    installing = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in _SESSIONS:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _SessionLoader(spec.loader)  # type: ignore[assignment]  # see `_HERE`
            return spec
        if name != "delta" or self.installing or PathFinder.find_spec(name, path, target):
            return None
        loader: Any = _DeltaLoader(self)
        return ModuleSpec(name, loader, is_package=True)


class _SessionLoader:
    """Loads a module as its own loader does, and has its builder enable what it gives back."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._inner.exec_module(module)
        builder = module.SparkSession.Builder
        for name in ("getOrCreate", "create"):
            if hasattr(builder, name):
                setattr(builder, name, _enabling(getattr(builder, name)))


class _DeltaLoader:
    """`import delta` gives lakelog's classes under delta-spark's names."""

    def __init__(self, finder: _Finder) -> None:
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> Any:
        from lakelog.spark.compat import install

        # It looks whether somebody else has a package of that name.
        self._finder.installing = True
        try:
            install()
        finally:
            self._finder.installing = False
        return sys.modules[spec.name]

    def exec_module(self, module: Any) -> None:
        """Nothing is left to do."""


def _enabling(make: Any) -> Any:
    import functools

    @functools.wraps(make)
    def made(self: Any) -> Any:
        from lakelog.spark.compat import without_confs_of_the_jars
        from lakelog.spark.format.enable import enable

        spark = make(without_confs_of_the_jars(self))
        enable(spark)
        return spark

    return made


def _load_the_next() -> None:
    """The module of this name that Python would have imported without this one."""
    others = [each for each in sys.path if os.path.abspath(each) != _HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        import importlib.util

        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _Finder())
_load_the_next()
