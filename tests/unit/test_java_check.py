"""`make demo` says what is missing before it does anything else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "java_check.sh"


def _tools(folder: Path) -> Path:
    """A PATH with the few programs that the script needs, and no Java."""
    for name in ("sh", "uname", "id", "printf", "cat"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def _run(
    path: Path, release: Path, java_home: str | None = None
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(path), "OS_RELEASE": str(release)}
    if java_home is not None:
        env["JAVA_HOME"] = java_home
    return subprocess.run(
        [shutil.which("sh") or "/bin/sh", str(SCRIPT)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=debian\nVERSION_ID=12\n", "apt-get install -y openjdk-17-jre-headless"),
        ("ID=debian\nVERSION_ID=13\n", "apt-get install -y openjdk-21-jre-headless"),
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install -y openjdk-17-jre-headless"),
        ("ID=fedora\n", "dnf install -y java-21-openjdk-headless"),
        ("ID=alpine\n", "apk add openjdk17-jre-headless"),
        ("ID=plan9\n", "https://adoptium.net/"),
    ],
)
@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the distributions are Linux's")
def test_without_java_the_platforms_own_command_is_named(
    tmp_path: Path, release: str, command: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "os-release").write_text(release)
    done = _run(_tools(tmp_path / "bin"), tmp_path / "os-release")
    assert done.returncode == 1
    assert command in done.stderr
    assert "Nothing has been changed" in done.stderr


def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    done = _run(_tools(tmp_path / "bin"), tmp_path / "none")
    assert done.returncode == 1
    assert "is Java 8" in done.stderr


def test_a_java_home_without_java_is_refused_even_with_java_on_the_path(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    assert _run(_tools(tmp_path / "bin"), tmp_path / "none").returncode == 0
    done = _run(tmp_path / "bin", tmp_path / "none", java_home=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "JAVA_HOME" in done.stderr
