"""How large the files of a version are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.compute import pc
from lakelog.core.shown.texts import bytes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_MIB: Final = 1 << 20
_BOUNDS: Final = (1, 16, 64, 128, 512)
"""MiB. Below 16 a reader waits for storage rather than reads; Delta's OPTIMIZE aims at more than
128."""
SMALL: Final = 16 * _MIB


def size_classes(files: pa.Table) -> list[dict[str, Any]]:
    """How many files there are of which size, small ones first."""
    edges = [0, *(bound * _MIB for bound in _BOUNDS)]
    sizes, classes = files["size"], []
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        inside = pc.greater_equal(sizes, low)
        if high is not None:
            inside = pc.and_(inside, pc.less(sizes, high))
        kept = sizes.filter(inside)
        classes.append(
            {"from": low, "below": high, "files": len(kept), "bytes": pc.sum(kept).as_py() or 0}
        )
    return classes


def size_range(each: Mapping[str, Any]) -> str:
    """A class of sizes as a text: `1–16 MiB`."""
    if each["below"] is None:
        return f"{bytes_text(each['from'])} or more"
    if not each["from"]:
        return f"below {bytes_text(each['below'])}"
    low, high = bytes_text(each["from"]).split(" "), bytes_text(each["below"]).split(" ")
    return f"{' '.join(low[: 1 + (low[1] != high[1])])}\N{EN DASH}{' '.join(high)}"
