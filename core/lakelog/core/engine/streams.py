"""Streams: what comes next in a table's log, as rows or as changes of rows.

`StreamSource` and `ChangeSource` plan batches between two `SourceOffset`s, in Delta's own JSON, so
that a query may go on where another engine's ended. A change of the table that a query can't follow
ends it with an error that says which commit made it. `ChangeFeed` reads the rows that changed
between two versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.change_feed.changed_files import ChangedFile, with_commit_columns
    from lakelog.core.change_feed.feed import ChangeFeed, change_readers, change_schema
    from lakelog.core.change_feed.versions import ChangeBounds
    from lakelog.core.streaming.change_source import ChangeSource
    from lakelog.core.streaming.offsets import SourceOffset
    from lakelog.core.streaming.stream_options import STREAM_OPTIONS, StreamOptions
    from lakelog.core.streaming.table_source import StreamSource
    from lakelog.core.streaming.tracking.tracker import stream_snapshot
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "change_feed.feed": "ChangeFeed change_readers change_schema",
            "change_feed.changed_files": "ChangedFile with_commit_columns",
            "change_feed.versions": "ChangeBounds",
            "streaming.change_source": "ChangeSource",
            "streaming.offsets": "SourceOffset",
            "streaming.stream_options": "STREAM_OPTIONS StreamOptions",
            "streaming.table_source": "StreamSource",
            "streaming.tracking.tracker": "stream_snapshot",
        },
        below="lakelog.core",
    )
