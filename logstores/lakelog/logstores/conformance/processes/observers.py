"""A process that looks at a store on command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.expect import names, read_or_none

if TYPE_CHECKING:
    from lakelog.logstores.conformance.processes.children import Channel
    from lakelog.logstores.contract import LogStore


def observe(store: LogStore, channel: Channel) -> None:
    """Answer each `[start, path]` with the names from the start and the lines of the path."""
    for start, path in channel:
        try:
            found: object = [names(store, start), read_or_none(store, path)]
        except Exception as error:  # noqa: BLE001, RUF100  # the check wants to name it
            found = f"{type(error).__name__}: {error}"
        channel.answer(found)
