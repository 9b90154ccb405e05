"""delta-rs and our stores on one table in Azure: neither overwrites the other, nor trips on it."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.logstores import AzureConditionalLogStore, AzureLeaseLogStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.azurite import AzureEndpoint

COMMITS = 8
MOST = 200


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"deltalake-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


def _options(azurite: AzureEndpoint) -> dict[str, str]:
    return {
        "azure_storage_account_name": azurite.account,
        "azure_storage_account_key": azurite.key,
        "azure_storage_endpoint": azurite.url,
        "allow_http": "true",
    }


def _append(store: AzureConditionalLogStore, table: str, who: str) -> list[int]:
    won: list[int] = []
    for version in range(1, MOST):
        line = json.dumps({"commitInfo": {"timestamp": 1_700_000_000_000, "operation": who}})
        try:
            store.write(f"{table}/_delta_log/{version:020d}.json", [line])
        except FileExistsError:
            continue
        won.append(version)
        if len(won) == COMMITS:
            return won
    raise AssertionError("lost every race")


def test_writers_of_three_kinds_lose_nothing_of_each_other(
    azurite: AzureEndpoint, container: str
) -> None:
    from deltalake import DeltaTable, write_deltalake

    table = f"az://{container}/{uuid.uuid4().hex}"
    options = _options(azurite)

    def deltalake_appends() -> None:
        for number in range(COMMITS):
            rows = pa.table({"n": [number]})
            write_deltalake(table, rows, mode="append", storage_options=options)

    write_deltalake(table, pa.table({"n": [-1]}), storage_options=options)
    with ThreadPoolExecutor(3) as pool:
        theirs = pool.submit(deltalake_appends)
        leased = pool.submit(_append, AzureLeaseLogStore(azurite.conf), table, "lease")
        plain = pool.submit(_append, AzureConditionalLogStore(azurite.conf), table, "plain")
        theirs.result(120)
        ours = leased.result(120) + plain.result(120)
    read = DeltaTable(table, storage_options=options)
    assert read.version() == 3 * COMMITS
    assert sorted(read.to_pyarrow_table()["n"].to_pylist()) == list(range(-1, COMMITS))
    assert len(set(ours)) == 2 * COMMITS
    store = AzureLeaseLogStore(azurite.conf)
    operations = [
        json.loads(next(store.read(f"{table}/_delta_log/{version:020d}.json")))["commitInfo"][
            "operation"
        ]
        for version in ours
    ]
    assert operations == ["lease"] * COMMITS + ["plain"] * COMMITS


def test_the_lock_blob_is_left_alone_by_delta_rs(azurite: AzureEndpoint, container: str) -> None:
    from deltalake import DeltaTable, write_deltalake

    table = f"az://{container}/{uuid.uuid4().hex}"
    options = _options(azurite)
    store = AzureLeaseLogStore(azurite.conf)
    write_deltalake(table, pa.table({"n": [1, 2]}), storage_options=options)
    line = json.dumps({"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "x"}})
    store.write(f"{table}/_delta_log/{1:020d}.json", [line])
    read = DeltaTable(table, storage_options=options)
    read.create_checkpoint()
    read.cleanup_metadata()
    read.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    again = DeltaTable(table, storage_options=options)
    assert (again.version(), again.to_pyarrow_table().num_rows) == (1, 2)
    store.write(f"{table}/_delta_log/{2:020d}.json", [line])
    again.update_incremental()
    assert again.version() == 2
