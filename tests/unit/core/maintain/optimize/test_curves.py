"""Curves pass through every point once, and nearby points are near each other on them."""

from __future__ import annotations

import itertools
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.maintain.optimize.curves import Curve, Ranges, hilbert, interleaved

GRIDS = pytest.mark.parametrize(("columns", "bits"), [(1, 4), (2, 1), (2, 4), (3, 2), (4, 2)])


def grid(columns: int, bits: int) -> tuple[list[tuple[int, ...]], list[pa.Array]]:
    points = list(itertools.product(range(1 << bits), repeat=columns))
    return points, [pa.array([p[i] for p in points], pa.int64()) for i in range(columns)]


@GRIDS
def test_hilberts_curve_goes_from_each_point_to_a_neighbour(columns: int, bits: int) -> None:
    points, axes = grid(columns, bits)
    places = hilbert(axes, bits).to_pylist()
    assert sorted(places) == list(range(len(points)))
    walk = [point for _, point in sorted(zip(places, points, strict=True))]
    for one, two in itertools.pairwise(walk):
        assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) == 1


@GRIDS
def test_z_order_interleaves_bits(columns: int, bits: int) -> None:
    points, axes = grid(columns, bits)
    expected = [
        int("".join(f"{x >> bit & 1}" for bit in reversed(range(bits)) for x in point), 2)
        for point in points
    ]
    assert interleaved(axes, bits).to_pylist() == expected


@given(
    st.lists(st.none() | st.floats(width=32), max_size=60),
    st.lists(st.none() | st.floats(width=32), max_size=20),
)
def test_numbers_of_ranges_go_up_with_the_values(
    sample: list[float | None], values: list[float | None]
) -> None:
    type_ = pa.float32()
    ranges = Ranges.sampled(pa.chunked_array([sample], type_), 5)
    found = ranges.numbers(pa.chunked_array([values], type_)).to_pylist()
    assert all(0 <= number < 32 for number in found)
    pairs = sorted((_order(v), n) for v, n in zip(values, found, strict=True))
    assert [n for _, n in pairs] == sorted(found)


def _order(value: float | None) -> tuple[int, float]:
    """Spark's: null, numbers, NaN."""
    if value is None:
        return 0, 0.0
    return (2, 0.0) if math.isnan(value) else (1, value)


def test_many_columns_and_every_type_find_a_place() -> None:
    import datetime
    from decimal import Decimal

    columns = [
        pa.chunked_array([each])
        for each in (
            pa.array([True, None, False]),
            pa.array(["b", None, "a"]),
            pa.array([b"b", None, b"a"]),
            pa.array([Decimal("2.5"), None, Decimal("-1.5")]),
            pa.array([datetime.date(2024, 1, 2), None, datetime.date(2024, 1, 1)]),
            pa.array([2, None, 1], pa.timestamp("us", "UTC")),
            *[pa.array([2, None, 1], pa.int8())] * 6,
        )
    ]
    places = Curve("hilbert", columns).places(columns).to_pylist()
    assert places[1] == places[2] == 0  # nulls are with the smallest values
    assert 0 < places[0] < 1 << 62
    assert Curve("zorder", columns).places(columns)[0].as_py() > 0
