"""What the commands about one table share: its version's options, and how numbers are spelled."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lakelog.cli import startup
from lakelog.core.engine.shown import count_text
from lakelog.core.engine.tables import known_catalogs, normalize_table_uri, table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.cli.shared_options import Option
    from lakelog.core import DeltaLog, Progress, Snapshot
    from lakelog.core.engine.log import LogSegment
    from lakelog.logstores import LogStore

_F = TypeVar("_F", bound="Callable[..., Any]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


def version_options(function: _F) -> _F:
    """`--version` and `--timestamp`, at most one of which may be given."""
    function = click.option(
        "--timestamp",
        metavar="TIME",
        help="The newest version at or before a time: ISO 8601, UTC if it has no zone.",
    )(function)
    return click.option(
        "--version",
        type=click.IntRange(0),
        metavar="N",
        help="An older version; the newest by default.",
    )(function)


def limit_option(default: int, what: str) -> Callable[[_F], _F]:
    """`--limit`: how many rows are shown."""
    return click.option(
        "--limit", type=click.IntRange(1), default=default, show_default=True, help=what
    )


all_option: Option = click.option("--all", "everything", is_flag=True, help="No limit.")
"""Takes the limit away. Passed on as `everything`."""


def table_uri(uri: str) -> str:
    """The table's URI in its normal form.

    Raises:
        click.UsageError: it is not a URI of a table.
    """
    try:
        return normalize_table_uri(uri)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None


def refuse_name(uri: str, conf: Mapping[str, str]) -> None:
    """Refuse the name of a table where files are written beside it.

    Raises:
        click.UsageError: it is a name in a catalog of the conf, and no path.
    """
    if table_name(uri, known_catalogs(conf)) is not None:
        raise click.UsageError(
            f"This command takes a path, and {uri} is a name in a catalog: lakelog describe {uri} "
            "shows where the table is."
        )


def given_table(uri: str, conf: Mapping[str, str]) -> str:
    """A name in a catalog as it is, and the URI of a table in its normal form.

    Raises:
        click.UsageError: it is not a URI of a table.
    """
    return table_uri(uri) if table_name(uri, known_catalogs(conf)) is None else uri


def open_log(uri: str, conf: Mapping[str, str], *, makes: bool = False) -> DeltaLog:
    """The log of a table, by its URI or its name in a catalog, for one command alone.

    Args:
        uri: of the table, or its name.
        conf: the user's.
        makes: whether the command makes the table where its catalog has none of the name.

    Raises:
        click.UsageError: it is not a URI of a table.
        LogStoreError: the conf does not lead to a store.
        DeltaError: it is a name, and its catalog does not have it, or can't be asked.
    """
    from lakelog.core.engine.tables import log_of, log_to_make

    if startup.is_program:
        startup.keep_pandas_out()
    return (log_to_make if makes else log_of)(given_table(uri, conf), conf)


def place_and_store(uri: str, conf: Mapping[str, str]) -> tuple[str, LogStore]:
    """Where a table is, and the store of its log; of a path, without loading Arrow.

    Raises:
        click.UsageError: it is not a URI of a table.
        LogStoreError: the conf does not lead to a store.
        DeltaError: it is a name, and its catalog does not have it, or can't be asked.
    """
    from lakelog.logstores import log_store_for

    if table_name(uri, known_catalogs(conf)) is not None:
        log = open_log(uri, conf)
        return log.table, log.store
    place = table_uri(uri)
    return place, log_store_for(place, conf)


def opened(log: DeltaLog, version: int | None, timestamp: str | None) -> Snapshot:
    """The version that the options ask for.

    Raises:
        click.UsageError: both are given.
        DeltaError: there is no such table or version, or it can't be read.
    """
    refuse_both(version, timestamp)
    if version is None and timestamp is None:
        return log.snapshot
    return log.snapshot_at(version, timestamp)


def looked_at(log: DeltaLog, version: int | None, timestamp: str | None) -> Snapshot:
    """The version that the options ask for, of a table that lakelog may not be able to read.

    Raises:
        click.UsageError: both are given.
        DeltaError: there is no such table or version, its log is damaged, or it is a path, and a
            catalog governs the table.
    """
    from lakelog.core import Snapshot
    from lakelog.core.engine.commit import refuse_path
    from lakelog.core.engine.log import load_state
    from lakelog.core.engine.tables import version_at

    def at(wanted: int | None) -> Snapshot:
        # Past `DeltaLog.snapshot`, which refuses tables that can't be read.
        state = load_state(log.store, log.table, wanted)
        refuse_path(log.store, state.protocol, state.metadata, log.table)
        return Snapshot(log.table, log.store, log.conf, log.clock, state)

    refuse_both(version, timestamp)
    return at(version) if timestamp is None else at(version_at(at(None), timestamp))


_FEW_BYTES: Final = 32 << 20


def later(log: DeltaLog, earlier: Snapshot, segment: LogSegment) -> Snapshot | None:
    """A version, made of an older one and the commits between; `None` where they are many.

    Args:
        log: the table.
        earlier: the older version, as `looked_at` gives it.
        segment: what the log has of the version.

    Raises:
        DeltaError: a commit is damaged, or a catalog governs the table.
    """
    from lakelog.core import Snapshot
    from lakelog.core.engine.commit import refuse_path
    from lakelog.core.engine.log import advance, list_log, read_commits

    first, last = earlier.version + 1, segment.version
    commits = list_log(log.store, log.table, first, last).commits
    size = sum(each.length for each in commits.values())
    if first > last or len(commits) != last - first + 1 or size > _FEW_BYTES:
        return None
    paths = {version: file.path for version, file in commits.items()}
    state = advance(earlier.state, read_commits(log.store, log.table, paths), segment.timestamp)
    refuse_path(log.store, state.protocol, state.metadata, log.table)
    return Snapshot(log.table, log.store, log.conf, log.clock, replace(state, segment=segment))


def refuse_governed(store: LogStore, place: str, version: int | None) -> None:
    """Refuse to show by its path a table that a catalog governs.

    The folder of such a table may have holes, where commits are not published: its oldest version
    says it then. A log of which neither can be read doesn't.

    Raises:
        UnsupportedFeatureError: it is such a table.
    """
    from lakelog.core.engine.commit import refuse_path
    from lakelog.core.engine.log import list_log, load_state
    from lakelog.core.errors import DeltaError

    def oldest() -> int | None:
        return list_log(store, place).earliest()

    versions: tuple[Callable[[], int | None], ...] = (lambda: version, oldest)
    for which in versions:
        try:
            state = load_state(store, place, which())
        except (DeltaError, OSError, ValueError):
            continue
        refuse_path(store, state.protocol, state.metadata, place)
        return


def whole_number(text: str) -> int | None:
    """A version, or another number from 0 on, as a text of digits; `None` if it is none.

    Python reads texts of thousands of digits in minutes, or refuses them; no version has as many.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def refuse_both(version: int | None, timestamp: str | None) -> None:
    """Refuse a version and a time at once.

    Raises:
        click.UsageError: both are given.
    """
    if version is not None and timestamp is not None:
        raise click.UsageError("Give --version or --timestamp, not both.")


def saying(tell: Callable[[str], None]) -> Callable[[Progress], None]:
    """What an operation calls, for a line of text: `rewriting: 3 of 12 files`."""

    def report(now: Progress) -> None:
        count = count_text(now.done, now.unit.removesuffix("s"))
        if now.total is not None:
            count = f"{now.done:,} of {now.total:,} {now.unit}"
        tell(f"{now.text}: {count}")

    return report


def one_line(value: object) -> str:
    """Text for a cell: without line breaks."""
    return " ".join(str(value).split())
