"""The driver's part of what Spark does stays in proportion to the table: see `support.growth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.growth.measuring import costs, lines_run
from support.growth.spark_operations import SPARK_OPERATIONS
from support.growth.worlds import AXES, Axis, Worlds

if TYPE_CHECKING:
    from pathlib import Path

    from support.growth.operations import Measured

CELLS = [
    pytest.param(axis, each, id=f"{axis.name}: {each.name}")
    for axis in AXES.values()
    for each in SPARK_OPERATIONS
    if each.fits(axis)
]


@pytest.mark.one_day_in(2)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("axis", "measured"), CELLS)
def test_the_drivers_cost_grows_no_faster_than_the_table(
    axis: Axis, measured: Measured, tmp_path: Path
) -> None:
    worlds = Worlds(tmp_path)
    found = costs(measured, axis, worlds, n=axis.n // 2, meter=lines_run)
    if found.grow_too_fast():
        # As the imports of a first run may do.
        found = costs(measured, axis, worlds, n=axis.n // 2, meter=lines_run, times=4)
    assert not found.grow_too_fast(), str(found)
