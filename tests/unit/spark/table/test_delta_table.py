from __future__ import annotations

import pytest

from lakelog.spark import DeltaTable

DELTA_SPARK = """
    addFeatureSupport alias clone cloneAtTimestamp cloneAtVersion convertToDelta create
    createIfNotExists createOrReplace delete detail dropFeatureSupport forName forPath generate
    history isDeltaTable merge optimize replace restoreToTimestamp restoreToVersion toDF update
    upgradeTableProtocol vacuum
"""


@pytest.mark.parametrize("name", DELTA_SPARK.split())
def test_each_method_of_delta_sparks_is_here(name: str) -> None:
    assert callable(getattr(DeltaTable, name))
