"""Commits: what a table asks of its writers, and what history says of a commit.

`check_readable` and `check_writable` raise `UnsupportedFeatureError` for a table that this version
can't read or write; call them before any work. `lock_for` says which lock a commit takes, and why.
`write_metrics` and `streaming_metrics` count the files of a commit for its `Operation`.
`end_command` commits what a command wrote, with what the table wants beside and after it (the
batch of an application, whether rows kept their ids, auto compaction). The commit itself, its
conflicts and its outcome are `OptimisticTransaction`'s. `CommitService` answers those who let it
commit for several hosts, and `refusal` is the answer to what never reaches it.

Metrics and spans of commands and of streams' batches are nothing where telemetry is off: `command`
makes a function's calls those of a command, `observing` runs anything in a span, `traceparent` is
the caller's span for another process, which gives it to `observing` as a link, and `flush` exports
before a process ends without notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.actions.operation import json_text, streaming_metrics, write_metrics
    from lakelog.core.catalogs.refusals import refuse_path
    from lakelog.core.commit.lock import LockChoice, lock_for
    from lakelog.core.features.clustering import clustering_columns
    from lakelog.core.features.property_table import KNOWN
    from lakelog.core.features.protocol import check_readable, check_writable, supported_features
    from lakelog.core.features.registry import FEATURES, Support, active_features
    from lakelog.core.maintain.after_command import end_command
    from lakelog.core.telemetry.catalogue import BATCH, COMMAND, STATEMENT
    from lakelog.core.telemetry.switch import command, flush, observing, traceparent
    from lakelog.core.transaction.commit_service import Answer, CommitService, refusal
    from lakelog.core.transaction.service_commit import COMMIT_PATH, MOST_BYTES, TOKEN_VARIABLE
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions.operation": "json_text streaming_metrics write_metrics",
            "catalogs.refusals": "refuse_path",
            "commit.lock": "LockChoice lock_for",
            "features.clustering": "clustering_columns",
            "features.property_table": "KNOWN",
            "features.protocol": "check_readable check_writable supported_features",
            "features.registry": "FEATURES Support active_features",
            "maintain.after_command": "end_command",
            "telemetry.catalogue": "BATCH COMMAND STATEMENT",
            "telemetry.switch": "command flush observing traceparent",
            "transaction.commit_service": "Answer CommitService refusal",
            "transaction.service_commit": "COMMIT_PATH MOST_BYTES TOKEN_VARIABLE",
        },
        below="lakelog.core",
    )
