"""Text that is compared with a CHAR column: Spark fills up the shorter one with spaces."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.core.compute import pc
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.expressions.values.value import Value

_STRING = PrimitiveType("string")


def filled_up(values: Sequence[Value]) -> list[Value]:
    """Values that are compared with each other, each as long as the longest.

    That is done where one is a CHAR column, with constants and other CHAR columns. Other text
    stays as it is.
    """
    lengths = [each.char for each in values if each.char > 0]
    if not lengths or any(each.data_type != _STRING for each in values):
        return list(values)
    constants = [each.of(None).as_py() for each in values if each.constant]
    longest = max([*lengths, *(len(text) for text in constants if text is not None)])
    found = []
    for each in values:
        if each.char > 0 or each.constant:
            padded = computed(_STRING, partial(pc.utf8_rpad, width=longest, padding=" "), each)
        else:
            fills = each.char == 0
            padded = computed(_STRING, partial(fitted, length=longest), each) if fills else each
        found.append(padded)
    return found


def fitted(texts: Any, length: int) -> Any:
    """Text as a CHAR of the length would have it; what is longer but for spaces stays so."""
    return pc.utf8_rpad(pc.utf8_rtrim(texts, characters=" "), length, padding=" ")
