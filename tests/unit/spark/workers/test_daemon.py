"""The daemon that has imported what its workers need, and is forked all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells of the threads of C")

PRELOADED = """
import sys
from lakelog.spark.workers import daemon
assert "pyarrow" not in sys.modules and "pyspark" not in sys.modules
worker = sys.argv[1]
print(daemon._can_have_one_thread(worker), daemon.preload(worker))
print(*(name in sys.modules for name in (worker, "pyarrow.compute", "pandas")))
"""
# What it becomes, instead of becoming it.
BECOMES = """
import os, runpy, sys
from lakelog.spark.workers import daemon
os.execv = lambda _, command: sys.exit(f"exec {command[1:]}")
def run(name, **how):
    ours = [each for each in sys.modules if each.startswith("lakelog")]
    sys.exit(f"run {name} {'pyarrow' in sys.modules} {ours}")
runpy.run_module = run
if "threads" in sys.argv:
    real = daemon.preload
    def preload(worker):
        import threading
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return real(worker)
    daemon.preload = preload
daemon.main()
"""


def said(code: str, *arguments: str, **conf: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "OPENBLAS_", "JE_"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=kept | conf,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip()


@linux
@pytest.mark.parametrize(
    "worker", ["pyspark.worker", "pyspark.sql.worker.create_data_source", "no.such.worker"]
)
def test_what_is_imported_before_a_fork_starts_no_thread(worker: str) -> None:
    there = "True" if worker.startswith("pyspark") else "False"
    assert said(PRELOADED, worker, OMP_NUM_THREADS="1").split() == [
        "True", "True", there, "True", "False",
    ]  # fmt: skip


@linux
def test_tasks_that_may_have_threads_of_their_own_get_pysparks_daemon() -> None:
    assert said(BECOMES, "pyspark.worker", OMP_NUM_THREADS="4") == "run pyspark.daemon False []"
    assert said(BECOMES, "pyspark.worker") == "run pyspark.daemon False []"
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}
    assert said(BECOMES, "pyspark.worker", **threads) == "run pyspark.daemon False []"


@linux
def test_others_get_one_that_has_imported_what_they_need() -> None:
    assert said(BECOMES, "pyspark.worker", OMP_NUM_THREADS="1") == "run pyspark.daemon True []"
    assert said(BECOMES, "pyspark.sql.worker.create_data_source") == "run pyspark.daemon True []"


@linux
def test_a_process_with_another_thread_is_not_forked() -> None:
    command = said(BECOMES, "pyspark.worker", "threads", OMP_NUM_THREADS="1")
    assert command == "exec ['-m', 'pyspark.daemon', 'pyspark.worker', 'threads']"
