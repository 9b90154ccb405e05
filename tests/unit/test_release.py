"""`make release`: what a commit becomes, and what its checks refuse."""

from __future__ import annotations

import email
import importlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

REPOSITORY = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
FILES = "https://code.example/lakelog/blob/v0"
URLS = {"Repository": "https://code.example/lakelog", "Documentation": "https://docs.example/"}


@pytest.fixture(scope="module")
def release() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "scripts")
        yield importlib.import_module("release")


def _git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is there now as the only commit of a repository, changed files of it included.

    Of the tests one file: they are nine tenths of the bytes to pack, and of no other kind.
    """
    folder = tmp_path_factory.mktemp("clone") / "lakelog"
    kinds = ["--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", "-z", *kinds],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("tests/") and name != "tests/conftest.py":
            continue
        source, target = REPOSITORY / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "all")
    return folder


class Built(NamedTuple):
    sdist: Path
    wheel: Path

    @property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            return email.message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def built(release: Any, clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    # It builds twice, and compares the bytes.
    return Built(*release.build(clone, tmp_path_factory.mktemp("dist"), URLS, FILES))


def test_the_wheel_is_pure_small_and_has_the_jar(release: Any, built: Built) -> None:
    assert built.wheel.name == f"lakelog-{PYPROJECT['project']['version']}-py3-none-any.whl"
    assert built.wheel.stat().st_size < 2_000_000
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    assert release.JAR in names
    assert {f"lakelog/{root}/py.typed" for root in ("core", "spark", "cli")} <= names
    assert not [name for name in names if name.startswith(("tests", "scripts", "docs"))]


def test_the_metadata_is_complete(built: Built) -> None:
    found = built.metadata
    assert found["Version"] == PYPROJECT["project"]["version"]
    assert found.get_all("Project-URL") == [f"{label}, {url}" for label, url in URLS.items()]
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Description-Content-Type"] == "text/markdown"
    extras = set(found.get_all("Provides-Extra", []))
    assert extras == PYPROJECT["project"]["optional-dependencies"].keys()
    assert found["Requires-Python"] == ">=3.11"


def test_the_page_of_the_package_has_no_relative_link_and_no_clone(built: Built) -> None:
    page = str(built.metadata.get_payload())
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert [each for each in targets if "://" not in each and not each.startswith("#")] == []
    paths = [each.removeprefix(FILES + "/").split("#")[0] for each in targets if FILES in each]
    assert len(paths) > 20
    assert [each for each in paths if not (REPOSITORY / each).exists()] == []
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page)
    assert picture == f"{FILES.replace('blob', 'raw')}/docs/pictures/report-light.png"
    assert "not on PyPI" not in page
    assert "pip install '.[" not in page
    assert "pip install 'lakelog[spark,cli]'" in page


def test_the_sdist_has_what_tests_and_docs_need(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("tests/conftest.py", "docs/index.md", "scripts/release.py", "LICENSE", "Makefile")
    assert set(wanted) <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


def test_a_folder_that_is_not_of_releases_is_kept(
    release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").touch()
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setattr(sys, "argv", ["release", "--to", str(tmp_path), "--pythons", minor])
    with pytest.raises(SystemExit, match=f"{re.escape(str(tmp_path))} is there already"):
        release.main()
    assert (tmp_path / "mine").exists()


def test_a_tree_with_changes_is_no_release(release: Any, clone: Path, tmp_path: Path) -> None:
    extra = clone / "more.txt"
    extra.write_text("more")
    try:
        with pytest.raises(SystemExit, match=r"1 files differ from the commit \(more\.txt"):
            release.build(clone, tmp_path / "dist", URLS, FILES)
    finally:
        extra.unlink()
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("name", "entries", "said"),
    [
        ("lakelog-1-cp311-cp311-linux_x86_64.whl", {}, "for some platforms only"),
        ("lakelog-1-py3-none-any.whl", {}, "lacks lakelog/logstores/service/lakelog-bridge.jar"),
        ("lakelog-1-py3-none-any.whl", {"jar": 2_000_000}, "has 2,000,"),
        (
            "lakelog-1-py3-none-any.whl",
            {"jar": 1, "lakelog/a.so": 1},
            "compiled code: lakelog/a.so",
        ),
    ],
)
def test_a_wheel_that_is_not_what_it_has_to_be_is_refused(
    release: Any, tmp_path: Path, name: str, entries: dict[str, int], said: str
) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        for each, size in entries.items():
            archive.writestr(release.JAR if each == "jar" else each, b"x" * size)
    with pytest.raises(SystemExit, match=re.escape(said)):
        release._check_wheel(tmp_path / name)


def test_a_readme_that_says_something_else_is_not_filled_in(release: Any, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "README.md").write_text("# lakelog\n")
    with pytest.raises(SystemExit, match=r"README\.md no longer says"):
        release.fill_in(tmp_path, URLS, FILES)


def test_notes_are_those_of_the_version_or_of_what_is_to_come(release: Any) -> None:
    log = "# C\n\n## [Unreleased]\n\nnew\n\n## [1.0] - 2026-01-01\n\nfirst\n\n### Core\n\n- a\n"
    assert release.notes(log, "1.0") == "first\n\n### Core\n\n- a\n"
    assert release.notes(log, "1.1") == "new\n"
    with pytest.raises(SystemExit, match=r"neither \[2\.0\] nor \[Unreleased\]"):
        release.notes("# C\n", "2.0")
    version = PYPROJECT["project"]["version"]
    assert "lakelog.core" in release.notes((REPOSITORY / "CHANGELOG.md").read_text(), version)


def test_the_recipe_for_conda_asks_for_what_the_package_does(release: Any) -> None:
    found = yaml.safe_load(release.recipe(PYPROJECT, URLS, "0" * 64))
    project = PYPROJECT["project"]
    assert found["package"] == {"name": "lakelog", "version": project["version"]}
    run = [each.replace(" ", "") for each in found["requirements"]["run"]]
    assert run == ["python>=3.11", *project["dependencies"]]
    rest = {each.replace(" ", "") for each in found["requirements"]["run_constraints"]}
    extras = {each for extra in project["optional-dependencies"].values() for each in extra}
    assert rest == {each for each in extras if not each.startswith("lakelog[")}
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert found["build"]["python"]["entry_points"] == scripts


def test_every_extra_is_tried_in_a_release(release: Any) -> None:
    smoke = importlib.import_module("release_smoke")
    assert (
        set(smoke.extras()) - {smoke.BASE} == PYPROJECT["project"]["optional-dependencies"].keys()
    )
    storages = {"s3", "gcs", "azure", "hdfs", "fsspec"}
    assert set(smoke._ALL) == storages
    assert (
        f"lakelog[spark,{','.join(smoke._ALL)},cli]"
        in (PYPROJECT["project"]["optional-dependencies"]["all"])
    )


def test_a_python_that_is_not_there_is_named_with_a_way_out(release: Any) -> None:
    interpreters = importlib.import_module("interpreters")
    own = "{}.{}".format(*sys.version_info)
    assert interpreters.interpreter(own)
    assert own in interpreters.minors()
    with pytest.raises(SystemExit, match=r"no Python 3\.0: put python3\.0 on the PATH, or name"):
        interpreters.interpreter("3.0")
