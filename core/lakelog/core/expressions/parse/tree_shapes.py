"""Which shapes of sqlglot's tree are known here: of each kind of node, the arguments that are read.

A release of sqlglot may say with a new argument what used to be a node of its own, and a
translation that passes over an argument reads `NOT BETWEEN` as `BETWEEN`. So a node that has more
than is listed here is not translated: Spark evaluates it, or the command is refused.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.errors import InvalidPredicateError

if TYPE_CHECKING:
    from collections.abc import Mapping

SQLGLOT: Final = ((30, 24), (31, 0))
"""The first release whose trees are known, and the first whose trees are not."""

_BOTH: Final = ("this", "expression")
_BINARY: Final = (
    *("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "DPipe", "And", "Or", "Is", "Dot", "Extract"),
    *("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ"),
    *("StartsWith", "DataTypeParam", "RegexpLike", "Transform"),
)
_UNARY: Final = ("Not", "Neg", "Paren", "Boolean", "HexString", "Var")
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_BINARY, _BOTH),
    **dict.fromkeys(_UNARY, ("this",)),
    "Null": (),
    "Literal": ("this", "is_string"),
    "Identifier": ("this", "quoted"),
    "Column": ("this", "table", "db", "catalog"),
    "Cast": ("this", "to"),
    "TryCast": ("this", "to", "safe"),
    "DataType": ("this", "expressions", "nested"),
    "ColumnDef": ("this", "kind", "constraints"),
    "Anonymous": ("this", "expressions"),
    "Interval": ("this", "unit"),
    "Between": ("this", "low", "high"),
    "In": ("this", "expressions"),
    **dict.fromkeys(("Like", "ILike"), (*_BOTH, "negate")),
    "If": ("this", "true", "false"),
    "Case": ("this", "ifs", "default"),
    "Concat": ("expressions",),
    "Lambda": ("this", "expressions"),
}
_IMPLIED: Final = {("DPipe", "safe"): True, ("Div", "safe"): True}
"""What sqlglot says of Spark's dialect itself, whatever the text."""


def is_read(node: Any) -> bool:
    """Whether all that a node says is read here; the nodes below it are not looked at."""
    kind = type(node).__name__
    read = _READ.get(kind)
    return read is not None and all(
        # To sqlglot the first three are the same as no argument.
        value is None
        or value is False
        or value == []
        or name in read
        or _IMPLIED.get((kind, name)) is value
        for name, value in node.args.items()
    )


def unread_below(root: Any) -> Any:
    """A node of a tree that has more than is read here; `None` where there is none."""
    return next((node for node in root.walk() if not is_read(node)), None)


@functools.cache
def check_sqlglot() -> None:
    """Refuse to read a condition with a release of sqlglot whose trees are not known.

    Raises:
        InvalidPredicateError: names the release and those that are known.
    """
    import sqlglot

    found = str(getattr(sqlglot, "__version__", "0"))
    release = tuple(map(int, re.findall(r"\d+", found)[:2]))
    first, last = SQLGLOT
    if not first <= release < last:
        wanted = f"sqlglot>={'.'.join(map(str, first))},<{last[0]}"
        raise InvalidPredicateError(
            f"sqlglot {found} is installed, which may read a condition in another way than Spark; "
            f"lakelog knows {wanted}: pip install '{wanted}'",
            release=found,
        )
