"""The log itself: its files, and replaying a large one on many machines.

A `Replayer` given to `load_state` gets a `ReplayJob`, and may read the parts of its checkpoint and
its commits wherever it likes: `PartReader` and `parse_commit` can be pickled. `file_keys` tells
which rows are about the same file. What can't be read is a `CorruptCheckpointError`,
`CorruptCommitError` or `LogGapError`. The other names let a program look at a log that may be
broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.actions.file_keys import canonical_paths, file_keys
    from lakelog.core.actions.file_table import (
        FILE_SCHEMA,
        NO_FILES,
        TOMBSTONE_SCHEMA,
        from_add_files,
        to_add_files,
    )
    from lakelog.core.catalogs.inspection import GovernedLog, inspect
    from lakelog.core.log.budget import LogBudget
    from lakelog.core.log.checkpoint_parts import Part, PartReader, cast
    from lakelog.core.log.checkpoint_reader import CheckpointReader
    from lakelog.core.log.commit_file import Commit, parse_commit
    from lakelog.core.log.commit_history import commit_times
    from lakelog.core.log.drafts import drafts
    from lakelog.core.log.file_changes import FileChanges, read_file_changes
    from lakelog.core.log.file_names import log_path
    from lakelog.core.log.last_checkpoint import read_last_checkpoint
    from lakelog.core.log.segment import (
        CheckpointFiles,
        Listing,
        LogSegment,
        find_segment,
        list_log,
    )
    from lakelog.core.maintain.repair.log_defects import LogDefects, find_newest
    from lakelog.core.state.file_selection import FileSelection
    from lakelog.core.state.replay import State, advance, load_state, read_commits
    from lakelog.core.state.replayer import Kind, Replayer, ReplayJob
    from lakelog.core.stats.bounds import read_stats
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions.file_keys": "canonical_paths file_keys",
            "actions.file_table": (
                "FILE_SCHEMA NO_FILES TOMBSTONE_SCHEMA from_add_files to_add_files"
            ),
            "catalogs.inspection": "GovernedLog inspect",
            "log.budget": "LogBudget",
            "log.checkpoint_reader": "CheckpointReader",
            "log.checkpoint_parts": "Part PartReader cast",
            "log.commit_file": "Commit parse_commit",
            "log.commit_history": "commit_times",
            "log.last_checkpoint": "read_last_checkpoint",
            "log.drafts": "drafts",
            "log.file_changes": "FileChanges read_file_changes",
            "log.file_names": "log_path",
            "log.segment": "CheckpointFiles Listing LogSegment find_segment list_log",
            "maintain.repair.log_defects": "LogDefects find_newest",
            "state.file_selection": "FileSelection",
            "state.replay": "State advance load_state read_commits",
            "state.replayer": "Kind ReplayJob Replayer",
            "stats.bounds": "read_stats",
        },
        below="lakelog.core",
    )
