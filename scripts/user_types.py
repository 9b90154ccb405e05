"""Check what a user's type checker sees of lakelog, and how complete its types are.

What is checked are the scripts of tests/support/typed_scripts, beside an installed wheel, once with
pyarrow-stubs and once without, as pyarrow itself has no types: pyright in its strict mode finds
nothing. Without the stubs the functions called `arrow` may have findings, because the values there
are pyarrow's own, and so may a store's author. With them mypy --strict finds nothing either, and
`pyright --verifytypes` no public name whose type is not written down.

Usage: scripts/user_types.py; the stubs are kept in .cache, and it takes 40 s of one core.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("LAKELOG_CACHE", ROOT / ".cache")).resolve()
SCRIPTS = ROOT / "tests" / "support" / "typed_scripts"
BIN = Path(sys.executable).parent
PACKAGES = ("logstores", "core", "spark", "cli")
STORE = "own_store.py"
"""Has types of pyarrow in its signatures."""


def main() -> int:
    """Check both environments, and write what is wrong.

    Returns:
        The exit code.
    """
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        scripts = [base / each.name for each in SCRIPTS.glob("*.py")]
        for each in scripts:
            each.write_text((SCRIPTS / each.name).read_text())
        wheel = _wheel(base)

        home = _environment(base / "with-stubs", wheel, _stubs())
        problems += _strict(base, home, scripts)
        problems += _mypy(base, home, scripts)
        for package in PACKAGES:
            problems += _incomplete(base, home, f"lakelog.{package}")

        home = _environment(base / "without-stubs", wheel)
        found = _strict(base, home, [each for each in scripts if each.name != STORE])
        allowed = {f"{each.name}:{line}:" for each in scripts for line in _of_arrow(each)}
        problems += [f"no stubs: {each}" for each in found if each.split(" ")[0] not in allowed]
    sys.stdout.writelines(f"{each}\n" for each in problems)
    sys.stdout.write(f"types as users see them: {len(problems)} problems\n")
    return 1 if problems else 0


def _wheel(base: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(base)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(base.glob("*.whl"))


def _stubs() -> Path:
    """The folder of the stubs, in the release that pyproject.toml names."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    (wanted,) = groups["user-types"]
    folder = CACHE / wanted.replace("==", "-")
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=CACHE)
        subprocess.run([*pip, "--target", fresh, wanted], check=True)
        Path(fresh).rename(folder)
    return folder


def _environment(home: Path, wheel: Path, stubs: Path | None = None) -> Path:
    """A virtual environment with the wheel, and all else from that of this process."""
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    lines = [sysconfig.get_path("purelib"), *([str(stubs)] if stubs else [])]
    (packages / "others.pth").write_text("\n".join(lines) + "\n")
    return home


def _pyright(base: Path, home: Path, *arguments: str) -> dict[str, Any]:
    """What pyright finds; it looks for packages where the first `python` of the PATH does."""
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(BIN / "pyright"), *arguments, "--outputjson"],
        cwd=base,
        env={**os.environ, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _strict(base: Path, home: Path, scripts: list[Path]) -> list[str]:
    """What pyright's strict mode finds, as `script.py:7: …`."""
    conf = {"typeCheckingMode": "strict", "include": [each.name for each in scripts]}
    (base / "pyrightconfig.json").write_text(json.dumps(conf))
    found = _pyright(base, home, "--project", str(base))
    assert found["summary"]["filesAnalyzed"] == len(scripts), found["summary"]
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']} "
        f"({each.get('rule')})"
        for each in found["generalDiagnostics"]
    ]


def _of_arrow(file: Path) -> set[int]:
    """The lines of a script on which values are pyarrow's own."""
    return {
        line
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "arrow"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _mypy(base: Path, home: Path, scripts: list[Path]) -> list[str]:
    done = subprocess.run(
        [
            *(str(BIN / "mypy"), "--strict", "--python-executable", str(home / "bin" / "python")),
            *("--cache-dir", str(base / ".mypy_cache"), "--no-error-summary"),
            *(each.name for each in scripts),
        ],
        cwd=base,
        check=False,
        capture_output=True,
        text=True,
    )
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


def _incomplete(base: Path, home: Path, package: str) -> list[str]:
    """The public names of a package whose types are not written down, or known in part."""
    found = _pyright(base, home, "--verifytypes", package, "--ignoreexternal")["typeCompleteness"]
    if not found["symbols"]:
        return [f"{package}: pyright does not find it, or not its py.typed"]
    return [
        f"{each['name']}: {said['message']}"
        for each in found["symbols"]
        if each["isExported"] and (not each["isTypeKnown"] or each["isTypeAmbiguous"])
        for said in each["diagnostics"]
    ]


if __name__ == "__main__":
    sys.exit(main())
