"""A system that is not POSIX: everything is imported there, and what can't work says so by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOTS = ("logstores", "core", "spark", "cli", "contrib")
# What Python has on Linux and lacks on Windows, of what could be of use here.
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": {
        "chown", "chroot", "copy_file_range", "fchmod", "fork", "forkpty", "getegid", "geteuid",
        "getgid", "getloadavg", "getpgid", "getpriority", "getuid", "killpg", "mkfifo", "nice",
        "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOATIME", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC",
        "O_TMPFILE", "posix_fallocate", "posix_fadvise", "posix_spawn", "pread", "preadv",
        "pwrite", "register_at_fork", "sched_getaffinity", "sendfile", "setsid", "statvfs", "sync",
        "sysconf", "uname", "wait", "wait4", "waitid", "WNOHANG",
    },
    "signal": {"alarm", "pause", "setitimer", "SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2"},
    "socket": {"AF_UNIX", "SO_REUSEPORT", "socketpair"},
    "time": {"clock_gettime", "tzset"},
}  # fmt: skip
OTHER_SYSTEM = f"""
import importlib, os, pkgutil, signal, socket, sys, time
import click, rich.console, pyarrow.parquet, pyarrow.dataset, pyspark.sql, hypothesis, pytest
import lakelog.logstores as logstores
import logging.handlers, multiprocessing, concurrent.futures, tempfile, socketserver, pydoc

for module, names in {NAMES!r}.items():
    for name in names:
        vars(sys.modules[module]).pop(name, None)

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {MODULES!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

# The modules of before stay usable for Python's own libraries; lakelog's begin again.
for name in [*sys.modules]:
    if name in {MODULES!r} or name.split(".")[0] == "lakelog":
        del sys.modules[name]
sys.meta_path.insert(0, Missing())
"""
IMPORTS = """
failed = []
for root in sys.argv[1].split():
    package = importlib.import_module(f"lakelog.{root}")
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if each.name.endswith("workers.daemon"):  # Spark's, which forks and is not started there
            continue
        try:
            importlib.import_module(each.name)
        except Exception as error:
            failed.append(f"{each.name}: {type(error).__name__}: {error}")
print(*failed, sep="\\n")
"""
USES = """
from lakelog.core import read_arrow, write_arrow
from lakelog.logstores import UnsafeLogStoreError
from lakelog.logstores.locks import host_lock
from lakelog.logstores.service import LogStoreService

write_arrow("memory:///t", {"id": [1, 2]})
assert read_arrow("memory:///t", where="id > 1").num_rows == 1

def locked():
    with host_lock("t"):
        pass

for use in (lambda: write_arrow(sys.argv[2] + "/t", {"id": [1]}), locked, LogStoreService):
    try:
        use()
    except UnsafeLogStoreError as error:
        print(error)
"""


def _elsewhere(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OTHER_SYSTEM + code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_every_module_is_imported_on_a_system_that_is_not_posix() -> None:
    assert _elsewhere(IMPORTS, " ".join(ROOTS)) == ""


def test_what_needs_posix_says_so_and_the_rest_works(tmp_path: Path) -> None:
    disk, lock, service = _elsewhere(USES, "", str(tmp_path)).splitlines()
    assert disk.startswith("a table on the local disk, whose folders are flushed can't be had")
    assert "os.O_DIRECTORY" in disk
    assert lock.startswith("a lock against the other processes of a host can't be had")
    assert service.startswith("the LogStore service, which listens on a Unix socket, can't be had")
    assert "socket.AF_UNIX" in service
    assert all("Use Linux, macOS or WSL" in line for line in (disk, lock, service))
    assert list(tmp_path.iterdir()) == []


def _posix_only(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                found |= {each.name for each in node.names} & MODULES
            case ast.ImportFrom():
                found |= {str(node.module)} & MODULES
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in NAMES.get(
                module, ()
            ):
                found.add(f"{module}.{name}")
    return found


# Who uses it is behind `lakelog.logstores.systems.need`, or has another way.
KNOWN = {
    # Python makes one of two TCP sockets on Windows.
    "cli/interruption.py": {"socket.socketpair"},
    # A lock file, after `host_lock` has asked.
    "logstores/locks.py": {"fcntl", "os.getuid", "os.O_CLOEXEC", "os.O_NOFOLLOW"},
    # A system that does not say counts as one with little memory.
    "logstores/limits.py": {"os.sysconf"},
    # `LocalLogStore` asks when it is made.
    "logstores/local/file_creation.py": {"fcntl", "os.O_DIRECTORY"},
    "core/portable/syncing.py": {"fcntl"},
    # `HostCommits` asks when it is made.
    "core/transaction/host_queue.py": {"os.O_CLOEXEC", "os.O_NONBLOCK", "os.mkfifo"},
    # `LogStoreService` asks when it is made.
    "logstores/service/server.py": {"socket.AF_UNIX"},
    "logstores/service/socket_folder.py": {"os.getuid", "socket.AF_UNIX"},
    # The kit's own processes, after `Checks.shared_with_processes` has asked.
    "logstores/conformance/checks/crashes.py": {"signal.SIGKILL"},
    "logstores/conformance/processes/forked.py": {"os.fork", "signal.SIGKILL"},
    "logstores/conformance/processes/victims.py": {"os.fork", "signal.SIGKILL", "signal.alarm"},
}


@pytest.mark.parametrize("root", ROOTS)
def test_nothing_else_uses_what_only_posix_has(root: str) -> None:
    folder = REPOSITORY / root / "lakelog"
    found = {
        str(path.relative_to(folder)): names
        for path in sorted(folder.rglob("*.py"))
        if (names := _posix_only(path))
    }
    assert found == {p: names for p, names in KNOWN.items() if p.split("/")[0] == root}
