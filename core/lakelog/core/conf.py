"""A user's Spark conf, read with types and with errors that name the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

from lakelog.core.errors import DeltaAnalysisError

__all__ = ["DELTA_PREFIX", "LAKELOG_PREFIX", "DeltaConf"]

DELTA_PREFIX = "spark.databricks.delta."
"""Where Delta's own keys live; a name without `spark.` is looked up under it."""
LAKELOG_PREFIX = "spark.lakelog."
"""Where the keys that only we have live."""

_T = TypeVar("_T")
_BOOLEANS = {"true": True, "false": False}


class DeltaConf(Mapping[str, str]):
    """An unchangeable view of a Spark conf.

    The mapping itself holds full keys. The `get_*` methods take either a full key, which starts
    with `spark.`, or the part of a Delta key after `spark.databricks.delta.`, so that
    `conf.get_int("maxCommitAttempts", 10)` reads `spark.databricks.delta.maxCommitAttempts`.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str | bool | float] | None = None) -> None:
        """Copy the values, so that a later change of the caller's dict changes nothing here.

        A bool or a number is taken as Spark's own conf takes it: as its text.

        Raises:
            DeltaAnalysisError: a value of another type; names the key and never the value.
        """
        self._values = {key: _text(key, value) for key, value in (values or {}).items()}

    @classmethod
    def of(cls, conf: Mapping[str, str] | None) -> DeltaConf:
        """Give `conf` itself if it is a DeltaConf already, else a view of it (empty for None)."""
        return conf if isinstance(conf, DeltaConf) else cls(conf)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """Keys only: values may hold secrets."""
        return f"DeltaConf({sorted(self._values)})"

    @overload
    def get_str(self, name: str, default: str) -> str: ...
    @overload
    def get_str(self, name: str, default: None = None) -> str | None: ...
    def get_str(self, name: str, default: str | None = None) -> str | None:
        """The value as it stands, or `default` where the key is not set."""
        return self._values.get(full_key(name), default)

    @property
    def session_tz(self) -> str:
        """The zone of times that name none; UTC where the session says nothing."""
        return self._values.get("spark.sql.session.timeZone", "UTC")

    @overload
    def get_bool(self, name: str, default: bool) -> bool: ...
    @overload
    def get_bool(self, name: str, default: None = None) -> bool | None: ...
    def get_bool(self, name: str, default: bool | None = None) -> bool | None:
        """`true` or `false`, in any case.

        Raises:
            DeltaAnalysisError: any other value; names key and value.
        """
        return self._parsed(name, default, _boolean, "true or false")

    @overload
    def get_int(self, name: str, default: int) -> int: ...
    @overload
    def get_int(self, name: str, default: None = None) -> int | None: ...
    def get_int(self, name: str, default: int | None = None) -> int | None:
        """A whole number.

        Raises:
            DeltaAnalysisError: any other value; names key and value.
        """
        return self._parsed(name, default, int, "a whole number")

    @overload
    def get_float(self, name: str, default: float) -> float: ...
    @overload
    def get_float(self, name: str, default: None = None) -> float | None: ...
    def get_float(self, name: str, default: float | None = None) -> float | None:
        """A finite number.

        Raises:
            DeltaAnalysisError: any other value; names key and value.
        """
        return self._parsed(name, default, _finite, "a number")

    def _parsed(
        self, name: str, default: _T | None, parse: Callable[[str], _T], expected: str
    ) -> _T | None:
        key = full_key(name)
        text = self._values.get(key)
        if text is None:
            return default
        try:
            return parse(text.strip())
        except (ValueError, KeyError):
            raise DeltaAnalysisError(
                f"the conf {key} must be {expected}, but it is {text!r}", key=key, value=text
            ) from None


def _text(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise DeltaAnalysisError(
        f"the conf {key} must be a text, a bool or a number, not {type(value).__name__}", key=key
    )


def full_key(name: str) -> str:
    """The conf key that a short name stands for."""
    return name if name.startswith("spark.") else DELTA_PREFIX + name


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


def _finite(text: str) -> float:
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value
