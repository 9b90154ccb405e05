from __future__ import annotations

import marshal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lakelog
from lakelog.spark.workers.pyfiles import archive, compiled, ship


def test_the_archive_is_made_once_and_named_by_its_content() -> None:
    assert archive() is archive()
    assert archive().name.startswith("lakelog-")


def test_one_content_makes_one_archive_byte_by_byte() -> None:
    again = archive.__wrapped__()
    assert again != archive()
    assert again.name == archive().name
    assert again.read_bytes() == archive().read_bytes()


def test_one_source_makes_one_module_that_marks_no_references() -> None:
    source = b"def get(thing):\n    return thing.named_only_here\n"
    content = compiled(source, "m.py")
    assert compiled(source, "m.py") == content
    code = marshal.loads(content[16:])
    # From version 3 on marshal marks what has several references when it is written.
    assert marshal.dumps(code, 2) == content[16:] != marshal.dumps(code)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    assert namespace["get"](SimpleNamespace(named_only_here=7)) == 7


def test_threads_of_one_session_send_the_archive_once() -> None:
    class Session:
        sent: list[str]

        def __init__(self) -> None:
            self.sent = []

        def addArtifacts(self, path: str, pyfile: bool) -> None:  # noqa: N802
            self.sent.append(path)
            assert pyfile

    session: Any = Session()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ship, [session] * 16))
    assert session.sent == [str(archive())]


def test_the_archive_has_folders_sources_and_compiled_modules() -> None:
    with zipfile.ZipFile(archive()) as packed:
        names = set(packed.namelist())
    assert {"lakelog/", "lakelog/core/", "lakelog/spark/"} <= names
    sources = {name for name in names if name.endswith(".py")}
    assert "lakelog/core/delta_log.py" in sources
    assert {f"{name}c" for name in sources} <= names
    assert not any("__pycache__" in name or name.startswith("lakelog/contrib") for name in names)
    assert "lakelog/__init__.py" not in names


def test_lakelog_imports_from_the_archive_alone_and_without_orjson() -> None:
    ours = {str(Path(p).resolve()) for p in lakelog.__path__}
    elsewhere = [p for p in sys.path if str(Path(p or ".").resolve() / "lakelog") not in ours]
    code = (
        "import sys; sys.modules['orjson'] = None; "
        f"sys.path = {[str(archive()), *elsewhere]!r}; "
        "import lakelog.spark, lakelog.core.delta_log as m; "
        "print(m.__file__); print(sys.modules['orjson'].__doc__[:10])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    where, doc = done.stdout.splitlines()
    assert where.startswith(str(archive()))
    assert doc == "A stand-in"


def test_lakelog_that_was_imported_from_an_archive_makes_the_same_archive() -> None:
    """As after `spark-submit --py-files`."""
    code = (
        f"import sys; sys.path.insert(0, {str(archive())!r}); "
        "from lakelog.spark.workers import pyfiles; "
        "print(pyfiles.__file__); print(pyfiles.archive())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    where, made = done.stdout.splitlines()
    assert where.startswith(str(archive()))
    assert Path(made).name == archive().name
    assert Path(made).read_bytes() == archive().read_bytes()
