"""PySpark's daemon, once it has imported what the workers that it forks would each import.

A worker begins as a fork of the daemon and imports PySpark's half of its work, pyarrow and numpy:
0.25 s of CPU, where its task may take a hundredth of that. Imported before, they are there. lakelog
itself is not: the driver sends its own along, which may be of another version than the one here.

PySpark imports them only after the fork, because of threads: a fork has none but its own, and what
another one had locked stays locked. So nothing is imported here that starts a thread, or the daemon
is PySpark's own, as if there were no other.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import sys
from pathlib import Path
from typing import Final

_DAEMON: Final = "pyspark.daemon"
_TASKS: Final = "pyspark.worker"
_MODULES: Final = (
    "pyarrow.parquet", "pyarrow.compute", "pyarrow.fs",
    "orjson", "concurrent.futures.thread", "decimal", "hashlib", "secrets", "urllib.parse", "uuid",
)  # fmt: skip
"""What lakelog imports in a worker, and is not lakelog's."""
_ARROW: Final = "JE_ARROW_MALLOC_CONF"
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def main() -> None:
    """Be the daemon of the kind of worker that the first argument names."""
    if _can_have_one_thread(sys.argv[1]) and not preload(sys.argv[1]):
        # What has threads by now is not forked.
        os.execv(sys.executable, [sys.executable, "-m", _DAEMON, *sys.argv[1:]])
    # A worker finds all of lakelog in one place, the driver's or this one.
    for name in [each for each in sys.modules if each.partition(".")[0] == "lakelog"]:
        del sys.modules[name]
    runpy.run_module(_DAEMON, run_name="__main__", alter_sys=True)


def preload(worker: str) -> bool:
    """Import what a worker needs.

    Args:
        worker: PySpark's module for this kind of worker.

    Returns:
        Whether this process can be forked: it has no thread but this one.
    """
    # Arrow's jemalloc gives memory back in a thread that it starts as it is loaded.
    os.environ.setdefault(_ARROW, "background_thread:false")
    for name in (worker, *_MODULES):
        # What fails here fails in the worker that needs it, whose error Spark shows.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    return len(list(Path("/proc/self/task").iterdir())) == 1


def _can_have_one_thread(worker: str) -> bool:
    """Whether numpy, which pyarrow imports, may be configured to have no threads of its own.

    For tasks Spark says how many they may have: one, but where `spark.task.cpus` says otherwise.
    Its other processes compute nothing.
    """
    if not Path("/proc/self/task").is_dir():
        return False
    if worker != _TASKS:
        os.environ.setdefault(_THREADS[0], "1")
    said = [os.environ[name] for name in _THREADS if name in os.environ]
    return said[:1] == ["1"]


if __name__ == "__main__":
    main()
