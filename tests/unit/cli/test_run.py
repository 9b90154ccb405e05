"""`lakelog run` as far as it needs no session: what it starts, and what Python imports then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

LAKELOG = str(Path(sys.executable).with_name("lakelog"))


def _run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LAKELOG, "run", *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_script_gets_its_arguments_and_gives_its_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(7)\n")
    done = _run(str(script), "--day", "1", "-m", "x")
    assert (done.returncode, done.stdout) == (7, "['--day', '1', '-m', 'x']\n")


def test_a_module_and_any_program_are_run_too(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("import sys\nprint('module', sys.argv[1:])\n")
    done = _run("-m", "jobs", "a", PYTHONPATH=str(tmp_path))
    assert done.stdout == "module ['a']\n", done.stderr
    done = _run(sys.executable, "-c", "import delta.tables as t; print(t.DeltaTable.__module__)")
    assert done.stdout == "lakelog.spark.table.delta_table\n", done.stderr


def test_delta_is_theirs_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("whose = 'theirs'\n")
    code = "import delta; print(delta.whose)"
    done = _run(sys.executable, "-c", code, PYTHONPATH=str(tmp_path))
    assert done.stdout == "theirs\n", done.stderr


def test_anothers_sitecustomize_is_still_imported(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.mark = 'theirs'\n")
    code = "import sys; print(sys.mark)"
    done = _run(sys.executable, "-c", code, PYTHONPATH=str(tmp_path))
    assert done.stdout == "theirs\n", done.stderr


def test_a_program_without_sessions_imports_nothing_of_ours() -> None:
    code = (
        "import sys; print(sorted(m for m in sys.modules if m.startswith(('lakelog.', 'pyspark'))))"
    )
    done = _run(sys.executable, "-c", code)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("no_such.py",), "there is no script no_such.py"),
        (("no_such_program",), "a module is named by -m no_such_program"),
        ((), "name a script, a program, or a module by -m"),
    ],
)
def test_what_is_not_there_is_named(args: tuple[str, ...], said: str) -> None:
    done = _run(*args)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_the_folder_is_printed_for_pythonpath() -> None:
    folder = _run("--path").stdout.strip()
    assert (Path(folder) / "sitecustomize.py").is_file()
