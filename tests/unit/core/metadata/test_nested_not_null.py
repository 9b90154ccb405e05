from __future__ import annotations

import pytest

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.metadata.verify import enforceable
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")
STRICT = StructType((StructField("x", LONG, nullable=False),))
LOOSE = StructType((StructField("x", LONG),))
ALLOWED = DeltaConf({"spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled": "true"})


def of(data_type) -> StructType:
    return StructType((StructField("s", StructType((StructField("c", data_type),))),))


REFUSED = [
    (ArrayType(STRICT), ArrayType(LOOSE), "element"),
    (ArrayType(ArrayType(LONG, contains_null=False)), ArrayType(ArrayType(LONG)), "element"),
    (MapType(STRICT, LONG), MapType(LOOSE, LONG), "key"),
    (MapType(LONG, STRICT, False), MapType(LONG, LOOSE, False), "value"),
    (ArrayType(MapType(LONG, LONG, False)), ArrayType(MapType(LONG, LONG)), "element"),
]


@pytest.mark.parametrize(("strict", "loose", "part"), REFUSED, ids=str)
def test_not_null_within_a_container_is_refused_or_left_out(strict, loose, part) -> None:
    with pytest.raises(DeltaAnalysisError, match="DELTA_NESTED_NOT_NULL_CONSTRAINT") as caught:
        enforceable(of(strict), DeltaConf())
    assert caught.value.column == "s.c"
    assert f"The {part} type of the column s.c" in str(caught.value)
    assert enforceable(of(strict), ALLOWED) == of(loose)


@pytest.mark.parametrize(
    "data_type",
    [LONG, STRICT, ArrayType(LONG, contains_null=False), MapType(LONG, LONG, False)],
    ids=str,
)
def test_what_a_row_or_a_file_can_say_stays(data_type) -> None:
    assert enforceable(of(data_type), DeltaConf()) == of(data_type)
