"""A user's Spark conf, read with types and with errors that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.plain_values import setting_text
from lakelog.logstores.errors import UnreadableValueError
from lakelog.logstores.keys import Key
from lakelog.logstores.logins import without_logins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DELTA_PREFIX = "spark.databricks.delta."
"""Where Delta's own keys live; a name without `spark.` is looked up under it."""

LAKELOG_PREFIX = "spark.lakelog."
"""Where the keys that only we have live."""

_T = TypeVar("_T")
_K = TypeVar("_K")


class DeltaConf(Mapping[str, str]):
    """An unchangeable view of a Spark conf.

    The mapping itself holds full keys. `read` takes a key of the registries
    (`lakelog.core.keys`, `lakelog.logstores.keys`). The `get_*` methods take a name that is made
    at run time: a full key, which starts with `spark.`, or the part of a Delta key after
    `spark.databricks.delta.`.
    """

    __slots__ = ("_derived", "_values")

    def __init__(self, values: Mapping[str, str | bool | float] | None = None) -> None:
        """Copy the values, so that a later change of the caller's dict changes nothing here.

        A bool or a number is taken as Spark's own conf takes it: as its text.

        Raises:
            DeltaAnalysisError: a value of another type; names the key and never the value.
        """
        self._values = {key: _text(key, value) for key, value in (values or {}).items()}
        self._derived: dict[Any, Any] = {}

    @classmethod
    def from_mapping(cls, conf: Mapping[str, str] | None) -> DeltaConf:
        """Give `conf` itself if it is a DeltaConf already, else a view of it (empty for None)."""
        return conf if isinstance(conf, DeltaConf) else cls(conf)

    def derived(self, make: Callable[[DeltaConf], _T]) -> _T:
        """What `make` makes of the conf, made once: the conf doesn't change."""
        found = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
        return found

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """Keys only: values may hold secrets."""
        return f"DeltaConf({sorted(self._values)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the logins of catalogs and services, which only the process that has them asks.

        The keys of storages travel: executors read and write files.
        """
        return DeltaConf, (without_logins(self._values),)

    def __copy__(self) -> DeltaConf:
        """This one: it does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DeltaConf:
        """This one: it does not change."""
        return self

    def read(self, key: Key[_K]) -> _K:
        """The value of a key of `lakelog.core.keys` or `lakelog.logstores.keys`, or its default.

        Raises:
            DeltaAnalysisError: a value of another kind; names key and value.
        """
        text = self._values.get(key.name)
        if text is None:
            return key.default
        try:
            return key.parse(text)
        except UnreadableValueError as exc:
            raise DeltaAnalysisError(str(exc), key=exc.key, value=text) from None

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
        return self.read(Key(full_key(name), "flag", default, ""))

    @overload
    def get_int(self, name: str, default: int) -> int: ...
    @overload
    def get_int(self, name: str, default: None = None) -> int | None: ...
    def get_int(self, name: str, default: int | None = None) -> int | None:
        """A whole number.

        Raises:
            DeltaAnalysisError: any other value; names key and value.
        """
        return self.read(Key(full_key(name), "whole", default, ""))

    @overload
    def get_float(self, name: str, default: float) -> float: ...
    @overload
    def get_float(self, name: str, default: None = None) -> float | None: ...
    def get_float(self, name: str, default: float | None = None) -> float | None:
        """A finite number.

        Raises:
            DeltaAnalysisError: any other value; names key and value.
        """
        return self.read(Key(full_key(name), "number", default, ""))


def _text(key: str, value: object) -> str:
    text = setting_text(value)
    if text is not None:
        return text
    raise DeltaAnalysisError(
        f"the conf {key} must be a string, a bool or a number, not {type(value).__name__}", key=key
    )


def full_key(name: str) -> str:
    """The conf key that a short name stands for."""
    return name if name.startswith("spark.") else DELTA_PREFIX + name


def option(given: Mapping[str, str], key: Key[_K]) -> _K:
    """The value of an option of a read or a write, or the key's default.

    Args:
        given: the options, by their names in lower case.
        key: named as the option is documented.

    Raises:
        DeltaAnalysisError: a value of another kind; names option and value.
    """
    try:
        return key.parse(given.get(key.name.lower()))
    except UnreadableValueError as exc:
        raise illegal_option(key.name, exc.value, exc.expected) from None


def illegal_option(name: str, text: str, expected: str) -> DeltaAnalysisError:
    """What refuses the value of an option, in Delta's words.

    Args:
        name: as the option is documented.
        text: as it was given.
        expected: completes "must be …".
    """
    return DeltaAnalysisError(
        f"[DELTA_ILLEGAL_OPTION] Invalid value '{text}' for option '{name}', must be {expected}",
        option=name,
        value=text,
    )


_OF_TABLES: Final = (
    DELTA_PREFIX,
    LAKELOG_PREFIX + "commit",
    "spark.databricks.io.skipping.",
    "spark.sql.decimalOperations.",
    "spark.sql.session.timeZone",
    "spark.sql.sources.",
    "spark.sql.parquet.",
    "spark.sql.files.",
    "spark.app.id",
    "spark.app.name",
)
"""What the keys begin with that reading and writing a table look at, whatever its storage."""


def travelling_conf(
    conf: Mapping[str, str], uri: str | None = None, also: Iterable[str] = ()
) -> dict[str, str]:
    """The keys that a reader or a writer of tables needs: its own, and those of its store.

    Credentials for databases, catalogs and whatever else a session is set up for stay behind. With
    a URI, so do those for other storages.

    Args:
        conf: the session's.
        uri: the table; `None` where it is not known yet.
        also: keys that are wanted besides those, or what they begin with: those of a LogStore of
            the user's own.

    Raises:
        LogStoreConfError: the keys that choose a store contradict each other.
    """
    from lakelog.logstores.travelling import settings_for

    return settings_for(conf, uri, _OF_TABLES, tuple(also))
