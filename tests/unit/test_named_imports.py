"""Whatever a file of the project tells somebody to import is there: code in strings, docs, scripts.

Type checkers see the imports of modules. They do not see a script that a test writes down for
another process, nor a snippet of the docs, and both outlive the move of a module unseen.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import warnings
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_IMPORT = re.compile(r"from (lakelog\.[\w.]+) import ((?:\w+(?: as \w+)?(?:, )?)+)")
_WRONG_ON_PURPOSE = {"tests/unit/test_named_imports.py", "CHANGELOG.md"}


def _is_there(module: str, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            if hasattr(importlib.import_module(module), name):
                return True
            importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            return False
    return True


def _listed(text: str) -> list[tuple[str, str]]:
    return [
        (module, name.split(" as ")[0].strip())
        for module, names in _IMPORT.findall(text)
        for name in names.split(",")
        if name.strip()
    ]


def test_every_import_that_is_written_anywhere_works() -> None:
    argv = ["git", "ls-files", "*.py", "*.md", "*.toml", "*.sh", "Makefile"]
    files = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    wrong = [
        f"{file}: from {module} import {name}"
        for file in files.splitlines()
        if file not in _WRONG_ON_PURPOSE
        for module, name in _listed((_ROOT / file).read_text(encoding="utf-8"))
        if not _is_there(module, name)
    ]
    assert not wrong


def test_a_moved_module_is_found_out() -> None:
    script = '"from lakelog.logstores import S3ConditionalLogStore, _s3_sdk as sdk\\n"'
    listed = _listed(script)
    assert listed == [
        ("lakelog.logstores", "S3ConditionalLogStore"),
        ("lakelog.logstores", "_s3_sdk"),
    ]
    assert [_is_there(*one) for one in listed] == [True, False]
