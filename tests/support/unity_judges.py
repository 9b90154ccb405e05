"""Clients of Unity Catalog that are programs of their own, which append rows and read them.

A program gets the server's URL, a token, and the three parts of a table's name; the table has the
one column `id long`. Each line that it is given is a command, and it answers with a line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from support.servers._service import built, need_program, run_step
from support.tools import tool
from support.venvs import kept_environment

if TYPE_CHECKING:
    from support.unity_server import UnityServer

DUCKDB: Final = "1.5.5"
"""The newest that has these extensions in the index."""
_EXTENSIONS: Final = ("httpfs", "delta", "unity-catalog")
_DUCKDB_PROGRAM: Final = Path(__file__).with_name("duckdb_judge.py")

_KERNEL_SOURCES: Final = Path(__file__).with_name("rust") / "kernel_judge"
_KERNEL_SECONDS: Final = 1800
"""Ten minutes of CPU time, on a machine that may be busy."""


class JudgeError(Exception):
    """What a program said in place of an answer."""


@tool("duckdb_unity")
def duckdb_judge() -> tuple[str, ...]:
    """DuckDB with its extension for Unity Catalog, in an environment of its own.

    Raises:
        PeerUnavailableError: a download failed.
    """
    wanted = [f"duckdb-extension-{name}=={DUCKDB}" for name in _EXTENSIONS]
    python = kept_environment(f"duckdb-{DUCKDB}", f"duckdb=={DUCKDB}", *wanted)
    return str(python), str(_DUCKDB_PROGRAM)


@tool("kernel_unity")
def kernel_judge() -> tuple[str, ...]:
    """delta-kernel-rs by its crates for Unity Catalog, built once into the cache.

    Raises:
        ServerUnavailableError: Rust is missing, or the build failed.
    """
    sources = (path for path in sorted(_KERNEL_SOURCES.rglob("*")) if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return (str(built(f"kernel-judge-{digest}", _build_kernel) / "kernel_judge"),)


def _build_kernel(folder: Path) -> None:
    cargo = need_program("cargo", "building delta-kernel-rs")
    with tempfile.TemporaryDirectory(prefix="kernel-judge-") as target:
        command = [cargo, "build", "--locked", "--target-dir", target]
        run_step(command, cwd=_KERNEL_SOURCES, seconds=_KERNEL_SECONDS)
        shutil.copy2(Path(target) / "debug" / "kernel_judge", folder)


class Judge:
    """One such program, begun; any thread may use it, one at a time.

    Args:
        command: that begins it.
        server: that it is a client of.
        table: by its name.
        url: what it reaches the server by, where that is not the server's own.
    """

    def __init__(
        self, command: tuple[str, ...], server: UnityServer, table: str, url: str | None = None
    ) -> None:
        token = server.token or "none"
        self._process = process = subprocess.Popen(
            [*command, url or server.url, token, *table.split(".")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    def append(self, number: int) -> None:
        """Commit one row; a lost race is run again."""
        self._ask(f"append {number}")

    def ids(self) -> list[int]:
        """The ids of all rows, sorted."""
        return sorted(self._ask("rows"))

    def _ask(self, command: str) -> Any:
        self._in.write(f"{command}\n")
        line = self._out.readline()
        if not line:
            raise JudgeError(f"{command}: it ended with {self._process.wait(60)}")
        answer = json.loads(line)
        if "error" in answer:
            raise JudgeError(f"{command}: {answer['error']}")
        return answer["done"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._out.close()
