from __future__ import annotations

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import DeltaTable
from lakelog.spark.format.no_layout import no_layout_error

DELTA_SPARK = """
    addFeatureSupport alias clone cloneAtTimestamp cloneAtVersion convertToDelta create
    createIfNotExists createOrReplace delete detail dropFeatureSupport forName forPath generate
    history isDeltaTable merge optimize replace restoreToTimestamp restoreToVersion toDF update
    upgradeTableProtocol vacuum
"""


@pytest.mark.parametrize("name", DELTA_SPARK.split())
def test_each_method_of_delta_sparks_is_here(name: str) -> None:
    assert callable(getattr(DeltaTable, name))


def test_clustering_is_not_denied() -> None:
    alone, beside = no_layout_error(["clusterBy"]), no_layout_error(["bucketBy", "clusterBy"])
    assert "CLUSTER BY" in str(alone)
    assert "does not support" not in str(alone)
    assert "does not support bucketBy:" in str(beside)
    assert isinstance(alone, DeltaAnalysisError)
