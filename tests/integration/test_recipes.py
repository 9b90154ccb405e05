"""The examples for other tools, run by those tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.recipes import EXAMPLES, airflow_python, dagster_python, run_recipe

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [
    {"carrier": "DL", "flights": 1, "delay": 1.0},
    {"carrier": "UA", "flights": 2, "delay": 4.0},
]
SECOND = [{"carrier": "AA", "flights": 1, "delay": 3.0}, *FIRST]


def _by_carrier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["carrier"])


@pytest.mark.needs("airflow")
@pytest.mark.one_day_in(3)
def test_airflow_waits_for_a_version_and_runs_again_after_a_conflict(tmp_path: Path) -> None:
    events = tmp_path / "lineage"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    variables = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES / "airflow" / "dags"),
        "OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    dags = EXAMPLES / "airflow" / "dags"
    first, second = run_recipe(airflow_python(), "in_airflow", dags, tmp_path, variables)
    assert first["state"] == second["state"] == "success"
    assert first["tasks"] == {"new_version": ["success", 1], "merge_delays": ["success", 1]}
    assert second["tasks"] == {"new_version": ["success", 1], "merge_delays": ["success", 2]}
    assert _by_carrier(first["rows"]) == FIRST
    assert _by_carrier(second["rows"]) == SECOND
    assert (first["done"], second["done"]) == ({"carriers": 0}, {"carriers": 1})

    sent = [json.loads(line) for line in events.read_text().splitlines()]
    assert [each["eventType"] for each in sent] == [
        *("START", "COMPLETE"),
        *("START", "FAIL"),
        *("START", "COMPLETE"),
    ]
    lake = str(tmp_path / "lake")
    versions = [
        [
            (each["namespace"], each["name"], each["facets"]["version"]["datasetVersion"])
            for each in event[end]
        ]
        for event in (sent[1], sent[5])
        for end in ("inputs", "outputs")
    ]
    assert versions == [
        [("file", f"{lake}/flights", "0")],
        [("file", f"{lake}/carriers", "1")],
        [("file", f"{lake}/flights", "1")],
        [("file", f"{lake}/carriers", "3")],
    ]
    assert len({each["run"]["runId"] for each in sent}) == 3


@pytest.mark.needs("dagster")
def test_dagster_asks_for_a_run_of_each_version_and_runs_again_after_a_conflict(
    tmp_path: Path,
) -> None:
    first, second = run_recipe(dagster_python(), "in_dagster", EXAMPLES / "dagster", tmp_path, {})
    assert (first["asked"], first["asked again"], first["again"]) == (["0"], [], 0)
    assert (second["asked"], second["asked again"], second["again"]) == (["1"], [], 1)
    assert _by_carrier(first["rows"]) == FIRST
    assert _by_carrier(second["rows"]) == SECOND
    assert (first["done"], second["done"]) == ({"carriers": 0}, {"carriers": 1})
    assert (first["version"], second["version"]) == (1, 3)
