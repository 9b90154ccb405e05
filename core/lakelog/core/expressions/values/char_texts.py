"""Text that is compared with a CHAR column: Spark fills up the shorter one with spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.expressions.values.casts import Value

_STRING = PrimitiveType("string")


def filled_up(values: Sequence[Value]) -> list[Value]:
    """Values that are compared with each other, each as long as the longest.

    That is done where one is a CHAR column, with constants and other CHAR columns. Other text
    stays as it is.
    """
    lengths = [each.char for each in values if each.char > 0]
    if not lengths or any(each.data_type != _STRING for each in values):
        return list(values)
    longest = max(lengths)
    constants = [v.data.as_py() for v in values if isinstance(v.data, pa.Scalar)]
    longest = max([longest, *(len(text) for text in constants if text is not None)])
    found = []
    for each in values:
        data = each.data
        if each.char > 0 or isinstance(data, pa.Scalar):
            data = pc.utf8_rpad(data, longest, padding=" ")
        elif each.char == 0:
            data = fitted(data, longest)
        found.append(each._replace(data=data))
    return found


def fitted(texts: Any, length: int) -> Any:
    """Text as a CHAR of the length would have it; what is longer but for spaces stays so."""
    return pc.utf8_rpad(pc.utf8_rtrim(texts, characters=" "), length, padding=" ")
