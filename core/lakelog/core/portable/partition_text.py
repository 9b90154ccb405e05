"""Partition values as the text of the log, and as Hive folders.

Imports the standard library, pyarrow, `interval_text` and `shown_values` only: `writer` takes them
along to executors that have no lakelog.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import string
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.portable.interval_text import interval_text
from lakelog.core.portable.shown_values import python_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LONGEST_NAME = 255
_LONGEST_FOLDER = 600
"""Bytes: with a table's own path before them, and a file's name behind."""
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ALPHANUMERIC = string.ascii_letters + string.digits
_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_ESCAPED = frozenset([*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{[]^"])


def partition_folder(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """Name the folder of a partition's data files: `hive_folder`, in ASCII alone.

    The log holds such names percent-encoded, and clients compare them as text, without agreeing on
    how a letter beyond ASCII is spelled there. delta-spark 4.4 leaves it as it is, and its VACUUM
    takes a live file that is spelled otherwise for a leftover; deltalake encodes it, and does not
    find the file of its own remove that is spelled otherwise. Of names in ASCII there is one
    spelling. Readers don't mind: they take partition values from the log.
    """
    folder = hive_folder(columns, values)
    if not folder.isascii():
        folder = "".join(
            c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in folder
        )
    return fitting_folder(folder)


def fitting_folder(folder: str) -> str:
    """The same folder, or one for the same files alone whose name no storage finds too long.

    File systems take 255 bytes a name, object stores some 1,000 for the whole. What is longer gets
    a name of its digest, which claims no value, as a shortened one would.
    """
    if len(folder) <= _LONGEST_NAME and folder.isascii():
        return folder
    if len(folder.encode()) > _LONGEST_FOLDER:
        return _digest(folder)
    return "/".join(name if has_room(name) else _digest(name) for name in folder.split("/"))


def has_room(name: str) -> bool:
    """Whether file systems take a name."""
    return len(name.encode()) <= _LONGEST_NAME


def _digest(text: str) -> str:
    return f"long-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def hive_folder(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """`a=1/b=x%3Ay`: the Hive folder of serialised partition values, `""` without columns.

    Null and the empty string share `__HIVE_DEFAULT_PARTITION__`, as in Spark.
    """
    pairs = zip(columns, values, strict=True)
    return "/".join(f"{_escape(c)}={_escape(v) if v else _NULL_FOLDER}" for c, v in pairs)


def random_folder(length: int) -> str:
    """A folder name of random letters and digits, which spreads files over an object store."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(length))


def _escape(text: str) -> str:
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


class PartitionValueError(ValueError):
    """A value that the log has no text for, so that no row of a partition can have it.

    Where it ends a task of Spark's only its text comes back: one line, from which
    `partition_errors` makes an error of ours.
    """

    def __init__(self, column: str, value: str, why: str) -> None:
        """Keep the column, the value as it is shown, and what is wrong with it."""
        super().__init__(column, value, why)
        self.column = column
        self.value = value
        self.why = why

    def __str__(self) -> str:
        """One line that `json.loads` reads."""
        return json.dumps([self.column, self.value, self.why])


def partition_texts(
    values: pa.Array[Any], column: str = "", *, months: bool = False
) -> list[str | None]:
    """Serialise partition values (PROTOCOL.md, "Partition Value Serialization").

    Args:
        values: of one column.
        column: its name, for errors.
        months: whether integers are intervals of so many months.

    Raises:
        TypeError: a type that a table can't be partitioned by.
        PartitionValueError: bytes that are not UTF-8, or a date outside the years 1 to 9999.
    """
    kind = values.type
    if months or pa.types.is_duration(kind):
        counts = values.cast(pa.duration("us")) if not months else values
        counts = counts.cast(pa.int64()).to_pylist()
        return [None if v is None else interval_text(v, months=months) for v in counts]
    try:
        return [text or None for text in _texts(values, kind)]
    except (ValueError, OverflowError):
        first = next(each for each in values if not _has_text(each))
    binary = any(check(kind) for check in _BYTES)
    why = "is not UTF-8" if binary else "is outside the years 1 to 9999"
    raise PartitionValueError(column, repr(python_value(first)), why)


def _has_text(value: Any) -> bool:
    try:
        _texts(pa.array([value], value.type), value.type)
    except (ValueError, OverflowError):
        return False
    return True


def _texts(values: pa.Array[Any], kind: pa.DataType) -> list[str | None]:
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return list(values.to_pylist())
    if types.is_integer(kind):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if types.is_boolean(kind):
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    if types.is_decimal(kind):
        return [None if v is None else format(v, "f") for v in values.to_pylist()]
    if types.is_floating(kind):
        # Arrow prints the shortest text that reads back as the same float32 or float64.
        return [None if v is None else _java_float(v) for v in values.cast(pa.string()).to_pylist()]
    if types.is_date32(kind):
        return [None if v is None else _date_text(v) for v in values.cast(pa.int32()).to_pylist()]
    if types.is_timestamp(kind) and kind.unit == "us":
        zoned = kind.tz is not None
        micros = values.cast(pa.int64()).to_pylist()
        return [None if v is None else _timestamp_text(v, zoned) for v in micros]
    if types.is_binary(kind) or types.is_large_binary(kind):
        return [None if v is None else v.decode("utf-8") for v in values.to_pylist()]
    raise TypeError(f"a table can't be partitioned by a column of type {kind}")


def _java_float(text: str) -> str:
    """Spell a float as Java does: `1.0`, `1.0E10`, `Infinity`."""
    number = Decimal(text)
    if not number.is_finite():
        return str(number)
    if number == 0:
        return "0.0"  # -0.0 is the same partition
    sign, digits, _ = number.normalize().as_tuple()
    exponent = number.adjusted()
    if -3 <= exponent < 7:
        plain = format(number.normalize(), "f")
        return plain if "." in plain else plain + ".0"
    tail = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{tail}E{exponent}"


def _date_text(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _timestamp_text(micros: int, zoned: bool) -> str:
    days, rest = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if zoned:
        return f"{_date_text(days)}T{clock}.{fraction:06d}Z"
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{_date_text(days)} {clock}{tail}"
