"""Make the asset of `examples/dagster` twice; the second time a rival is faster."""

from __future__ import annotations

import importlib
import json
from typing import Any

from lakelog.core import DeltaLog, read_arrow, write_arrow

# Neither is where the tests are.
dg: Any = importlib.import_module("dagster")
carriers: Any = importlib.import_module("carriers")
rival: Any = importlib.import_module("rival")

_instance = dg.DagsterInstance.ephemeral()
_cursor: str | None = None


def _asked() -> list[str]:
    """The keys of the runs that the sensor asks for."""
    global _cursor
    with dg.build_sensor_context(
        instance=_instance, cursor=_cursor, definitions=carriers.defs
    ) as context:
        answer = carriers.new_version(context)
    if isinstance(answer, dg.SkipReason):
        return []
    _cursor = answer.cursor
    return [each.run_key for each in answer.run_requests]


def _run() -> dict[str, Any]:
    asked = _asked()
    made = dg.materialize([carriers.flights, carriers.carriers], instance=_instance)
    again = [each.event_type_value for each in made.all_events].count("STEP_UP_FOR_RETRY")
    (event,) = made.asset_materializations_for_node("carriers")
    table = DeltaLog.for_table(carriers.CARRIERS).update()
    return {
        "asked": asked,
        "asked again": _asked(),
        "again": again,
        "version": event.metadata["version"].value,
        "rows": read_arrow(carriers.CARRIERS).to_pylist(),
        "done": dict(table.transactions),
    }


if __name__ == "__main__":
    flights = {"carrier": ["UA", "DL", "UA"], "delay": [3.0, 1.0, 5.0]}
    write_arrow(carriers.FLIGHTS, flights)
    first = _run()
    write_arrow(carriers.FLIGHTS, {"carrier": ["AA"], "delay": [3.0]}, mode="append")
    carriers.merge = rival.Rival("carrier = 'UA'").merge
    print(json.dumps([first, _run()]))
