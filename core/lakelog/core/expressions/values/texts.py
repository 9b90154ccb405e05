"""Functions of Spark's SQL on text that Arrow lacks, or that mean something else there.

Positions and lengths count code points, as in Spark.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.by_rows import by_rows, check_length, plain
from lakelog.core.expressions.values.casts import cast_value
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_STRING, _BINARY = PrimitiveType("string"), PrimitiveType("binary")
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")
_BOOLEAN = PrimitiveType("boolean")
_COUNTS = (PrimitiveType("byte"), PrimitiveType("short"), _INTEGER, PrimitiveType("void"))
_ALL_BITS: Final = (1 << 64) - 1
_SAFE: Final = re.compile(
    r"(?:[A-Za-z0-9 _,:;@#%&=<>~!'\"/-]|\[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[ _.,:;@])+\]"
    r"|\((?:\?:)?|[)|.^$]|\\[dws.()+*?/|$^{}\[\]-]"
    r"|(?<=[^*+?{(|^])(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\}))*"
)
"""Regular expressions that Java and Python read alike, as long as `\\w` and its like are ASCII."""
_REPEATED_GROUP: Final = re.compile(r"\)(?:[*+]|\{[0-9]+,|\{[0-9]{2,})")
"""`(a+)+` may take for ever on a short text, and a table's metadata may ask for it."""
_LINE_ENDS: Final = re.compile("[\n\r\x85\u2028\u2029]")
"""What `.` and `$` stop at in Java, some of it in Python."""


def _of_texts(
    function: Callable[..., Any], result: PrimitiveType, *rest: PrimitiveType, optional: int = 0
) -> Rule:
    """A function of a text and of further arguments of some types."""
    return _of(function, result, _STRING, *rest, optional=optional)


def _of(
    function: Callable[..., Any], result: PrimitiveType, *kinds: PrimitiveType, optional: int = 0
) -> Rule:
    def apply(context: EvalContext, *values: Value) -> Value:
        if not len(kinds) - optional <= len(values) <= len(kinds):
            raise ValueError("another number of arguments")
        taken = [_taken(v, kind, context) for v, kind in zip(values, kinds, strict=False)]
        return by_rows(function, result, *taken)

    return apply


def _taken(value: Value, kind: PrimitiveType, context: EvalContext) -> Value:
    """An argument in the type that the function has for it, where Spark casts by itself."""
    if kind == _INTEGER and value.data_type not in _COUNTS:
        raise NotInCoreError(f"{value.data_type} as a count")
    if kind == _BINARY and value.data_type not in (_STRING, _BINARY):
        raise NotInCoreError(f"{value.data_type} as bytes")
    return cast_value(value, kind, context)


def _instr(text: str, part: str) -> int:
    return text.find(part) + 1


def _locate(part: str, text: str, start: int = 1) -> int:
    return text.find(part, start - 1) + 1 if start > 0 else 0


def _initcap(text: str) -> str:
    if not text.isascii():
        raise NotInCoreError("initcap of letters beyond ASCII")
    return " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" "))


def _padded(side: str) -> Callable[..., str]:
    def pad(text: str, width: int, padding: str = " ") -> str:
        if len(text) >= width:
            return text[: max(width, 0)]
        check_length(width)
        missing = width - len(text)
        filling = (padding * (missing // len(padding) + 1))[:missing] if padding else ""
        return filling + text if side == "left" else text + filling

    return pad


def _repeated(text: str, times: int) -> str:
    check_length(len(text) * times)
    return text * max(times, 0)


def _split_part(text: str, separator: str, part: int) -> str:
    if part == 0:
        raise pa.ArrowInvalid("split_part counts from 1, or from -1 from the end")
    parts = text.split(separator) if separator else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for at, each in enumerate(old):
        table.setdefault(ord(each), new[at] if at < len(new) else None)
    return text.translate(table)


def _concat_ws(context: EvalContext, *values: Value) -> Value:
    """Nulls are left out; a separator that is null makes all of it null."""

    def joined(separator: str | None, *parts: str | None) -> str | None:
        if separator is None:
            return None
        return separator.join(part for part in parts if part is not None)

    texts = [cast_value(each, _STRING, context) for each in values]
    return by_rows(joined, _STRING, *texts, nulls=True, nullable=texts[0].nullable)


def _pattern(value: Value) -> re.Pattern[str]:
    text = plain(value, str)
    if _SAFE.fullmatch(text) is None or _REPEATED_GROUP.search(text) is not None:
        raise NotInCoreError(f"the regular expression {text!r}")
    try:
        return re.compile(text, re.ASCII)
    except re.error:
        raise NotInCoreError(f"the regular expression {text!r}") from None


def _searched(pattern: re.Pattern[str], text: str) -> str:
    if _LINE_ENDS.search(text) is not None and ("." in pattern.pattern or "$" in pattern.pattern):
        raise NotInCoreError("a regular expression on text with line ends")
    return text


def matches(context: EvalContext, text: Value, pattern: Value) -> Value:
    """`rlike`: whether a regular expression is found in a text."""
    if pattern.constant and not pattern.of(None).is_valid:
        return by_rows(lambda *_: None, _BOOLEAN, cast_value(text, _STRING, context), pattern)
    wanted = _pattern(pattern)
    return by_rows(
        lambda each: wanted.search(_searched(wanted, each)) is not None,
        _BOOLEAN,
        cast_value(text, _STRING, context),
    )


def _extracted(
    context: EvalContext, text: Value, pattern: Value, number: Value | None = None
) -> Value:
    wanted, group = _pattern(pattern), plain(number, int, 1)
    if not 0 <= group <= wanted.groups:
        raise NotInCoreError(f"the group {group} of {wanted.pattern!r}")

    def first(each: str) -> str:
        found = wanted.search(_searched(wanted, each))
        return "" if found is None else found[group] or ""

    return by_rows(first, _STRING, cast_value(text, _STRING, context))


def _replaced(context: EvalContext, text: Value, pattern: Value, new: Value) -> Value:
    wanted, by = _pattern(pattern), plain(new, str)
    if "$" in by or "\\" in by or wanted.search("") is not None:
        raise NotInCoreError("a replacement with groups, or of nothing")
    return by_rows(
        lambda each: wanted.sub(by, _searched(wanted, each)),
        _STRING,
        cast_value(text, _STRING, context),
    )


def _hashed(name: str) -> Rule:
    return _of(lambda each: hashlib.new(name, each).hexdigest(), _STRING, _BINARY)


def _sha2(context: EvalContext, value: Value, bits: Value) -> Value:
    size = plain(bits, int)
    if size not in (0, 224, 256, 384, 512):
        raise NotInCoreError(f"sha2 with {size} bits")
    return _hashed(f"sha{size or 256}")(context, value)


def _hexadecimal(context: EvalContext, value: Value) -> Value:
    """Of a number's 64 bits without the zeros in front, or of bytes."""
    if value.data_type in (*_COUNTS, _LONG):
        number = cast_value(value, _LONG, context)
        return by_rows(lambda n: f"{n & _ALL_BITS:X}", _STRING, number)
    data = _taken(value, _BINARY, context)
    return by_rows(lambda each: each.hex().upper(), _STRING, data)


def _char(context: EvalContext, value: Value) -> Value:
    """Of the last byte of a number; Spark knows no character beyond Latin-1 here."""
    if value.data_type not in (*_COUNTS, _LONG):
        raise NotInCoreError(f"chr of {value.data_type}")
    number = cast_value(value, _LONG, context)
    return by_rows(lambda n: chr(n & 0xFF) if n >= 0 else "", _STRING, number)


def _place_in(text: str, listed: str) -> int:
    """The place in a list with commas; what has a comma itself is in none."""
    items = listed.split(",")
    return items.index(text) + 1 if text in items else 0


def _up_to(text: str, separator: str, count: int) -> str:
    if len(separator) > 1:
        raise NotInCoreError("substring_index by more than one character")
    if not separator or not count:
        return ""
    parts = text.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


TEXTS: Final[dict[str, Rule]] = {
    "ascii": _of_texts(lambda text: ord(text[0]) if text else 0, _INTEGER),
    "bit_length": _of(lambda data: 8 * len(data), _INTEGER, _BINARY),
    **dict.fromkeys(("char", "chr"), _char),
    "concat_ws": _concat_ws,
    "contains": _of_texts(lambda text, part: part in text, _BOOLEAN, _STRING),
    "crc32": _of(zlib.crc32, _LONG, _BINARY),
    "endswith": _of_texts(str.endswith, _BOOLEAN, _STRING),
    "find_in_set": _of_texts(_place_in, _INTEGER, _STRING),
    "hex": _hexadecimal,
    "initcap": _of_texts(_initcap, _STRING),
    "instr": _of_texts(_instr, _INTEGER, _STRING),
    "locate": _of_texts(_locate, _INTEGER, _STRING, _INTEGER, optional=1),
    "lpad": _of_texts(_padded("left"), _STRING, _INTEGER, _STRING, optional=1),
    "md5": _hashed("md5"),
    "octet_length": _of(len, _INTEGER, _BINARY),
    **dict.fromkeys(("regexp", "regexp_like", "rlike"), matches),
    "regexp_extract": _extracted,
    "regexp_replace": _replaced,
    "repeat": _of_texts(_repeated, _STRING, _INTEGER),
    "reverse": _of_texts(lambda text: text[::-1], _STRING),
    "rpad": _of_texts(_padded("right"), _STRING, _INTEGER, _STRING, optional=1),
    **dict.fromkeys(("sha", "sha1"), _hashed("sha1")),
    "sha2": _sha2,
    "space": _of(lambda count: _repeated(" ", count), _STRING, _INTEGER),
    "split_part": _of_texts(_split_part, _STRING, _STRING, _INTEGER),
    "startswith": _of_texts(str.startswith, _BOOLEAN, _STRING),
    "substring_index": _of_texts(_up_to, _STRING, _STRING, _INTEGER),
    "translate": _of_texts(_translate, _STRING, _STRING, _STRING),
}
"""By name in lower case."""
