"""The kit catches the real stores with one thing wrong, on the servers that they are tested on.

`test_kit_catches.py` has stores that were written to be wrong; these are ours, by their own code.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from conformance.store_mutants import (
    AZURE,
    AZURE_LEASE,
    DYNAMODB,
    GCS,
    HDFS,
    LOCAL,
    NETWORK,
    RECOVERY,
    S3,
    StoreMutant,
)

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    GCSLogStore,
    HDFSLogStore,
    LocalLogStore,
    LogStore,
    S3ConditionalLogStore,
)
from lakelog.logstores.conformance import (
    HttpFaultConformance,
    PromiseBrokenError,
)
from lakelog.logstores.conformance.http_dialects import GCS as SPOKEN_BY_GCS
from lakelog.logstores.s3_dynamodb import lock_table_commit as _dynamodb_commit
from support.in_a_log import InALogStore
from support.kit_sizes import SizedConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.azurite import AzureEndpoint
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint

# What a mutant does to an endpoint's probe must not be remembered of the endpoint.
UNPROBED = {"spark.lakelog.store.endpointProbe": "never"}
NO_PACE = {"spark.lakelog.gcs.minWriteInterval": "0"}
IMPATIENT = {
    "spark.lakelog.store.request.timeout": "0.5",
    "spark.lakelog.store.retry.timeBudget": "1.5",
}
CREATE = {"spark.lakelog.s3dynamodb.createTable": "true"}


class Small(SizedConformance):
    """Sizes that a mutant still shows at."""

    many_files = 24


class Alone(Small):
    """Nobody but the next reader or writer finishes what a writer leaves."""

    race_threads = 1


class BadNetwork(HttpFaultConformance):
    dialect = SPOKEN_BY_GCS


def caught(mutant: StoreMutant, store: LogStore, root: str) -> None:
    """Run the mutant's check on the mutant, and expect it to be seen."""
    check = getattr(Small(), f"test_{mutant.check}")
    with mutant.patched(), pytest.raises(PromiseBrokenError):
        check(store, root)


@pytest.mark.parametrize("mutant", LOCAL, ids=str)
def test_the_kit_catches_a_local_store_in_which(mutant: StoreMutant, tmp_path: Path) -> None:
    caught(mutant, LocalLogStore(), str(tmp_path))


@pytest.mark.parametrize("mutant", S3, ids=str)
def test_the_kit_catches_a_store_on_s3_in_which(
    mutant: StoreMutant, minio: S3Endpoint, s3_bucket: str
) -> None:
    store = S3ConditionalLogStore({**minio.conf, **UNPROBED})
    caught(mutant, store, f"s3://{s3_bucket}/{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


@pytest.mark.parametrize("mutant", [*AZURE, *AZURE_LEASE], ids=str)
def test_the_kit_catches_a_store_on_azure_in_which(
    mutant: StoreMutant, azurite: AzureEndpoint, container: str
) -> None:
    cls = AzureLeaseLogStore if mutant in AZURE_LEASE else AzureConditionalLogStore
    caught(mutant, cls({**azurite.conf, **UNPROBED}), f"az://{container}/{uuid.uuid4().hex}")


@pytest.mark.parametrize("mutant", GCS, ids=str)
def test_the_kit_catches_a_store_on_gcs_in_which(
    mutant: StoreMutant, fake_gcs: GCSEndpoint, gcs_bucket: str
) -> None:
    store = GCSLogStore({**fake_gcs.conf, **NO_PACE, **UNPROBED})
    caught(mutant, store, f"gs://{gcs_bucket}/{uuid.uuid4().hex}")


@pytest.mark.parametrize("mutant", HDFS, ids=str)
def test_the_kit_catches_a_store_on_hdfs_in_which(mutant: StoreMutant, hdfs: HdfsCluster) -> None:
    caught(mutant, HDFSLogStore(hdfs.conf), f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}")


@pytest.fixture
def commits(minio: S3Endpoint, dynamodb: DynamoDBEndpoint) -> LogStore:
    """The DynamoDB store where each name is a commit of a log."""
    table = dynamodb.conf(f"mutants-{uuid.uuid4().hex[:8]}")
    return InALogStore({**minio.conf, **table, **CREATE, **UNPROBED})


@pytest.mark.parametrize("mutant", DYNAMODB, ids=str)
def test_the_kit_catches_a_store_with_a_lock_table_in_which(
    mutant: StoreMutant, commits: LogStore, s3_bucket: str
) -> None:
    caught(mutant, commits, f"s3a://{s3_bucket}/{uuid.uuid4().hex}")


@pytest.fixture
def writers_that_die() -> Iterator[None]:
    """Every commit ends with its row: the file is left to whoever comes next."""
    with mock.patch.object(_dynamodb_commit, "_publish"):
        yield


@pytest.mark.usefixtures("writers_that_die")
@pytest.mark.parametrize("mutant", RECOVERY, ids=str)
def test_the_kit_catches_a_store_whose_writers_die_in_which(
    mutant: StoreMutant, commits: LogStore, s3_bucket: str
) -> None:
    check = getattr(Alone(), f"test_{mutant.check}")
    # The next writer stops too, where it finds a commit that nobody finished.
    with mutant.patched(), pytest.raises((PromiseBrokenError, OSError)):
        check(commits, f"s3a://{s3_bucket}/{uuid.uuid4().hex}")


@pytest.mark.usefixtures("writers_that_die")
@pytest.mark.parametrize("check", sorted({mutant.check for mutant in RECOVERY}))
def test_a_store_whose_writers_die_keeps_its_promises(
    check: str, commits: LogStore, s3_bucket: str
) -> None:
    getattr(Alone(), f"test_{check}")(commits, f"s3a://{s3_bucket}/{uuid.uuid4().hex}")


@pytest.mark.parametrize("mutant", NETWORK, ids=str)
def test_the_kit_catches_a_store_behind_a_bad_network_in_which(
    mutant: StoreMutant, fake_gcs: GCSEndpoint, gcs_bucket: str
) -> None:
    def behind(url: str) -> LogStore:
        reached = {"spark.hadoop.fs.gs.storage.root.url": url}
        return GCSLogStore({**fake_gcs.conf, **NO_PACE, **UNPROBED, **IMPATIENT, **reached})

    check = getattr(BadNetwork(), f"test_{mutant.check}")
    with mutant.patched(), pytest.raises(PromiseBrokenError):
        check(behind, fake_gcs.url, f"gs://{gcs_bucket}/{uuid.uuid4().hex}")
