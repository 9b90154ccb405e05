"""The methods of delta-spark's `DeltaTable` that ours has not, and what to use in their place."""

from __future__ import annotations

__all__ = ["missing_method"]

_CORE = "use lakelog.core.{}, which needs no Spark"
_ELSEWHERE = "no part of lakelog does it yet: use delta-spark or deltalake, on the same table"
_INSTEAD = {
    "delete": _CORE.format("delete_rows(path, filter)"),
    "update": _CORE.format("update_rows(path, values, filter)"),
    "addFeatureSupport": _CORE.format(
        'set_properties(path, {"delta.feature.<name>": "supported"})'
    ),
    "upgradeTableProtocol": "use table.log.upgrade_protocol(reader, writer)",
    "alias": 'use table.toDF().alias("…")',
    **dict.fromkeys(
        (
            *("merge", "vacuum", "optimize", "restoreToVersion", "restoreToTimestamp"),
            *("clone", "cloneAtVersion", "cloneAtTimestamp", "dropFeatureSupport"),
        ),
        _ELSEWHERE,
    ),
}


def missing_method(name: str) -> str:
    """What to tell whoever asked a `DeltaTable` for an attribute that it has not."""
    instead = _INSTEAD.get(name)
    return f"lakelog's DeltaTable has no {name}" + (f": {instead}" if instead else "")
