from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.stats.structs import with_wide_bounds

NUMBERS = st.one_of(
    st.integers(-(10**38), 10**38), st.decimals(allow_nan=False, allow_infinity=False, places=18)
)


@given(st.dictionaries(st.text(), NUMBERS | st.text() | st.none(), max_size=4))
def test_bounds_stay_as_they_are_spelled(bounds):
    spelled = {k: v for k, v in bounds.items() if not isinstance(v, Decimal)}
    text = json.dumps({"numRecords": 3, "minValues": spelled})
    numbers = ",".join(f"{json.dumps(k)}:{v}" for k, v in bounds.items() if isinstance(v, Decimal))
    text = text[:-1] + f',"maxValues":{{{numbers}}}}}'

    found = json.loads(with_wide_bounds(text, 5), parse_float=str)

    expected = json.loads(text, parse_float=str)
    assert found == {**expected, "numRecords": 5, "tightBounds": False}


@pytest.mark.parametrize("stats", [None, "", "no JSON", "[]", '{"minValues":{"a":NaN}}'])
def test_statistics_that_can_not_be_read_are_dropped(stats):
    assert json.loads(with_wide_bounds(stats, 7)) == {"numRecords": 7, "tightBounds": False}


def test_a_second_vector_changes_nothing():
    once = with_wide_bounds('{"numRecords":3,"nullCount":{"a":1},"tightBounds":true}', 3)
    assert with_wide_bounds(once, 3) == once
