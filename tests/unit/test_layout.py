"""The layout's rules that no tool notices when they break."""

from __future__ import annotations

import ast
import tomllib
import zipfile
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hatchling.builders.wheel import WheelBuilder

from lakelog.logstores.service import bridge_jar

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
ROOTS = ("logstores", "core", "spark", "cli", "contrib")
TOOL = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_holds_one_typed_package_of_its_own_name(root: str) -> None:
    # A dashboard is no code: it is in the source distribution alone.
    beside = {"README.md"} | ({"grafana"} if root == "contrib" else set())
    assert {p.name for p in (REPOSITORY / root).iterdir()} <= {"lakelog", *beside}
    inner = {p.name for p in (REPOSITORY / root / "lakelog").iterdir()} - {"__pycache__"}
    assert inner == {root}, "an __init__.py beside it would break the namespace"
    assert (REPOSITORY / root / "lakelog" / root / "__init__.py").is_file()
    assert (REPOSITORY / root / "lakelog" / root / "py.typed").is_file()


def test_every_tool_knows_every_root() -> None:
    hatch = TOOL["hatch"]["build"]
    assert hatch["dev-mode-dirs"] == list(ROOTS)
    assert hatch["targets"]["wheel"]["packages"] == [f"{r}/lakelog" for r in ROOTS]
    assert {f"/{r}" for r in ROOTS} <= set(hatch["targets"]["sdist"]["include"])
    assert (
        TOOL["mypy"]["files"][: len(ROOTS)]
        == TOOL["pyright"]["include"][: len(ROOTS)]
        == list(ROOTS)
    )
    assert TOOL["mypy"]["mypy_path"][: len(ROOTS)] == [f"$MYPY_CONFIG_FILE_DIR/{r}" for r in ROOTS]
    assert TOOL["pyright"]["extraPaths"][: len(ROOTS)] == list(ROOTS)
    assert set(TOOL["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) >= set(ROOTS)
    assert TOOL["importlinter"]["root_packages"] == [f"lakelog.{r}" for r in ROOTS]


MOST_FLOORS = 15
"""What a reader of the core has to go down at the most, package by package."""


def _imports(root: str) -> dict[str, set[str]]:
    """Module -> modules of its root; those for types and those within functions count."""
    folder = REPOSITORY / root
    modules = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }
    needs: dict[str, set[str]] = {}
    for name, path in modules.items():
        tree = ast.walk(ast.parse(path.read_text()))
        nodes = [node for node in tree if isinstance(node, ast.ImportFrom) and node.module]
        named = {f"{node.module}.{each.name}" for node in nodes for each in node.names}
        needs[name] = ({str(node.module) for node in nodes} | named) & modules.keys()
    return needs


@pytest.mark.parametrize("root", ROOTS)
def test_no_module_needs_itself_by_way_of_others(root: str) -> None:
    try:
        TopologicalSorter(_imports(root)).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_the_core_has_few_floors() -> None:
    packages: dict[str, set[str]] = {}
    for module, needed in _imports("core").items():
        own = module.split(".")[2]
        packages.setdefault(own, set()).update({n.split(".")[2] for n in needed} - {own})
    del packages["engine"]  # the door, which shows what is on every floor
    floor: dict[str, int] = {}
    for package in TopologicalSorter(packages).static_order():
        floor[package] = 1 + max((floor[each] for each in packages[package]), default=0)
    assert max(floor.values()) <= MOST_FLOORS, sorted(floor.items(), key=lambda each: each[1])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = str(tmp_path_factory.mktemp("wheel"))
    (wheel,) = WheelBuilder(str(REPOSITORY)).build(directory=folder, versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        yield archive


def test_the_wheel_ships_every_module(wheel: zipfile.ZipFile) -> None:
    shipped = {n for n in wheel.namelist() if n.endswith((".py", "py.typed"))}
    source = {
        str(path.relative_to(REPOSITORY / root))
        for root in ROOTS
        for pattern in ("*.py", "py.typed")
        for path in (REPOSITORY / root).rglob(pattern)
    }
    assert shipped == source


def test_the_wheel_ships_the_jar_that_delta_spark_loads(wheel: zipfile.ZipFile) -> None:
    name = "lakelog/logstores/service/lakelog-bridge.jar"
    with wheel.open(name) as file, zipfile.ZipFile(file) as jar:
        assert "io/lakelog/BridgeLogStore.class" in jar.namelist()
    assert wheel.read(name) == bridge_jar().read_bytes()
