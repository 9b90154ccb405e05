from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.write import write_arrow
from lakelog.spark import DeltaTable
from lakelog.spark._enable import _no_layout
from lakelog.spark._missing import _INSTEAD

if TYPE_CHECKING:
    from pathlib import Path

DELTA_SPARK = (
    *("addFeatureSupport", "alias", "clone", "cloneAtTimestamp", "cloneAtVersion", "delete"),
    *("dropFeatureSupport", "merge", "optimize", "restoreToTimestamp", "restoreToVersion"),
    *("update", "upgradeTableProtocol", "vacuum"),
)
"""The methods that delta-spark's DeltaTable has beside those that ours has."""


@pytest.mark.parametrize("name", DELTA_SPARK)
def test_each_method_that_ours_lacks_is_told_with_what_does_instead(
    name: str, tmp_path: Path
) -> None:
    write_arrow(str(tmp_path), pa.table({"id": [1]}))
    table = DeltaTable(cast("Any", None), DeltaLog.for_table(str(tmp_path)))
    assert not hasattr(table, name)
    with pytest.raises(AttributeError, match=rf"DeltaTable has no {name}: (use|no part) .*"):
        getattr(table, name)
    assert name in _INSTEAD


def test_other_names_are_simply_missing(tmp_path: Path) -> None:
    write_arrow(str(tmp_path), pa.table({"id": [1]}))
    table = DeltaTable(cast("Any", None), DeltaLog.for_table(str(tmp_path)))
    with pytest.raises(AttributeError, match=r"lakelog's DeltaTable has no delte$"):
        _ = table.delte


def test_clustering_is_not_denied() -> None:
    alone, beside = _no_layout(["clusterBy"]), _no_layout(["bucketBy", "clusterBy"])
    assert "CLUSTER BY" in str(alone)
    assert "has no" not in str(alone)
    assert "has no bucketBy:" in str(beside)
    assert isinstance(alone, DeltaAnalysisError)
