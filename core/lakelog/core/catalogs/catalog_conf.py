"""The keys of one catalog: Spark's `spark.sql.catalog.<name>.*`, and lakelog's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.catalogs.names import SPARK_PREFIX
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

UNITY: Final = "lakelog.core.catalogs.unity.UnityCatalog"
"""Our class for Unity Catalog."""


class CatalogConf:
    """What a conf says of one catalog. Its `repr` shows no value."""

    def __init__(self, name: str, conf: Mapping[str, str]) -> None:
        """Read nothing yet."""
        self.name = name
        self.conf = conf

    def __repr__(self) -> str:
        """The name alone."""
        return f"CatalogConf({self.name})"

    def spark_key(self, rest: str = "") -> str:
        """Spark's key, in full."""
        return f"{SPARK_PREFIX}{self.name}.{rest}" if rest else f"{SPARK_PREFIX}{self.name}"

    def own_key(self, rest: str) -> str:
        """Lakelog's key, in full."""
        return f"{keys.CATALOG.name}.{self.name}.{rest}"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The name, and all that is set: the same lead to the same catalog, as the same user."""
        # Without the key that names a class of Spark's: a server or a class of ours makes it known.
        prefixes = (f"{self.spark_key()}.", self.own_key(""))
        found = (pair for pair in self.conf.items() if pair[0].startswith(prefixes))
        return (("", self.name), *sorted(found))

    @property
    def keys(self) -> list[str]:
        """Those of `pairs`, which are all that another process needs to ask the same catalog."""
        return [key for key, _ in self.pairs if key]

    def get(self, rest: str = "") -> str | None:
        """The value of a key of Spark's; None where it is not set or empty."""
        return self.conf.get(self.spark_key(rest), "").strip() or None

    def own(self, rest: str) -> str | None:
        """The value of a key of lakelog's; None where it is not set or empty."""
        return self.conf.get(self.own_key(rest), "").strip() or None

    @property
    def class_path(self) -> str:
        """The class that serves it, of those that `known_catalogs` has."""
        return self.own("class") or UNITY

    @property
    def timeout(self) -> float:
        """Seconds that connecting, and each wait for an answer, may take."""
        text = self.own("timeout")
        try:
            seconds = 60.0 if text is None else float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < 86_400:
            raise DeltaAnalysisError(
                f"{self.own_key('timeout')} must be a number of seconds above zero, not {text!r}.",
                key=self.own_key("timeout"),
            )
        return seconds
