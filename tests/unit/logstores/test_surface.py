"""What `lakelog.logstores` shows, and what importing it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

from lakelog import logstores
from lakelog.logstores.resolution import BUILT_IN

# A name that goes from here is a name that breaks somebody's import.
SURFACE = {
    "lakelog.logstores": """
        AzureConditionalLogStore AzureLeaseLogStore Capabilities CommitOutcomeUnknownError
        FileStatus FileTooLargeError GCSLogStore HDFSLogStore InconsistentLogStoreConfError
        InvalidLogStoreConfError LocalLogStore LogStore LogStoreClassError LogStoreConfError
        LogStoreError MemoryLogStore MissingExtraError Resolution S3ConditionalLogStore
        S3DynamoDBLogStore S3SingleDriverLogStore Scope StorageUnavailableError
        UnknownLogStoreKeyError UnreadableValueError UnsafeLogStoreError log_store_for resolve
    """,
    "lakelog.logstores.conformance": """
        CheckResult FaultProxy HttpDialect HttpFaultConformance LogStoreConformance
        PromiseBrokenError QuickConformance Report run_conformance run_fault_conformance
    """,
    "lakelog.logstores.errors": """
        CommitOutcomeUnknownError FileTooLargeError InconsistentLogStoreConfError
        InvalidLogStoreConfError LogStoreClassError LogStoreConfError LogStoreError
        MissingExtraError StorageUnavailableError UnknownLogStoreKeyError
        UnreadableValueError UnsafeLogStoreError install_command
    """,
    "lakelog.logstores.object_store": """
        KeyTakenError NotTheServiceError ObjectClient ObjectEntry ObjectInfo ObjectLogStore Owner
        PreparedRequest RangedObjectClient RetryPolicy TOKEN_NAME TryAgainError retry_policy
    """,
    "lakelog.logstores.service": """
        BRIDGE_CLASS LogStoreService bridge_jar default_endpoint_file
    """,
}


@pytest.mark.parametrize("module", SURFACE)
def test_the_public_names_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(SURFACE[module].split())
    assert not [name for name in found.__all__ if not hasattr(found, name)]


def test_hints_know_every_store_of_the_package() -> None:
    stores = {name for name in logstores.__all__ if name.endswith("LogStore")} - {"LogStore"}
    assert set(BUILT_IN) == stores


def test_the_public_surface_is_what_it_says() -> None:
    public = {
        name
        for name, value in vars(logstores).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public | set(logstores._LAZY) == set(logstores.__all__)


@pytest.mark.parametrize("name", sorted(logstores._LAZY))
def test_a_store_that_is_loaded_late_is_a_store(name: str) -> None:
    assert issubclass(getattr(logstores, name), logstores.LogStore)
    assert name in dir(logstores)


@pytest.mark.parametrize("heavy", ["pyarrow", "pyspark", "asyncio", "hypothesis", "pytest"])
def test_importing_it_imports_nothing_heavy(heavy: str) -> None:
    script = f"import sys, lakelog.logstores; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_conformance_kit_is_importable_without_test_tools() -> None:
    script = (
        "import sys, lakelog.logstores.conformance; "
        "sys.exit('pytest' in sys.modules or 'hypothesis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_lost_outcome_survives_a_process_boundary() -> None:
    import pickle

    error = logstores.CommitOutcomeUnknownError("/t/_delta_log/0.json", "the link broke")
    twin = pickle.loads(pickle.dumps(error))
    assert (twin.path, twin.evidence, str(twin)) == (error.path, error.evidence, str(error))
