"""Run the DAG of `examples/airflow` twice; the second time a rival is faster."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

from lakelog.core import DeltaLog, read_arrow, write_arrow


def _run(carriers: Any) -> dict[str, Any]:
    run = carriers.carriers().test()
    tasks = {each.task_id: [each.state, each.try_number] for each in run.get_task_instances()}
    table = DeltaLog.for_table(carriers.CARRIERS).update()
    rows = read_arrow(carriers.CARRIERS).to_pylist()
    return {"state": run.state, "tasks": tasks, "rows": rows, "done": dict(table.transactions)}


if __name__ == "__main__":
    airflow = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(airflow, check=True, stdout=subprocess.DEVNULL)
    # Airflow reads its database as soon as it is imported.
    carriers: Any = importlib.import_module("carriers")
    rival: Any = importlib.import_module("rival")
    flights = {"carrier": ["UA", "DL", "UA"], "delay": [3.0, 1.0, 5.0]}
    write_arrow(carriers.FLIGHTS, flights)
    first = _run(carriers)
    write_arrow(carriers.FLIGHTS, {"carrier": ["AA"], "delay": [3.0]}, mode="append")
    carriers.merge = rival.Rival("carrier = 'UA'").merge
    print(json.dumps([first, _run(carriers)]))
