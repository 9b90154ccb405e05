"""What is particular to Azure: marker blobs, pages, prepared requests, file systems."""

from __future__ import annotations

import itertools
import pickle
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.fs
import pytest

from lakelog.logstores import AzureConditionalLogStore, AzureLeaseLogStore
from lakelog.logstores.azure import client as _azure_client
from lakelog.logstores.azure import filesystem as routing
from lakelog.logstores.azure import upload as _azure_upload
from lakelog.logstores.azure.account_files import BlobFiles
from lakelog.logstores.azure.client import LOCK_NAME
from lakelog.logstores.azure.conf import VERSION_KEY, azure_settings
from lakelog.logstores.azure.filesystem import arrow_options
from lakelog.logstores.azure.uri import parse_azure_uri
from lakelog.logstores.object_store.client import TOKEN_NAME, TryAgainError
from support.fault_proxy import FaultProxy
from support.servers.azurite import run_azurite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores.object_store.client import PreparedRequest
    from support.servers.azurite import AzureEndpoint

MARK = {"hdi_isfolder": "true"}


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"storage-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


@pytest.fixture
def store(azurite: AzureEndpoint) -> AzureConditionalLogStore:
    return AzureConditionalLogStore(azurite.conf)


@pytest.fixture
def folder(container: str) -> str:
    return f"az://{container}/{uuid.uuid4().hex}/_delta_log"


@pytest.fixture
def mark(azurite: AzureEndpoint) -> Iterator[Any]:
    """Makes the blob that stands for a directory on an account with a hierarchical namespace."""
    with azurite.client() as service:

        def make(path: str, name: str = "hdi_isfolder") -> None:
            found = parse_azure_uri(path)
            blob = service.get_blob_client(found.container, found.key)
            blob.upload_blob(b"", metadata={name: "true"})

        yield make


@pytest.fixture(params=["on the SDK", "Arrow's own"])
def filesystem(
    request: pytest.FixtureRequest, azurite: AzureEndpoint, folder: str
) -> pyarrow.fs.FileSystem:
    settings = azure_settings(azurite.conf, parse_azure_uri(folder))
    if request.param == "on the SDK":
        return pyarrow.fs.PyFileSystem(BlobFiles(settings, 20.0))
    return pyarrow.fs.AzureFileSystem(**(arrow_options(settings) or {}))


def test_marker_blobs_of_directories_are_shown_as_directories(
    store: AzureConditionalLogStore, folder: str, mark: Any
) -> None:
    mark(folder)
    mark(f"{folder}/_sidecars")
    mark(f"{folder}/_commits", "Hdi_isfolder")
    store.write(f"{folder}/_commits/0.json", ["x"])
    store.write(f"{folder}/0.json", ["x"])
    found = [(status.name, status.is_directory) for status in store.list_from(f"{folder}/")]
    assert found == [("0.json", False), ("_commits", True), ("_sidecars", True)]


def test_a_directorys_name_is_taken(
    store: AzureConditionalLogStore, folder: str, mark: Any
) -> None:
    mark(f"{folder}/0.json")
    with pytest.raises(FileExistsError):
        store.write(f"{folder}/0.json", ["x"])


def test_file_systems_see_directories_and_remove_them(
    store: AzureConditionalLogStore, folder: str, mark: Any
) -> None:
    mark(f"{folder}/a")
    mark(f"{folder}/a/b")
    store.write(f"{folder}/a/b/0.json", ["x"])
    store.write(f"{folder}/0.json", ["x"])
    fs, base = store.filesystem, store.filesystem_path(folder)
    found = fs.get_file_info(pyarrow.fs.FileSelector(base, recursive=True))
    kinds = {info.path.removeprefix(base): info.is_file for info in found}
    assert kinds == {"/a": False, "/a/b": False, "/a/b/0.json": True, "/0.json": True}
    fs.delete_dir(f"{base}/a")
    left = [info.path for info in fs.get_file_info(pyarrow.fs.FileSelector(base, recursive=True))]
    assert left == [f"{base}/0.json"]


def test_a_listing_goes_on_over_pages(store: AzureConditionalLogStore, folder: str) -> None:
    client, prefix = store._locate(folder + "/")
    for number in range(7):
        client.put(f"{prefix}{number}.json", b"x")
    client.put(f"{prefix}{LOCK_NAME}", b"")
    names: list[str] = []
    pages, continuation = 0, None
    for pages in itertools.count(1):
        entries, continuation = client.page(prefix, "", continuation, 2)
        names += [entry.name for entry in entries]
        if continuation is None:
            break
        assert pages < 10
    assert pages == 4
    assert names == [f"{number}.json" for number in range(7)]


def test_prepared_requests_are_creates_that_any_socket_may_send(
    store: AzureConditionalLogStore, folder: str
) -> None:
    client, key = store._locate(f"{folder}/with space ü.json")
    prepared = [client.prepared_create(key, b"%d\n" % n, f"token{n}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(_send, prepared))
    assert sorted(statuses) == [201] + [409] * 7
    winner = statuses.index(201)
    assert list(store.read(f"{folder}/with space ü.json")) == [str(winner)]
    owner = client.owner(key)
    assert owner is not None
    assert owner.token == f"token{winner}"
    assert owner.modification_time


def test_a_sas_is_prepared_as_well(azurite: AzureEndpoint, container: str, folder: str) -> None:
    from datetime import UTC, datetime, timedelta

    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    sas = generate_container_sas(
        azurite.account,
        container,
        account_key=azurite.key,
        permission=ContainerSasPermissions.from_string("rcwdl"),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    conf = {name: value for name, value in azurite.conf.items() if "account.key" not in name}
    store = AzureConditionalLogStore({**conf, "fs.azure.sas.fixed.token": sas})
    client, key = store._locate(f"{folder}/0.json")
    assert _send(client.prepared_create(key, b"x\n", "t")) == 201
    assert list(store.read(f"{folder}/0.json")) == ["x"]


def _send(prepared: PreparedRequest | None) -> int:
    assert prepared is not None
    assert not prepared.tls
    with socket.create_connection((prepared.host, prepared.port), timeout=20) as connection:
        connection.sendall(prepared.data)
        return int(connection.recv(4096).split(b" ", 2)[1])


def test_the_token_is_metadata_and_not_in_the_file(
    azurite: AzureEndpoint, store: AzureConditionalLogStore, folder: str
) -> None:
    store.write(f"{folder}/0.json", ["x"])
    found = parse_azure_uri(f"{folder}/0.json")
    with azurite.client() as service:
        blob = service.get_blob_client(found.container, found.key)
        assert list(blob.get_blob_properties().metadata) == [TOKEN_NAME]
        assert blob.download_blob().readall() == b"x\n"


def test_a_file_system_reads_and_writes(filesystem: pyarrow.fs.FileSystem, folder: str) -> None:
    found = parse_azure_uri(folder)
    base = f"{found.container}/{found.key}"
    data = bytes(range(256)) * 20_000
    with filesystem.open_output_stream(f"{base}/a/data.bin") as out:
        out.write(data[:100])
        out.write(data[100:])
    with filesystem.open_input_file(f"{base}/a/data.bin") as source:
        assert source.size() == len(data)
        source.seek(1_000_000)
        assert source.read(1000) == data[1_000_000:1_001_000]
        assert source.read_at(7, len(data) - 3) == data[-3:]
    with filesystem.open_input_stream(f"{base}/a/data.bin") as stream:
        assert stream.read() == data
    filesystem.copy_file(f"{base}/a/data.bin", f"{base}/copy.bin")
    (info,) = filesystem.get_file_info([f"{base}/copy.bin"])
    assert (info.size, info.is_file) == (len(data), True)
    filesystem.delete_file(f"{base}/copy.bin")
    kinds = {
        name: filesystem.get_file_info(f"{base}{name}").type
        for name in ("", "/a", "/a/data.bin", "/copy.bin")
    }
    assert kinds == {
        "": pyarrow.fs.FileType.Directory,
        "/a": pyarrow.fs.FileType.Directory,
        "/a/data.bin": pyarrow.fs.FileType.File,
        "/copy.bin": pyarrow.fs.FileType.NotFound,
    }
    with pytest.raises(FileNotFoundError):
        filesystem.open_input_file(f"{base}/none")
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(pyarrow.fs.FileSelector(f"{base}/none"))
    filesystem.delete_dir(f"{base}/a")
    assert filesystem.get_file_info(f"{base}/a/data.bin").type == pyarrow.fs.FileType.NotFound
    assert pickle.loads(pickle.dumps(filesystem)) == filesystem


def test_parquet_goes_through_the_stores_file_system(
    store: AzureConditionalLogStore, folder: str
) -> None:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    fs = pickle.loads(pickle.dumps(store.filesystem))
    table = pa.table({"n": range(10_000), "text": [f"row {n}" for n in range(10_000)]})
    for part in range(2):
        pq.write_table(table, store.filesystem_path(f"{folder}/{part}.parquet"), filesystem=fs)
    data = ds.dataset(store.filesystem_path(folder), filesystem=fs, format="parquet")
    assert data.count_rows() == 20_000
    assert data.to_table(filter=ds.field("n") == 77).num_rows == 2


def test_a_blob_that_is_replaced_is_not_read_half_and_half(
    store: AzureConditionalLogStore, folder: str
) -> None:
    path = f"{folder}/data.bin"
    with store.filesystem.open_output_stream(store.filesystem_path(path)) as out:
        out.write(b"a" * (3 << 20))
    with store.filesystem.open_input_file(store.filesystem_path(path)) as source:
        assert source.read(10) == b"a" * 10
        store.write(path, ["b" * (3 << 20)], overwrite=True)
        with pytest.raises(OSError, match="412 ConditionNotMet"):
            source.read_at(10, 2 << 20)


@pytest.mark.parametrize("fault", ["drop_reply", "cut_reply", "tell:503"])
def test_bulk_bytes_survive_faults(azurite: AzureEndpoint, folder: str, fault: str) -> None:
    with FaultProxy(azurite.url) as proxy:
        limits = {"spark.lakelog.store.request.timeout": "2"}
        store = AzureConditionalLogStore({**azurite.conf_at(proxy.url), **limits})
        path = store.filesystem_path(f"{folder}/data.bin")
        proxy.arm(fault, b"PUT ")
        with store.filesystem.open_output_stream(path) as out:
            out.write(b"z" * 100_000)
        proxy.arm(fault, b"GET ")
        with store.filesystem.open_input_file(path) as source:
            assert source.read() == b"z" * 100_000
        assert proxy.fired == [fault] * 2


def test_accounts_of_one_conf_are_told_apart(azurite: AzureEndpoint, container: str) -> None:
    with FaultProxy(azurite.url) as proxy:
        conf = {**azurite.conf, f"spark.lakelog.azure.endpoint.{azurite.account}": proxy.url}
        del conf["spark.lakelog.azure.endpoint"]
        named = AzureConditionalLogStore(conf)
        uri = f"abfss://{container}@{azurite.account}.dfs.core.windows.net/x/0.json"
        named.write(uri, ["x"])
        assert named.filesystem.get_file_info(named.filesystem_path(uri)).is_file
        assert any("HEAD" in line for line in proxy.requests)
        fs = named.filesystem
        with pytest.raises(OSError, match="two accounts"):
            fs.copy_file(named.filesystem_path(uri), "box@other.blob.core.windows.net/copy.json")


def test_accounts_get_arrows_file_system_where_it_can_reach_them() -> None:
    def made(conf: dict[str, str]) -> pyarrow.fs.FileSystem:
        path = parse_azure_uri("abfss://box@acct.dfs.core.windows.net/x")
        settings = azure_settings({"fs.azure.account.key": "aHVzaA==", **conf}, path, environ={})
        return routing._account(0, settings, 1.0, by_sdk=False)

    assert isinstance(made({}), pyarrow.fs.AzureFileSystem)
    for conf in (
        {"spark.lakelog.azure.apiVersion": "2023-11-03"},
        {"spark.lakelog.azure.endpoint": "https://lake.example.com"},
    ):
        assert isinstance(made(conf), pyarrow.fs.PyFileSystem)


def test_tables_in_a_containers_root_have_a_lock_of_their_own(
    azurite: AzureEndpoint, container: str
) -> None:
    store = AzureLeaseLogStore(azurite.conf)
    store.write(f"az://{container}/{uuid.uuid4().hex}.json", ["x"])
    with azurite.client() as service:
        assert service.get_blob_client(container, LOCK_NAME).exists()
    assert LOCK_NAME not in [status.name for status in store.list_from(f"az://{container}/")]


@pytest.mark.needs("azurite")
def test_an_emulator_is_spoken_to_in_a_version_that_it_knows() -> None:
    with run_azurite(any_version=False) as strict:
        with replace(strict, api_version="2024-11-04").client() as service:
            service.create_container("box")
        store = AzureLeaseLogStore(strict.conf)
        store.write("az://box/t/0.json", ["x"])
        with store.filesystem.open_input_stream("box/t/0.json") as stream:
            assert stream.read() == b"x\n"
        asked = AzureConditionalLogStore({**strict.conf, VERSION_KEY: "2024-11-04"})
        assert list(asked.read("az://box/t/0.json")) == ["x"]


def test_two_uploads_of_one_name_never_mix(
    store: AzureConditionalLogStore,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_azure_upload, "_BLOCK", 1000)
    monkeypatch.setattr(_azure_client, "ONE_PUT", 1000)
    client, key = store._locate(f"{folder}/1.checkpoint.parquet")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(b"o" * 5500)
    theirs.write_bytes(b"t" * 7500)
    ids = _azure_upload.stage_blocks(client._blob(key), ours, lambda request: request())
    client.upload(key, theirs)
    with pytest.raises(TryAgainError, match="400 InvalidBlockList"):
        client._ask(key, lambda: _azure_upload.commit_blocks(client._blob(key), ids))
    assert client.get(key) == theirs.read_bytes()
    client.upload(key, ours)
    assert client.get(key) == ours.read_bytes()


@pytest.mark.parametrize("fault", ["drop_reply", "tell:500", "refuse:503:ServerBusy", "reset"])
@pytest.mark.parametrize("step", [b"comp=block&", b"comp=blocklist"])
def test_a_large_checkpoint_survives_faults(
    azurite: AzureEndpoint,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    step: bytes,
) -> None:
    monkeypatch.setattr(_azure_upload, "_BLOCK", 1000)
    monkeypatch.setattr(_azure_client, "ONE_PUT", 1000)
    path = f"{folder}/1.checkpoint.parquet"
    with FaultProxy(azurite.url) as proxy:
        store = AzureConditionalLogStore(azurite.conf_at(proxy.url))
        proxy.arm(fault, step)
        with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as out:
            out.write(bytes(range(250)) * 10)
        assert proxy.fired == [fault]
        client, key = store._locate(path)
        assert client.get(key) == bytes(range(250)) * 10


def test_a_commit_of_any_size_is_one_request(azurite: AzureEndpoint, folder: str) -> None:
    with FaultProxy(azurite.url) as proxy:
        limits = {
            "spark.lakelog.store.endpointProbe": "never",
            "spark.lakelog.store.request.timeout": "120",
        }
        store = AzureConditionalLogStore({**azurite.conf_at(proxy.url), **limits})
        line = "x" * (65 << 20)  # the SDK's own limit is 64 MiB
        store.write(f"{folder}/0.json", [line])
        assert len(proxy.requests) == 1
        assert list(store.read(f"{folder}/0.json")) == [line]
