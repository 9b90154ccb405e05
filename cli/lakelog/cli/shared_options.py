"""The options that commands share, each spelled and explained once.

@click.command()
@uri_argument
@conf_options
@json_option
def command(uri: str, conf: dict[str, str], as_json: bool) -> None: ...
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from lakelog.core.engine.tables import parse_properties

if TYPE_CHECKING:
    from collections.abc import Callable

_CATALOG = re.compile(r"(.+?)=(\w+://.*)", re.DOTALL)
_F = TypeVar("_F", bound="Callable[..., Any] | click.Command")


class Option(Protocol):
    """What gives a command an option or an argument."""

    def __call__(self, function: _F, /) -> _F:
        """The command with it."""
        ...


uri_argument: Option = click.argument("uri")
"""The URI that the command is about: a table, or the folder that is to hold tables."""
json_option: Option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)
"""One JSON document on standard output. Passed on as `as_json`."""


def conf_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--conf`, `--conf-file` and `--catalog`, merged into one argument, `conf: dict[str, str]`.

    A `--conf` wins over the file, and a `--catalog` over both.
    """

    @click.option(
        "--conf",
        "pairs",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting, named as in Spark's conf. May be repeated; wins over the file's.",
    )
    @click.option(
        "--conf-file",
        "conf_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A spark-defaults.conf file. Put secrets here: other users can see command lines.",
    )
    @click.option(
        "--catalog",
        "catalogs",
        metavar="NAME=URL",
        multiple=True,
        help="The server of a Unity Catalog; tables are then named NAME.schema.table. Its token: "
        "spark.sql.catalog.NAME.token in --conf-file.",
    )
    @functools.wraps(function)
    def merged(
        *args: Any,
        pairs: tuple[str, ...],
        conf_file: Path | None,
        catalogs: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        conf = {} if conf_file is None else _from_file(conf_file)
        for number, pair in enumerate(pairs, start=1):
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                # The text is not shown: it may be a secret without its key.
                raise click.UsageError(f"--conf number {number} is not KEY=VALUE.")
            conf[key.strip()] = value.strip()
        for number, given in enumerate(catalogs, start=1):
            # A name may have an equals sign of its own.
            found = _CATALOG.fullmatch(given)
            parts = given.partition("=") if found is None else (found[1], "=", found[2])
            name, equals, url = (part.strip() for part in parts)
            if not (equals and name and url):
                raise click.UsageError(f"--catalog number {number} is not NAME=URL.")
            if "." in name:
                raise click.UsageError(f"--catalog number {number}: its name can't have a dot.")
            conf[f"spark.sql.catalog.{name}.uri"] = url
        return function(*args, conf=conf, **kwargs)

    return merged


def _from_file(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--conf-file {path} can't be read: {error}") from None
