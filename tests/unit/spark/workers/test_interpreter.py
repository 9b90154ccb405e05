"""`lakelog-python`: Spark's archives are left out where nothing is lost by it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakelog.spark.workers.interpreter import without_archives

pyspark = pytest.importorskip("pyspark")
PROGRAM = Path(sys.executable).with_name("lakelog-python")
ARCHIVES = sorted(map(str, Path(pyspark.__file__).parent.glob("python/lib/*.zip")))


def copied(folder: Path, **changed: str) -> list[str]:
    """The archives somewhere else, as a cluster has them; with another text of some modules."""
    copies = []
    for each in ARCHIVES:
        copy = folder / Path(each).name
        with zipfile.ZipFile(each) as known, zipfile.ZipFile(copy, "w") as made:
            for name in known.namelist():
                made.writestr(name, changed.get(name.replace("/", "_"), known.read(name)))
        copies.append(str(copy))
    return copies


def run(*arguments: str, path: str = "", typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


def test_archives_of_what_is_installed_are_left_out_and_nothing_else() -> None:
    assert len(ARCHIVES) == 2
    given = [*ARCHIVES, "/of/spark.jar", "/mine", "/mine/more.zip"]
    assert without_archives(given, [*given, *sys.path]) == given[2:]


@pytest.mark.parametrize("missing", [0, 1])
def test_one_archive_alone_stays(missing: int) -> None:
    given = [ARCHIVES[missing], "/mine"]
    assert without_archives(given, [*given, *sys.path]) == given


def test_archives_of_another_place_with_the_same_modules_are_left_out(tmp_path: Path) -> None:
    given = [*copied(tmp_path), "/mine"]
    assert without_archives(given, [*given, *sys.path]) == ["/mine"]


@pytest.mark.parametrize("module", ["pyspark/worker.py", "py4j/protocol.py", "pyspark/extra.py"])
def test_archives_with_another_module_stay(tmp_path: Path, module: str) -> None:
    given = copied(tmp_path, **{module.replace("/", "_"): "of a vendor"})
    if module.endswith("extra.py"):
        with zipfile.ZipFile(given[1], "a") as made:
            made.writestr(module, "of a vendor")
    assert without_archives(given, [*given, *sys.path]) == given


def test_what_is_no_archive_stays(tmp_path: Path) -> None:
    for name in ("pyspark.zip", "py4j-0-src.zip"):
        (tmp_path / name).write_text("nothing")
    given = [str(tmp_path / "pyspark.zip"), str(tmp_path / "py4j-0-src.zip")]
    assert without_archives(given, [*given, *sys.path]) == given
    gone = [f"{each}.zip" for each in given]
    assert without_archives(gone, [*gone, *sys.path]) == gone


def test_archives_stay_where_nothing_is_installed(tmp_path: Path) -> None:
    assert without_archives(ARCHIVES, [*ARCHIVES, str(tmp_path)]) == ARCHIVES


def test_it_is_the_interpreter() -> None:
    code = "import pyspark, sys; print(pyspark.__file__, sys.argv[1:], input(), sep=';'); exit(7)"
    done = run("-c", code, "a b", "-x", path=os.pathsep.join(ARCHIVES), typed="typed")
    assert done.stdout == f"{pyspark.__file__};['a b', '-x'];typed\n"
    assert done.returncode == 7


def test_without_a_path_none_is_set() -> None:
    done = run("-c", "import os; print(repr(os.environ.get('PYTHONPATH')))")
    assert done.stdout == "''\n"


def test_the_daemon_is_ours(tmp_path: Path) -> None:
    shadow = tmp_path / "sitecustomize.py"
    shadow.write_text(
        "import sys\nif sys.orig_argv[1] == '-m': print(sys.orig_argv[1:]) or sys.exit()"
    )
    done = run("-m", "pyspark.daemon", "pyspark.worker", path=str(tmp_path))
    assert "['-m', 'lakelog.spark.workers.daemon', 'pyspark.worker']" in done.stdout
