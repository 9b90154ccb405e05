"""What starting a server takes: a program, a free port, a health check, an end by process id."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from support import connect_port
from support.delta_spark import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

STEP_SECONDS = 900
START_SECONDS = 90.0
_GIVEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT = 10_000


class ServerUnavailableError(RuntimeError):
    """A server can't be had here; the text says what is missing."""


def need_program(name: str, why: str) -> str:
    """The path of a program on the PATH.

    Raises:
        ServerUnavailableError: it is not there.
    """
    found = shutil.which(name)
    if found is None:
        raise ServerUnavailableError(f"no `{name}` on the PATH, which {why} needs")
    return found


def run_step(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    seconds: float = STEP_SECONDS,
) -> None:
    """Run one step of an installation, bounded in time.

    Raises:
        ServerUnavailableError: it failed; the text ends with what it printed.
    """
    full = {**os.environ, **(env or {})}
    try:
        subprocess.run(argv, cwd=cwd, env=full, check=True, timeout=seconds, capture_output=True)
    except subprocess.CalledProcessError as error:
        tail = (error.stderr or error.stdout or b"").decode(errors="replace")[-800:]
        raise ServerUnavailableError(f"{' '.join(argv[:4])} … failed:\n{tail}") from error
    except subprocess.TimeoutExpired as error:
        raise ServerUnavailableError(f"{' '.join(argv[:4])} … did not end in time") from error


def built(name: str, build: Callable[[Path], None]) -> Path:
    """A folder of the cache, made once: `build` fills a new folder, which then gets the name.

    Processes that ask at once wait for the first. A build that fails leaves nothing.

    Args:
        name: with the version in it, so that a new version is built anew: `minio-20260212`.
        build: fills the folder that it is given.
    """
    servers = cache_folder() / "servers"
    servers.mkdir(parents=True, exist_ok=True)
    target = servers / name
    with (servers / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            draft = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=servers))
            try:
                build(draft)
                draft.rename(target)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
    return target


def free_port() -> int:
    """A port of 127.0.0.1 that is free, and that nobody is given who asks for any port.

    Between this and the start of a server the other tests open a thousand connections and servers
    of their own, whose ports come from the system's range.
    """
    with contextlib.suppress(OSError, ValueError):
        first = int(_GIVEN_PORTS.read_text().split()[0])
        while first - _LOWEST_PORT > 1000:
            with socket.socket() as probe, contextlib.suppress(OSError):
                port = _LOWEST_PORT + secrets.randbelow(first - _LOWEST_PORT)
                if port == connect_port.PORT:
                    continue
                probe.bind(("127.0.0.1", port))
                return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str, accepted: Callable[[int], bool] = lambda status: status < 600) -> bool:
    """Whether a URL answers over HTTP with an accepted status."""
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return accepted(reply.status)
    except urllib.error.HTTPError as error:
        return accepted(error.code)
    except OSError:
        return False


@contextlib.contextmanager
def running(
    argv: Sequence[str],
    *,
    ready: Callable[[], bool] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    hold_stdin: bool = False,
) -> Iterator[subprocess.Popen[str]]:
    """Run a server until the block ends; end it by its process id.

    Args:
        argv: the command.
        ready: asked until it says yes; without it, see `ready_line`.
        env: added to the environment.
        cwd: where it runs.
        hold_stdin: keep its standard input open until the end, for servers that stop at its end;
            its standard output is then a pipe.

    Raises:
        ServerUnavailableError: it ended, or was not ready in time; with what it printed.
    """
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if hold_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE if hold_stdin else log,
            stderr=log,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            text=True,
        )
        try:
            if ready is not None:
                _wait(process, ready, log)
            yield process
        finally:
            _end(process)


def ready_line(process: subprocess.Popen[str], prefix: str) -> str:
    """The first line of a server's output that begins so.

    Raises:
        ServerUnavailableError: the output ended before.
    """
    assert process.stdout is not None  # the caller held its stdin
    for line in process.stdout:
        if line.startswith(prefix):
            return line
    raise ServerUnavailableError(f"the server ended with {process.wait(10)} before it was ready")


def _wait(process: subprocess.Popen[str], ready: Callable[[], bool], log: object) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            log.seek(0)  # type: ignore[attr-defined]
            tail = log.read()[-1500:]  # type: ignore[attr-defined]
            state = f"ended with {process.returncode}" if process.poll() is not None else "is slow"
            raise ServerUnavailableError(f"the server {state}:\n{tail}")
        time.sleep(0.02)


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
    if process.stdout is not None:
        process.stdout.close()
