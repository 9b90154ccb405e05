"""The cost of every operation stays in proportion to the table: see `support.growth`.

Each operation is measured on a sixth of its axes a day; at night on all of them.
"""

from __future__ import annotations

import gc
import math
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from support.growth.coverage import (
    EXCUSED,
    EXCUSED_OF_SPARK,
    public_operations,
    public_operations_of_spark,
)
from support.growth.measuring import Costs, costs, cpu_seconds, lines_run
from support.growth.operations import OPERATIONS, Measured
from support.growth.spark_operations import SPARK_OPERATIONS
from support.growth.worlds import AXES, Axis, Worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# A thread that is traced may end in an exception outside of its work (seen once in a thousand runs,
# for a reason that is not known): that says nothing about costs.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in thread started by:pytest.PytestUnraisableExceptionWarning"
)


def _cells() -> Iterator[Any]:
    for each in OPERATIONS:
        for axis in filter(each.fits, AXES.values()):
            marks = [pytest.mark.xdist_group(axis.name)]
            yield pytest.param(axis, each, id=f"{axis.name}: {each.name}", marks=marks)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("growth"))


@pytest.mark.one_day_in(6)
@pytest.mark.parametrize(("axis", "measured"), [*_cells()])
def test_cost_grows_no_faster_than_the_table(
    axis: Axis, measured: Measured, worlds: Worlds
) -> None:
    found = costs(measured, axis, worlds, n=axis.n, meter=lines_run)
    if found.grow_too_fast():  # which the imports of a first run may do
        found = costs(measured, axis, worlds, n=axis.n, meter=lines_run)
    assert not found.grow_too_fast(), str(found)


@pytest.mark.xdist_group("columns")
@pytest.mark.parametrize(
    "name",
    ["write_arrow (append)", "update_rows (rewrite)", "update_rows (SQL)", "Snapshot.to_arrow"],
)
def test_arrow_does_not_go_through_all_columns_for_each(name: str, worlds: Worlds) -> None:
    """What C does within a line no count of lines sees, and on wide tables there is most of it."""
    (measured,) = (each for each in OPERATIONS if each.name == name)
    least = Costs(*[float("inf")] * 3)
    for _ in range(8):  # another program may have been in the way
        found = costs(measured, AXES["columns"], worlds, n=150, meter=cpu_seconds)
        least = Costs(*map(min, least, found))
        if not least.grow_too_fast(limit=3, slack=0.05):
            break
    assert not least.grow_too_fast(limit=3, slack=0.05), str(least)


@pytest.mark.parametrize(
    ("measured", "public", "excused"),
    [
        (OPERATIONS, public_operations(), EXCUSED),
        (SPARK_OPERATIONS, public_operations_of_spark(), EXCUSED_OF_SPARK),
    ],
    ids=["without Spark", "Spark"],
)
def test_every_public_operation_is_measured_or_excused(
    measured: list[Measured], public: set[str], excused: Mapping[str, str]
) -> None:
    known = {name for each in measured for name in each.operations}
    assert public - known - set(excused) == set(), "no case of growth, and no excuse"
    assert known - public == set(), "measured, and not public"
    assert set(excused) - public == set(), "excused, and not public"
    assert known & set(excused) == set(), "excused, and measured"


def test_every_axis_and_operation_that_is_named_exists() -> None:
    every = [*OPERATIONS, *SPARK_OPERATIONS]
    names = {name for each in OPERATIONS for name in each.operations}
    assert {name for each in every for name in (*each.only, *each.not_for)} <= set(AXES)
    assert {name for axis in AXES.values() for name in axis.only} <= names


def test_a_name_is_one_of_one_way_of_one_operation() -> None:
    names = [each.name for each in OPERATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("cost", "too_fast"),
    [
        (lambda n: 500.0, False),
        (lambda n: 500 + 40 * n, False),
        (lambda n: 9 * n * math.log(n), False),
        (lambda n: 2000 + 400 * n + 2 * n * n, True),
        (lambda n: 20 * n**1.5, True),
    ],
    ids=["constant", "linear", "n log n", "a little quadratic", "n to the 1.5"],
)
def test_what_grows_too_fast_is_reported(cost: Callable[[int], float], too_fast: bool) -> None:
    assert Costs(cost(1000), cost(2000), cost(4000)).grow_too_fast() is too_fast
    small = cost(32), cost(64), cost(128)
    assert Costs(*small).grow_too_fast() is (too_fast or cost(1) == 0)


def test_lines_of_new_threads_count_and_those_of_waiting_do_not() -> None:
    def loop() -> int:
        return sum(i for i in range(50))

    def threaded() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: loop(), range(4)))

    once, again = lines_run(threaded), lines_run(threaded)
    assert once == again
    assert 4 * lines_run(loop) < once < 5 * lines_run(loop)


def test_lines_of_what_others_left_and_of_threads_that_others_start_do_not_count() -> None:
    finalized: list[int] = []
    meanwhile: list[int] = []

    class Garbage:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            finalized.append(1)

    def work() -> list[list[int]]:
        return [[i] for i in range(10_000)]  # for which there would be a collection

    def of_other() -> None:
        go.wait(60)
        Thread(target=work).start()
        ended.set()

    ended, go = Event(), Event()
    other = Thread(target=of_other)
    other.start()

    def beside() -> None:
        go.set()
        ended.wait(60)
        work()
        meanwhile.extend(finalized)

    alone = lines_run(work)
    gc.collect()  # so that none is due before the work
    for _ in range(100):
        Garbage()
    assert lines_run(beside) == alone + 6
    assert meanwhile == []
    other.join()
    gc.collect()
    assert len(finalized) == 100
