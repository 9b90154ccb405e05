"""Make all that a release is, except for its upload: `make release URL=https://…`.

From the commit that is checked out, into dist/: the sdist and the wheel, made twice and compared;
notes out of CHANGELOG.md, an SBOM, the licences of what is installed along, a recipe for conda, and
digests. Then each extra of the wheel is used on each Python (`release_smoke.py`).

Where the project lives is said by variables, because a clone does not know it:

    URL     of the repository; without it this is a rehearsal, whose links lead nowhere
    FILES   what a file of this release is found under; URL/blob/v<version> if not given
    DOCS    of the documentation; FILES/docs/index.md if not given
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from environments import environment
from interpreters import interpreter, minors
from release_smoke import smoke, table

REPOSITORY = Path(__file__).parents[1]
NOWHERE = "https://lakelog.invalid"
"""Where links lead in a rehearsal; no such host can be (RFC 2606)."""
MOST_BYTES = 2_000_000
JAR = "lakelog/logstores/service/lakelog-bridge.jar"
_LINK = re.compile(r"(\]\()([^)#\s:]+)([^)\s]*\))")
# What the README says of a package that no index has yet.
_ONCE_RELEASED = (
    (" It is not on PyPI yet, so install it\nfrom a clone, with", " Install it\nwith"),
    ("pip install '.[", "pip install 'lakelog["),
)


def main() -> int:
    """Make the release; 1 if a use of it failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", default=NOWHERE)
    parser.add_argument("--files")
    parser.add_argument("--docs")
    parser.add_argument("--to", type=Path, default=REPOSITORY / "dist", help="a new folder")
    parser.add_argument("--pythons", default=" ".join(minors()), help="minor versions to try it on")
    options = parser.parse_args()
    version = _pyproject()["project"]["version"]
    files = options.files or f"{options.url}/blob/v{version}"
    urls = {
        "Repository": options.url,
        "Documentation": options.docs or f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{options.url}/issues",
    }
    pythons = options.pythons.split()
    for minor in pythons:
        interpreter(minor)  # one that is not there is said now

    target, usual = options.to.resolve(), REPOSITORY / "dist"
    if target != usual and target.exists():
        raise SystemExit(f"{target} is there already, and only {usual} is replaced: name a new one")
    shutil.rmtree(target, ignore_errors=True)
    sdist, wheel = build(REPOSITORY, target, urls, files)
    _say(f"{sdist.name}: {sdist.stat().st_size:,} bytes, twice the same")
    _say(f"{wheel.name}: {wheel.stat().st_size:,} bytes, twice the same")
    _run(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel))

    about = target / "about"
    about.mkdir()
    (about / "NOTES.md").write_text(notes((REPOSITORY / "CHANGELOG.md").read_text(), version))
    (about / "recipe.yaml").write_text(text := recipe(_pyproject(), urls, _digest(sdist)))
    _check_recipe(text)
    with tempfile.TemporaryDirectory(prefix="lakelog-envs-") as folder:
        rows = smoke(wheel, pythons, Path(folder))
        every = environment(
            Path(folder) / "every", interpreter(pythons[-1]), f"{wheel}[all,oss,oci]"
        )
        _about_dependencies(every, about)
    _image(wheel)
    digests = [f"{_digest(path)}  {path.name}" for path in (sdist, wheel)]
    (target / "about" / "SHA256SUMS").write_text("\n".join(digests) + "\n")

    _say("\n".join(table(["extra", *pythons], rows)))
    failed = any("failed" in cell for row in rows for cell in row)
    if failed:
        _say("failed: this is no release")
    elif options.url == NOWHERE:
        _say("a rehearsal: no URL= was given, so its links lead nowhere. Not to be uploaded")
    else:
        _say(
            f"what is left: tag v{version}, and twine upload {target.name}/*.whl {target.name}/*.gz"
        )
    return int(failed)


def build(repository: Path, target: Path, urls: dict[str, str], files: str) -> tuple[Path, Path]:
    """Build a commit's sdist and wheel, twice, from nothing but what is in the commit.

    Args:
        repository: whose commit is checked out, with nothing changed.
        target: the folder for both.
        urls: of the project, by their labels.
        files: what links of the README are relative to.

    Raises:
        SystemExit: the tree is not clean; both builds differ; the wheel is not what it has to be.
    """
    changed = _git(repository, "status", "--porcelain").splitlines()
    if changed:
        raise SystemExit(
            f"{len(changed)} files differ from the commit ({changed[0].split()[-1]} …): commit "
            "them, or put them away; a release is what a commit holds"
        )
    made = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="lakelog-release-") as folder:
            tree, out = Path(folder) / "lakelog", Path(folder) / "out"
            _check_out(repository, tree)
            fill_in(tree, urls, files)
            # What a build depends on besides: the times in archives, and the modes of new files.
            env = {**os.environ, "SOURCE_DATE_EPOCH": _git(repository, "log", "-1", "--format=%ct")}
            _hatchling(tree, out, "sdist", env)
            (sdist,) = out.iterdir()
            # The wheel of the sdist: what an index gives to a machine that has no wheel.
            with tarfile.open(sdist) as packed:
                packed.extractall(folder, filter="data")
            _hatchling(Path(folder) / sdist.name.removesuffix(".tar.gz"), out, "wheel", env)
            made.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    first, second = made
    different = [name for name in first if first[name] != second.get(name)]
    if different or first.keys() != second.keys():
        raise SystemExit(f"two builds of one commit differ: {', '.join(different)}")
    target.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (target / name).write_bytes(content)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    _check_wheel(wheel)
    return sdist, wheel


def _hatchling(tree: Path, out: Path, target: str, env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run(
        [*command, "--directory", str(out)], cwd=tree, env=env, check=True, stdout=subprocess.PIPE
    )


def _check_out(repository: Path, tree: Path) -> None:
    packed = tree.with_suffix(".tar")
    _git(repository, "archive", "--output", str(packed), "HEAD")
    with tarfile.open(packed) as archive:
        archive.extractall(tree, filter="data")


def fill_in(tree: Path, urls: dict[str, str], files: str) -> None:
    """Write into a tree what a clone does not know: where the project lives, and is released.

    Args:
        tree: a copy of the repository; its pyproject.toml and README.md are changed.
        urls: of the project, by their labels.
        files: what links of the README are relative to.

    Raises:
        SystemExit: the README no longer says what is replaced.
    """
    lines = [f"{label} = {json.dumps(url)}" for label, url in urls.items()]
    project = tree / "pyproject.toml"
    head, mark, rest = project.read_text().partition("[project.scripts]")
    project.write_text(head + "\n".join(["[project.urls]", *lines, "", mark]) + rest)
    readme = tree / "README.md"
    text = readme.read_text()
    for before, after in _ONCE_RELEASED:
        if before not in text:
            raise SystemExit(f"README.md no longer says {before!r}, which a release replaces")
        text = text.replace(before, after)
    text = _LINK.sub(rf"\g<1>{files}/\g<2>\g<3>", text)
    # Of a picture its bytes, and not the page about it.
    picture, raw = rf"(!\[[^\]]*\]\(){re.escape(files)}", files.replace("/blob/", "/raw/")
    readme.write_text(re.sub(picture, rf"\g<1>{raw}", text))


def _check_wheel(wheel: Path) -> None:
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"{wheel.name} is for some platforms only")
    size = wheel.stat().st_size
    if size >= MOST_BYTES:
        raise SystemExit(f"{wheel.name} has {size:,} bytes, and {MOST_BYTES:,} are the limit")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if JAR not in names:
        raise SystemExit(f"{wheel.name} lacks {JAR}")
    compiled = [name for name in names if name.endswith((".so", ".pyd", ".dll", ".dylib"))]
    if compiled:
        raise SystemExit(f"{wheel.name} has compiled code: {compiled[0]}")


def notes(changelog: str, version: str) -> str:
    """What the changelog says of a version; of what is not released yet where it has no such part.

    Raises:
        SystemExit: it has neither.
    """
    parts = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    by_title = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = by_title.get(version, by_title.get("Unreleased"))
    if found is None:
        raise SystemExit(f"CHANGELOG.md has neither [{version}] nor [Unreleased]")
    return found.strip() + "\n"


def recipe(pyproject: dict, urls: dict[str, str], digest: str) -> str:
    """A recipe for conda, of the sdist: what must be there, and how much of what may be.

    Args:
        pyproject: what pyproject.toml says.
        urls: of the project, by their labels.
        digest: SHA-256 of the sdist.
    """
    project, (builder,) = pyproject["project"], pyproject["build-system"]["requires"]
    name, version = project["name"], project["version"]
    python = f"python {project['requires-python']}"
    optional = {
        _as_conda(each)
        for extra in project["optional-dependencies"].values()
        for each in extra
        if not each.startswith(f"{name}[")
    }

    def entries(needed: list[str]) -> str:
        return "\n".join(f'    - "{each}"' for each in needed)

    needed = [python, *(_as_conda(each) for each in project["dependencies"])]
    scripts = "\n".join(f'      - "{k} = {v}"' for k, v in project["scripts"].items())
    return f"""# For rattler-build, and for conda-forge's feedstock; made by scripts/release.py.
schema_version: 1
package:
  name: {name}
  version: "{version}"
source:
  url: {urls["Repository"]}/releases/download/v{version}/{name}-{version}.tar.gz
  sha256: {digest}
build:
  number: 0
  noarch: python
  script: python -m pip install . --no-deps --no-build-isolation -vv
  python:
    entry_points:
{scripts}
requirements:
  host:
    - "{python}"
    - pip
    - "{_as_conda(builder)}"
  run:
{entries(needed)}
  run_constraints:
{entries(sorted(optional))}
tests:
  - python:
      imports: [lakelog.core, lakelog.logstores]
      pip_check: true
about:
  homepage: {urls["Repository"]}
  documentation: {urls["Documentation"]}
  license: {project["license"]}
  license_file: LICENSE
  summary: {project["description"]}
"""


def _check_recipe(text: str) -> None:
    """Have rattler-build read it: its fields, bounds and licence, before any channel is asked."""
    from rattler_build import RattlerBuildError, Stage0Recipe

    try:
        Stage0Recipe.from_yaml(text).render()
    except RattlerBuildError as error:
        raise SystemExit(f"rattler-build does not take about/recipe.yaml: {error}") from error


def _as_conda(requirement: str) -> str:
    """`pyspark[connect]>=4.0,<5` -> `pyspark >=4.0,<5`."""
    name, _, bounds = re.fullmatch(r"([\w.-]+)(\[.*\])?(.*)", requirement).groups()
    return f"{name} {bounds}"


def _about_dependencies(python: Path, about: Path) -> None:
    """The SBOM and the licences of an environment that has every extra."""
    tools = Path(sys.executable).parent
    # Without the time and a number drawn at random: the same packages make the same file.
    _run(
        str(tools / "cyclonedx-py"), "environment", str(python), "--output-reproducible",
        "--of", "JSON", "-o", str(about / "sbom.cdx.json"),
    )  # fmt: skip
    bill = json.loads((about / "sbom.cdx.json").read_text())
    for each in bill["components"]:
        # Where the wheel lay on this machine is nothing to tell.
        given = each.get("externalReferences", [])
        each["externalReferences"] = [e for e in given if not e["url"].startswith("file:")]
    (about / "sbom.cdx.json").write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    _run(
        str(tools / "pip-licenses"), f"--python={python}", "--from=mixed", "--format=markdown",
        "--order=license", "--with-urls", f"--output-file={about / 'LICENSES.md'}",
    )  # fmt: skip


def _image(wheel: Path) -> None:
    """Build docker/lakelog.Dockerfile where there is a builder."""
    program = shutil.which("docker")
    there = (
        program
        and not subprocess.run(
            [program, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode
    )
    if not there:
        _say("docker/lakelog.Dockerfile: not built, because no Docker engine runs here")
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-image-") as folder:
        shutil.copy(wheel, folder)
        tag = f"lakelog:{wheel.name.split('-')[1]}"
        file = str(REPOSITORY / "docker" / "lakelog.Dockerfile")
        _run(program, "build", "--quiet", "--file", file, "--tag", tag, folder)
        _run(program, "run", "--rm", tag, "--version")


def _pyproject() -> dict:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
