"""A dbt project that knows nothing of lakelog: built, and built again after its data changed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lakelog.core import DeltaLog, read_arrow
from support.dbt_tool import dbt_environment, dbt_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "dbt"
RUN = "from lakelog.cli import main; main()"


def build(project: Path) -> str:
    """What `lakelog run dbt build` says beside dbt's own lines; every node must be well."""
    python = dbt_python()
    done = subprocess.run(
        [str(python), "-c", RUN, "run", "dbt", "build"],
        cwd=project,
        env=dict(dbt_environment(python)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    assert {each["status"] for each in results} == {"success", "pass"}
    return done.stderr


@pytest.mark.needs("dbt")
@pytest.mark.timeout(600)
@pytest.mark.one_day_in(8, 5)
def test_a_project_is_built_and_built_again(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    shutil.copytree(EXAMPLE, project)
    lake = project / "spark-warehouse" / "shop.db"

    def rows(table: str, *names: str, by: str = "order_id") -> list[tuple[Any, ...]]:
        found = sorted(read_arrow(lake / table).to_pylist(), key=lambda row: row[by])
        return [tuple(str(row[each]) for each in names) for row in found]

    said = build(project)
    assert "org.apache.hadoop.hive" not in said
    both = [("1", "10.50"), ("2", "20.00"), ("3", "5.25"), ("4", "40.00")]
    incremental = ("orders_appended", "orders_merged", "orders_microbatch")
    assert all(rows(table, "order_id", "amount") == both for table in incremental)
    metadata = DeltaLog.for_table(lake / "priced").snapshot.metadata
    assert metadata.configuration["delta.constraints.positive"] == "amount > 0"
    described = DeltaLog.for_table(lake / "customer_totals").snapshot
    assert described.metadata.description == "What each customer paid"
    assert next(each.metadata.get("comment") for each in described.schema) == "it's unique"

    orders = project / "seeds" / "orders.csv"
    changed = orders.read_text().replace("2,2,20.0,", "2,2,25.0,")
    orders.write_text(f"{changed}5,2,7.0,2026-01-04 12:00:00\n")
    customers = project / "seeds" / "customers.csv"
    lines = customers.read_text().splitlines()
    moved = lines[2].replace("US", "FR").replace("2026-01-01", "2026-01-05")
    customers.write_text("\n".join([*lines[:2], moved, ""]))
    build(project)
    # An append takes what is new alone, an overwrite the days from the last one on.
    new = ("5", "7.00")
    assert rows("orders_appended", "order_id", "amount") == [*both, new]
    assert rows("orders_merged", "order_id", "amount") == [both[0], ("2", "25.00"), *both[2:], new]
    days = [("2026-01-01", "10.50"), ("2026-01-02", "20.00"), ("2026-01-03", "45.25")]
    assert rows("orders_by_day", "day", "amount", by="day") == [*days, ("2026-01-04", "7.00")]
    # One row of what was, and one of what is; that of a customer who is gone has ended.
    then = rows("customers_then", "id", "country", by="dbt_valid_from")
    assert sorted(then) == [("1", "GB"), ("2", "FR"), ("2", "US"), ("3", "FI")]
    ended = {
        row["country"]
        for row in read_arrow(lake / "customers_then").to_pylist()
        if row["dbt_valid_to"]
    }
    assert ended == {"US", "FI"}
    checked = read_arrow(lake / "customers_checked").to_pylist()
    assert {row["country"] for row in checked if row["dbt_valid_to"]} == {"US"}


def test_the_guide_shows_the_files_of_the_example() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "dbt.md").read_text("utf-8")
    for name in ("profiles.yml", "dbt_project.yml"):
        assert (EXAMPLE / name).read_text("utf-8") in page
