from __future__ import annotations

import subprocess
import sys
import zipfile

from lakelog.spark._pyfiles import archive


def test_the_archive_is_made_once_and_named_by_its_content() -> None:
    assert archive() is archive()
    assert archive().name.startswith("lakelog-")


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
    code = (
        "import sys; sys.modules['orjson'] = None; "
        f"sys.path = [{str(archive())!r}, *[p for p in {sys.path!r} if 'lakelog' not in p "
        "and not p.endswith(('/core', '/spark', '/logstores', '/contrib'))]]; "
        "import lakelog.spark, lakelog.core.delta_log as m; "
        "print(m.__file__); print(sys.modules['orjson'].__doc__[:10])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    where, doc = done.stdout.splitlines()
    assert where.startswith(str(archive()))
    assert doc == "`orjson` f"
