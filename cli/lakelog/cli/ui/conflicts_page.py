"""Who loses commits to whom, as it happens."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.conflicts.conflicts_command import reading_document
from lakelog.cli.conflicts.event_files import EventTail
from lakelog.cli.report.page import contention
from lakelog.cli.ui.frame import live, trouble
from lakelog.cli.ui.lake import READING_ERRORS
from lakelog.core.engine.shown import count_text, html_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.cli.secrets import Scrubber

_KEPT: Final = 50_000
_LOST: Final = 200
_EVERY: Final = 3
_HOW: Final = (
    '<p class="empty">No events are given. Have jobs write them with '
    "<code>spark.lakelog.commitEvents.path</code>, and name the file or folder: "
    "<code>lakelog ui … --events EVENTS</code>.</p>"
)


class Conflicts:
    """The events of some places, read on at each look. Safe for threads."""

    def __init__(self, events: Sequence[str], conf: Mapping[str, str], scrubber: Scrubber) -> None:
        """Read nothing yet.

        Args:
            events: files, folders or globs, as `lakelog conflicts` takes them.
            conf: of the storages that they are on.
            scrubber: takes secrets out of what is shown.
        """
        self._places, self._scrubber = list(events), scrubber
        self._tail = EventTail(events, conf, _KEPT)
        self._lock = threading.Lock()

    def page(self, only: str | None) -> str:
        """What the events say.

        Args:
            only: a table's URI; None for all tables.
        """
        if not self._places:
            return _HOW
        try:
            found, forgotten = self._document(only)
        except READING_ERRORS as error:
            return live(trouble(self._scrubber.text(str(error))), every=_EVERY)
        files = count_text(len(found["files"]), "event file")
        note = f" The oldest {count_text(forgotten, 'event')} are left out." if forgotten else ""
        if not found["events"]:
            return live(f'<p class="empty">No event yet in {files}.</p>', every=_EVERY)
        text = f"From {files}, read on every {_EVERY} seconds.{note}"
        return live(
            f"<p>{html_text(text, 300)}</p>{contention(found)}{_steps(found)}", every=_EVERY
        )

    def _document(self, only: str | None) -> tuple[dict[str, Any], int]:
        with self._lock:
            self._tail.look()
            found = reading_document(self._tail.reading, only, None, _LOST)
            return self._scrubber.data(found), self._tail.forgotten


def _steps(found: Mapping[str, Any]) -> str:
    items = "".join(
        f"<li>{html_text(' and '.join(dict.fromkeys(each['jobs'])), 300)}, by "
        f"{html_text(each['by'], 300)}: {html_text(each['reason'], 500)}.</li>"
        for each in found["separate"]
    )
    return f"<h2>Which jobs to separate</h2><ul>{items}</ul>" if items else ""
