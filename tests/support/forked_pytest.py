"""Runs of pytest beside the one that asks for them, each by a fork of one process.

What all of them import, pytest, its plugins and Arrow, takes longer than what such a run does. The
process imports that once, and nothing of the tests' own: what these read of the environment as they
are imported they read in each run.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_TESTS: Final = Path(__file__).parents[1]
_IMPORTED: Final = (
    "_pytest.assertion.rewrite",
    "hypothesis.strategies",
    "lakelog.core.dml.arrow_write",
    "lakelog.core.engine",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pytest",
)


class Ended(NamedTuple):
    """A run."""

    returncode: int
    stdout: str


class ForkedPytest:
    """The process that is forked; `tests/` is where its runs import from."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-m", "support.forked_pytest"],
            cwd=_TESTS,
            env={**os.environ, "PYTHONPATH": str(_TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, arguments: list[str], env: Mapping[str, str]) -> Ended:
        """A run with these arguments in a folder, which gets its output, and this environment."""
        asked = {"folder": str(folder), "arguments": arguments, "env": dict(env)}
        self._stream(self._process.stdin).write(json.dumps(asked) + "\n")
        self._stream(self._process.stdin).flush()
        answer = self._stream(self._process.stdout).readline()
        assert answer, "the process has ended"
        return Ended(int(answer), (folder / "output").read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream(self._process.stdin).close()
        self._process.wait()
        self._stream(self._process.stdout).close()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def _main() -> None:
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):  # pandas need not be there
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(asked)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(asked: dict[str, object]) -> None:
    """Be such a run, and end with it."""
    status = 99
    try:
        folder = str(asked["folder"])
        os.chdir(folder)
        env, arguments = asked["env"], asked["arguments"]
        assert isinstance(env, dict)
        assert isinstance(arguments, list)
        os.environ.clear()
        os.environ.update(env)
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # A test that is written anew within a second, as long as before, would be the old one: what
        # is compiled is known by the time in seconds and the length.
        sys.dont_write_bytecode = True
        import pytest

        status = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _main()
