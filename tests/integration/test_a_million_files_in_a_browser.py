"""The report, and a page of `lakelog ui`, of a table of a million files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import look
from support.many_files import table_of_files
from support.open_ui import open_ui
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("browser")

FILES, PARTITIONS = 1_000_000, 1000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    uri = table_of_files(tmp_path_factory.mktemp("lake") / "many", FILES, PARTITIONS)
    yield uri
    for each in (Path(uri) / "_delta_log").iterdir():  # what a passed test leaves is kept for days
        each.unlink()


@pytest.fixture(scope="module")
def summary(table: str) -> dict[str, Any]:
    found: dict[str, Any] = lakelog_json("files", table, "--summary")
    assert (found["files"], found["partition_count"]) == (FILES, PARTITIONS)
    return found


@pytest.mark.one_day_in(3, 2)
def test_its_report_is_small_and_has_the_numbers_of_the_commands(
    table: str, summary: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    assert lakelog("report", table, "-o", str(path)).code == 0
    assert path.stat().st_size <= 1_000_000
    asked = {
        "wide": {"axe": True, "sorts": [["versions", 0, 1]]},
        "without script": {"script": False},
    }
    seen = look(path.as_uri(), {"views": asked})
    for name, view in seen.items():
        assert view["said"] == [], name
        assert view["asked"] == [path.as_uri()], name
        for number in ("files", "rows", "partition_count"):
            assert f"{summary[number]:,}" in view["text"], (name, number)
    assert seen["wide"]["sorted"] == [["11", "12"]]
    assert seen["wide"]["violations"] == []
    assert seen["wide"]["wide"] <= 1280


@pytest.mark.one_day_in(3, 1)
def test_its_page_of_the_ui_has_them_too(table: str, summary: dict[str, Any]) -> None:
    with open_ui(str(Path(table).parent)) as ui:
        base = ui.server.url.partition("/?")[0]
        # Once without a browser, which waits for less long.
        assert f"{summary['rows']:,}" in ui.get(ui.table("many"))
        steps = [["goto", f"{base}{ui.table('many')}"], ["wait", "#live[data-busy='0']"]]
        seen = look(ui.server.url, {"views": {"overview": {"steps": steps}}})["overview"]
    assert seen["said"] == []
    assert all(each.startswith(base) for each in seen["asked"])
    for number in ("files", "rows"):
        assert f"{summary[number]:,}" in seen["text"], number
