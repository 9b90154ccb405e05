"""What `lakelog.core` and its documented modules show."""

from __future__ import annotations

import importlib
import importlib.metadata

import pytest

from lakelog import core
from lakelog.logstores import errors

# A name that goes from here is a name that breaks somebody's import.
SURFACE = {
    "lakelog.core": """
        AddCDCFile AddFile AppendOnlyError ArrayType AttemptFiles Clock CommitInfo
        CommitOutcomeUnknownError CommitStats CommittedTransaction ConcurrentAppendException
        ConcurrentDeleteDeleteException ConcurrentDeleteReadException ConcurrentTransactionException
        ConcurrentWriteException ConstraintViolationError CorruptCheckpointError CorruptCommitError
        CorruptLogError DataFileError DataFileMissingError DataType DecimalType
        Defect
        DeletionVectorDescriptor DeltaAnalysisError DeltaConcurrentModificationException DeltaConf
        DeltaError DeltaLog DomainMetadata Expression FileSizes FileTooLargeError Filter Format
        HistoryEntry InvalidCommittedVersionError InvalidPredicateError IsolationLevel LogGapError
        LogStoreConfError LogStoreError LogTooLargeError MapType MaxCommitAttemptsExceededError
        MergeBuilder Metadata MetadataChangedException MissingExtraError Operation
        OptimisticTransaction
        OptimizeMetrics OptimizeProgress Optimized PostCommitError PostCommitHook
        PostCommitHookFailedError PrimitiveType Progress Protocol ProtocolChangedException
        RemoveFile RowsChanged Scan SchemaMismatchError SetTransaction Snapshot
        StorageUnavailableError
        StructField StructType SystemClock TableCloned TableExistsError TableNotFoundError
        TableRepaired
        TableRestored TableVacuumed TimestampOutOfRangeError TornCommitError UnsafeLogStoreError
        UnsupportedFeatureError VersionNotFoundError __version__ add_columns add_constraint
        change_column clone cluster_by column_with_default convert_to_delta create_table delete_rows
        drop_columns drop_constraint drop_feature enable_row_tracking generated_column hook_failed
        identity_column lit merge optimize purge read_arrow rename_column
        repair replace_columns restore
        retry_on_conflict scan set_properties sync_identity table_changes
        undo_repair unset_properties
        update_rows vacuum write_arrow write_events_to
    """,
    "lakelog.core.actions": """
        Action AddCDCFile AddFile CheckpointMetadata CommitInfo DeletionVectorDescriptor
        DomainMetadata FileAction Format Metadata Protocol RemoveFile SetTransaction
        SidecarFile UnknownAction action_from_json
    """,
    "lakelog.core.errors": """
        AppendOnlyError CommitOutcomeUnknownError ConcurrentAppendException
        ConcurrentDeleteDeleteException ConcurrentDeleteReadException
        ConcurrentTransactionException ConcurrentWriteException ConstraintViolationError
        CorruptCheckpointError CorruptCommitError CorruptLogError DataFileError
        DataFileMissingError DeltaAnalysisError DeltaConcurrentModificationException
        DeltaError InvalidCommittedVersionError InvalidPredicateError LogGapError
        LogTooLargeError MaxCommitAttemptsExceededError MetadataChangedException
        PostCommitError PostCommitHookFailedError ProtocolChangedException
        SchemaMismatchError TableExistsError TableNotFoundError TimestampOutOfRangeError
        TornCommitError UnsupportedFeatureError VersionNotFoundError
    """,
    "lakelog.core.events": """
        CommitOutcome CommitStats Writer emit write_events_to
    """,
    "lakelog.core.hooks": """
        AnyHook CommittedTransaction PostCommitHook hook_failed
    """,
    "lakelog.core.schema": """
        ArrayType DataType DecimalType MapType PrimitiveType StructField StructType
        type_from_json_value
    """,
}


@pytest.mark.parametrize("module", SURFACE)
def test_the_public_names_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(SURFACE[module].split())
    assert not [name for name in found.__all__ if not hasattr(found, name)]


@pytest.mark.parametrize("module", ["errors", "hooks"])
def test_errors_and_hooks_are_found_where_users_look(module: str) -> None:
    inner = importlib.import_module(f"lakelog.core.{module}")
    for name in set(inner.__all__) - {"AnyHook"}:
        assert getattr(core, name) is getattr(inner, name)


def test_every_error_of_the_stores_that_a_job_may_meet_is_there() -> None:
    assert core.LogStoreError is errors.LogStoreError
    assert issubclass(core.StorageUnavailableError, OSError)


def test_the_version_is_that_of_the_package() -> None:
    assert core.__version__ == importlib.metadata.version("lakelog")


def test_a_copy_without_metadata_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.delitem(vars(core), "__version__", raising=False)
    assert core.__version__ == "unknown"
    monkeypatch.delitem(vars(core), "__version__")


def test_names_that_are_not_there_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'write_parquet'"):
        _ = core.write_parquet
