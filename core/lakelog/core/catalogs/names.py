"""Names in a catalog, and how they are told from paths.

A text is a name where it has three parts, and the conf knows the first as a catalog; any other is a
path, as ever. `./lake.sales.orders` is the path of a folder of that name. What begins with a known
catalog and a dot, and has no slash, is meant as a name: with other parts it is an error, since a
path would be a folder here into which rows go unnoticed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

SPARK_PREFIX: Final = "spark.sql.catalog."
UNITY_CLASS: Final = "io.unitycatalog.spark.UCSingleCatalog"
"""The class by which Spark's conf says that a catalog is Unity Catalog."""
_PART: Final = r"(?:`(?:[^`]|``)+`|[^`./\\:\s]+)"
_FIRST: Final = re.compile(rf"({_PART})\.")
_HAS_FOLDERS: Final = re.compile(r"[/\\:]")
_NAME: Final = re.compile(rf"({_PART})(?:\.({_PART}))?(?:\.({_PART}))?")


class TableName(NamedTuple):
    """`catalog.schema.table`."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        """As SQL spells it: a part that is no plain word stands in backquotes."""
        return ".".join(_quoted(part) for part in self)


def _quoted(part: str) -> str:
    # Spark reads no other letters without them.
    return part if part.isascii() and part.isidentifier() else "`" + part.replace("`", "``") + "`"


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def known_catalogs(conf: Mapping[str, str]) -> frozenset[str]:
    """The names of the catalogs that the conf has a class or, for Unity Catalog, a server for."""
    own, found = f"{keys.CATALOG.name}.", set()
    for key, value in conf.items():
        if key.startswith(own) and key.endswith(".class"):
            found.add(key[len(own) :].removesuffix(".class"))
        elif key.startswith(SPARK_PREFIX):
            name = key[len(SPARK_PREFIX) :]
            bare = name.removesuffix(".uri")
            is_unity = conf.get(SPARK_PREFIX + bare, UNITY_CLASS).strip() == UNITY_CLASS
            if is_unity and (bare != name or value.strip() == UNITY_CLASS):
                found.add(bare)
    return frozenset(name for name in found if name and "." not in name)


def table_name(text: object, known: frozenset[str]) -> TableName | None:
    """The name that a text is; None where it is a path.

    Args:
        text: what a caller gave for a table.
        known: the `known_catalogs` of the user's conf.

    Raises:
        DeltaAnalysisError: it begins with a catalog of these, and is no name there.
    """
    if not known or not isinstance(text, str):
        return None
    name = spelled_name(text)
    if name is not None and name.catalog in known:
        return name
    first = _FIRST.match(text)
    meant = None if first is None else _plain(first[1])
    alike = [each for each in sorted(known) if meant and each.lower() == meant.lower()]
    found = meant if meant in alike else next(iter(alike), None)
    if found is None or _HAS_FOLDERS.search(text):
        return None
    why = f"that is spelt {found}" if found != meant else "it needs three parts, none of them empty"
    raise DeltaAnalysisError(
        f"{text!r} begins with a catalog of the conf, but is no name there ({why}): write "
        "catalog.schema.table, and a part with other characters than letters, digits and _ in "
        f"backquotes. A folder of that name is './{text}'.",
        table=text,
    )


def spelled_name(text: str) -> TableName | None:
    """The name that a text has the form of, whatever catalogs there are."""
    found = name_parts(text)
    return TableName(*found) if found is not None and len(found) == 3 else None


def name_parts(text: str) -> list[str] | None:
    """The one to three parts of what has the form of a catalog's, a schema's or a table's name."""
    found = _NAME.fullmatch(text)
    return None if found is None else [_plain(each) for each in found.groups() if each is not None]
