from __future__ import annotations

import json
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.spark.workers.json_stand_in import ensure_orjson

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "orjson", None)  # makes the import fail
    ensure_orjson()
    return sys.modules["orjson"]


def test_the_real_one_is_used_where_there_is_one() -> None:
    ensure_orjson()
    assert sys.modules["orjson"] is orjson


def test_the_stand_in_has_every_name_that_lakelog_uses(stand_in: Any) -> None:
    assert stand_in is not orjson
    assert issubclass(stand_in.JSONDecodeError, ValueError)
    assert stand_in.loads(memoryview(b'{"a":[1,null]}')) == {"a": [1, None]}
    with pytest.raises(stand_in.JSONDecodeError):
        stand_in.loads(b"{")


def test_the_stand_in_writes_what_orjson_writes() -> None:
    from lakelog.spark.workers.json_stand_in import _dumps

    @given(values)
    def check(value: Any) -> None:
        try:
            expected = orjson.dumps(value)
        except TypeError:  # a lone surrogate
            return
        # Floats may be spelled in two ways; what they read as is the same.
        assert json.loads(_dumps(value)) == json.loads(expected)

    check()


def test_not_a_number_is_null() -> None:
    from lakelog.spark.workers.json_stand_in import _dumps

    assert _dumps({"a": [float("nan"), float("inf"), 1.5], "é": "NaN"}) == (
        '{"a":[null,null,1.5],"é":"NaN"}'.encode()
    )
