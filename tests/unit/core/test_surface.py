"""What `lakelog.core` and its documented modules show."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING

import pytest

from lakelog import core
from lakelog.core import errors as core_errors
from lakelog.core import version as version_module
from lakelog.core.names_elsewhere import PUBLIC
from lakelog.logstores import errors

if TYPE_CHECKING:
    from pathlib import Path

# A name that goes from here is a name that breaks somebody's import.
SURFACE = {
    "lakelog.core": """
        Appender AsyncAppender AttemptFiles Clock CommitStats Defect DeltaConf DeltaLog Expression
        FileSizes Filter HistoryEntry IsolationLevel MergeBuilder Operation OptimisticTransaction
        OptimizeMetrics OptimizeProgress Optimized Progress RowsChanged Scan Snapshot SystemClock
        TableCloned TableRepaired TableRestored TableVacuumed Ticket UnfitRow __version__ appender
        clone convert_to_delta create_table delete_rows drop_table lit merge optimize purge
        read_arrow rename_table repair restore retry_on_conflict scan table_changes undo_repair
        update_rows vacuum write_arrow write_events_to
    """,
    "lakelog.core.actions": """
        Action AddCDCFile AddFile CheckpointMetadata CommitInfo DeletionVectorDescriptor
        DomainMetadata FileAction Format Metadata Protocol RemoveFile SetTransaction
        SidecarFile UnknownAction action_from_json
    """,
    "lakelog.core.alter": """
        add_columns add_constraint change_column cluster_by drop_columns drop_constraint
        drop_feature enable_row_tracking rename_column replace_columns set_properties
        sync_identity unset_properties
    """,
    "lakelog.core.errors": """
        AppendOnlyError AppenderFullError AppenderStoppedError CatalogError
        CommitOutcomeUnknownError ConcurrentAppendException ConcurrentDeleteDeleteException
        ConcurrentDeleteReadException
        ConcurrentTransactionException ConcurrentWriteException ConstraintViolationError
        CorruptCheckpointError CorruptCommitError CorruptLogError DataFileError DataFileMissingError
        DeltaAnalysisError DeltaConcurrentModificationException DeltaError FileTooLargeError
        InvalidCommittedVersionError InvalidPredicateError LogGapError LogStoreConfError
        LogStoreError LogTooLargeError MaxCommitAttemptsExceededError MetadataChangedException
        MissingExtraError PostCommitError PostCommitHookFailedError ProtocolChangedException
        SchemaMismatchError StorageUnavailableError TableExistsError TableNotFoundError
        TimestampOutOfRangeError TornCommitError UnsafeLogStoreError UnsupportedFeatureError
        VersionNotFoundError
    """,
    "lakelog.core.events": """
        CommitOutcome CommitStats Writer emit write_events_to
    """,
    "lakelog.core.hooks": """
        AnyHook CommittedTransaction PostCommitHook hook_failed
    """,
    "lakelog.core.schema": """
        ArrayType DataType DecimalType MapType PrimitiveType StructField StructType
        column_with_default generated_column identity_column type_from_json_value
    """,
}


@pytest.mark.parametrize("module", SURFACE)
def test_the_public_names_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(SURFACE[module].split())
    assert not [name for name in found.__all__ if not hasattr(found, name)]


@pytest.mark.parametrize("module", PUBLIC)
def test_a_name_of_another_public_module_is_asked_for_with_the_import(module: str) -> None:
    """`lakelog.core` has a name once, where it belongs, and says where that is."""
    for name in importlib.import_module(module).__all__:
        line = f"from {module} import {name}"
        exec(line, {})
        if name not in core.__all__:
            with pytest.raises(AttributeError, match=f"no attribute '{name}'. Write {line}$"):
                getattr(core, name)


def test_a_transaction_has_few_members_and_two_parts(tmp_path: Path) -> None:
    txn = core.DeltaLog.for_table(str(tmp_path)).start_transaction()
    assert {name for name in dir(txn) if not name.startswith("_")} == {
        *("delta_log", "snapshot", "metadata", "reads", "changes"),
        *("filter_files", "txn_version", "update_metadata"),
        *("commit", "commit_if_needed", "commit_large"),
        *("register_post_commit_hook", "run_post_commit_hooks", "may_be_committed", "attempts"),
    }


def test_every_error_of_the_stores_that_a_job_may_meet_is_there() -> None:
    assert core_errors.LogStoreError is errors.LogStoreError
    assert issubclass(core_errors.StorageUnavailableError, OSError)


def test_the_version_is_that_of_the_package() -> None:
    assert core.__version__ == importlib.metadata.version("lakelog")


def test_a_copy_without_metadata_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert importlib.reload(version_module).__version__ == "unknown"
    monkeypatch.undo()
    importlib.reload(version_module)


def test_names_that_are_not_there_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'write_parquet'"):
        _ = core.write_parquet  # type: ignore[attr-defined]  # a type checker finds it, too
