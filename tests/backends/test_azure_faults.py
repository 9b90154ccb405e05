"""Azure behind a network that loses, delays and doubles: one outcome, and the right one."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    CommitOutcomeUnknownError,
)
from lakelog.logstores.azure.client import LOCK_NAME, AzureClient
from lakelog.logstores.azure.conf import azure_settings
from lakelog.logstores.azure.lease import LeaseTerms
from lakelog.logstores.azure.sdk import blob_service
from lakelog.logstores.azure.uri import parse_azure_uri
from lakelog.logstores.object_store.client import TryAgainError
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from azure.storage.blob import BlobClient

    from support.servers.azurite import AzureEndpoint

LOST = ["drop_reply", "hang_reply", "cut_reply", "tell:500", "tell:503", "twice"]
REFUSED = ["refuse:500:OperationTimedOut", "refuse:503:ServerBusy", "refuse:429", "html:502"]
FAULTS = [*LOST, *REFUSED, "reset", "delay:0.2"]
WAIT = 60.0


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"faults-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


@pytest.fixture
def proxy(azurite: AzureEndpoint) -> Iterator[FaultProxy]:
    with FaultProxy(azurite.url) as running:
        yield running


@pytest.fixture
def conf(azurite: AzureEndpoint, proxy: FaultProxy) -> dict[str, str]:
    return {
        **azurite.conf_at(proxy.url),
        "spark.lakelog.store.request.timeout": "1",
        "spark.lakelog.store.retry.timeBudget": "20",
        "spark.lakelog.store.endpointProbe": "never",
    }


@pytest.fixture
def patient(conf: dict[str, str]) -> dict[str, str]:
    """For who counts requests: one that takes its second is not asked again."""
    return {**conf, "spark.lakelog.store.request.timeout": "20"}


@pytest.fixture(params=[AzureConditionalLogStore, AzureLeaseLogStore])
def store(request: pytest.FixtureRequest, conf: dict[str, str]) -> AzureConditionalLogStore:
    made: AzureConditionalLogStore = request.param(conf)
    return made


@pytest.fixture
def leased(conf: dict[str, str]) -> AzureLeaseLogStore:
    return AzureLeaseLogStore(conf)


@pytest.fixture
def folder(container: str) -> str:
    return f"az://{container}/{uuid.uuid4().hex}/_delta_log"


@pytest.fixture
def lock(azurite: AzureEndpoint, folder: str) -> Iterator[BlobClient]:
    """The table's lock blob, past the store and the proxy."""
    found = parse_azure_uri(f"{folder}/{LOCK_NAME}")
    with azurite.client() as service:
        yield service.get_blob_client(found.container, found.key)


def commits(proxy: FaultProxy) -> list[str]:
    return [line for line in proxy.requests if line.startswith("PUT ") and ".json " in line]


def leases(proxy: FaultProxy) -> list[str]:
    return [line for line in proxy.requests if "comp=lease" in line]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_create_with_a_fault_is_made_once_and_known_to_be_ours(
    store: AzureConditionalLogStore, proxy: FaultProxy, folder: str, fault: str
) -> None:
    proxy.arm(fault, b"/0.json HTTP")
    store.write(f"{folder}/0.json", ["mine"])
    assert proxy.fired == [fault]
    assert list(store.read(f"{folder}/0.json")) == ["mine"]
    with pytest.raises(FileExistsError):
        store.write(f"{folder}/0.json", ["mine"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_race_with_a_fault_is_a_lost_race(
    store: AzureConditionalLogStore,
    azurite: AzureEndpoint,
    proxy: FaultProxy,
    folder: str,
    fault: str,
) -> None:
    AzureConditionalLogStore(azurite.conf).write(f"{folder}/0.json", ["same"])
    proxy.arm(fault, b"PUT /devstoreaccount1")
    with pytest.raises(FileExistsError):
        store.write(f"{folder}/0.json", ["same"])
    assert proxy.fired == [fault]


@pytest.mark.parametrize("fault", ["drop_reply", "cut_reply", "tell:503", "html:502", "reset"])
@pytest.mark.parametrize("match", [b"GET ", b"comp=list", b"PUT "])
def test_reads_lists_and_overwrites_are_repeated(
    store: AzureConditionalLogStore, proxy: FaultProxy, folder: str, fault: str, match: bytes
) -> None:
    store.write(f"{folder}/hint", ["old"], overwrite=True)
    proxy.arm(fault, match)
    store.write(f"{folder}/hint", ["new"], overwrite=True)
    assert list(store.read(f"{folder}/hint")) == ["new"]
    assert [status.name for status in store.list_from(f"{folder}/")] == ["hint"]
    assert proxy.fired == [fault]


def test_a_download_that_ends_early_is_never_taken_for_the_file(
    store: AzureConditionalLogStore, proxy: FaultProxy, folder: str
) -> None:
    lines = ["x" * 5000] * 20
    store.write(f"{folder}/0.json", lines)
    proxy.arm("cut_reply", b"GET /devstoreaccount1", 2)
    assert list(store.read(f"{folder}/0.json")) == lines
    assert len(proxy.fired) == 2


def test_requests_that_never_got_through_and_a_spent_budget_are_unknown(
    conf: dict[str, str], proxy: FaultProxy, folder: str
) -> None:
    store = AzureConditionalLogStore({**conf, "spark.lakelog.store.retry.timeBudget": "0.5"})
    proxy.arm("reset", b"PUT ", 100)
    with pytest.raises(CommitOutcomeUnknownError, match="it is absent now, and may still land"):
        store.write(f"{folder}/0.json", ["x"])


def test_refusals_to_the_last_mean_not_written(
    patient: dict[str, str], proxy: FaultProxy, folder: str
) -> None:
    store = AzureConditionalLogStore({**patient, "spark.lakelog.store.retry.timeBudget": "0.5"})
    proxy.arm("refuse:503:ServerBusy", b"PUT ", 100)
    with pytest.raises(OSError, match=r"was not written: .*503 ServerBusy"):
        store.write(f"{folder}/0.json", ["x"])
    with pytest.raises(FileNotFoundError):
        list(store.read(f"{folder}/0.json"))


@pytest.mark.parametrize("fault", ["drop_reply", "tell:500", "tell:503", "tell:408", "reset"])
def test_the_sdk_repeats_nothing_by_itself(
    patient: dict[str, str], proxy: FaultProxy, folder: str, tmp_path: Path, fault: str
) -> None:
    client, key = AzureConditionalLogStore(patient)._locate(f"{folder}/0.json")
    client.put(key, b"x")
    source = tmp_path / "file"
    source.write_bytes(b"x")
    requests: list[Callable[[], object]] = [
        lambda: client.create(key + "1", b"x", "t"),
        lambda: client.put(key, b"x"),
        lambda: client.get(key),
        lambda: client.owner(key),
        lambda: client.page("", "", None, None),
        lambda: client.delete(key + "2"),
        lambda: client.upload(key, source),
        lambda: client.acquire_lease(key, str(uuid.uuid4()), 15),
    ]
    for request in requests:
        before = len(proxy.requests)
        proxy.arm(fault, b"HTTP/1.1")
        with pytest.raises(TryAgainError):
            request()
        assert len(proxy.requests) - before == 1


def test_an_uncontended_commit_is_one_put(
    patient: dict[str, str], proxy: FaultProxy, folder: str
) -> None:
    AzureConditionalLogStore(patient).write(f"{folder}/0.json", ["x"])
    assert len(proxy.requests) == 1
    assert proxy.requests == commits(proxy)


def test_a_turn_costs_two_requests_more(
    patient: dict[str, str], proxy: FaultProxy, folder: str
) -> None:
    leased = AzureLeaseLogStore(patient)
    leased.write(f"{folder}/0.json", ["x"])
    first = list(proxy.requests)
    leased.write(f"{folder}/1.json", ["x"])
    assert len(first) == 5  # the lock blob is made with the first commit
    assert len(proxy.requests) - len(first) == 3
    assert len(commits(proxy)) == 2


@pytest.mark.parametrize("action", ["acquire", "release"])
@pytest.mark.parametrize("fault", [*LOST, "refuse:503:ServerBusy", "html:502", "reset"])
def test_a_lost_reply_about_a_lease_costs_nothing_but_time(
    leased: AzureLeaseLogStore,
    proxy: FaultProxy,
    folder: str,
    lock: BlobClient,
    action: str,
    fault: str,
) -> None:
    leased.write(f"{folder}/0.json", ["x"])
    proxy.arm(fault, f"x-ms-lease-action: {action}".encode())
    leased.write(f"{folder}/1.json", ["y"])
    assert proxy.fired == [fault]
    assert list(leased.read(f"{folder}/1.json")) == ["y"]
    assert lock.get_blob_properties().lease.state == "available"


@pytest.mark.parametrize(
    "refusal",
    ["refuse:403:AuthorizationPermissionMismatch", "refuse:404:BlobNotFound", "refuse:400:X"],
)
def test_a_writer_that_may_not_lease_writes_all_the_same_and_overwrites_nothing(
    leased: AzureLeaseLogStore, proxy: FaultProxy, folder: str, refusal: str
) -> None:
    proxy.arm(refusal, b"x-ms-lease-action", 100)
    leased.write(f"{folder}/0.json", ["first"])
    with pytest.raises(FileExistsError):
        leased.write(f"{folder}/0.json", ["second"])
    assert list(leased.read(f"{folder}/0.json")) == ["first"]


@pytest.mark.parametrize("fault", ["drop_reply", "tell:500", "twice", "refuse:409:LeaseLost"])
def test_a_lease_is_renewed_while_its_holder_writes(
    patient: dict[str, str], proxy: FaultProxy, folder: str, lock: BlobClient, fault: str
) -> None:
    leased = AzureLeaseLogStore(patient)
    leased.write(f"{folder}/0.json", ["x"])
    before = len(leases(proxy))
    leased._terms = LeaseTerms(renew_every=0.05)
    proxy.arm("delay:2", b"/1.json HTTP")
    proxy.arm(fault, b"x-ms-lease-action: renew")
    leased.write(f"{folder}/1.json", ["y"])
    assert set(proxy.fired) == {"delay:2", fault}
    assert len(leases(proxy)) - before >= 3
    assert list(leased.read(f"{folder}/1.json")) == ["y"]
    assert lock.get_blob_properties().lease.state == "available"


def test_a_lease_that_is_broken_in_mid_write_harms_nothing(
    leased: AzureLeaseLogStore, folder: str, lock: BlobClient
) -> None:
    from azure.storage.blob import BlobLeaseClient

    leased.write(f"{folder}/0.json", ["x"])
    leased._terms = LeaseTerms(renew_every=0.02)
    stalling = Stalling.of(leased, f"{folder}/1.json")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(stalling.write, f"{folder}/1.json", ["y"])
        assert stalling.stalled.wait(WAIT)
        BlobLeaseClient(lock).break_lease(lease_break_period=0)
        stalling.resume.set()
        writing.result(WAIT)
    assert list(leased.read(f"{folder}/1.json")) == ["y"]


def test_a_writer_that_stalls_past_its_lease_never_overwrites(
    leased: AzureLeaseLogStore, folder: str, lock: BlobClient
) -> None:
    from azure.storage.blob import BlobLeaseClient

    leased.write(f"{folder}/0.json", ["x"])
    path = f"{folder}/1.json"
    stalling = Stalling.of(leased, path)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(stalling.write, path, ["from the stalled writer"])
        assert stalling.stalled.wait(WAIT)
        assert lock.get_blob_properties().lease.state == "leased"
        BlobLeaseClient(lock).break_lease(lease_break_period=0)  # stands for its running out
        leased.write(path, ["from the one who took over"])
        stalling.resume.set()
        with pytest.raises(FileExistsError):
            writing.result(WAIT)
    assert list(leased.read(path)) == ["from the one who took over"]
    assert lock.get_blob_properties().lease.state in ("available", "broken")


def test_the_lease_of_a_holder_that_crashed_is_taken_over(
    patient: dict[str, str], folder: str, lock: BlobClient, proxy: FaultProxy
) -> None:
    leased = AzureLeaseLogStore(patient)
    leased.write(f"{folder}/0.json", ["x"])
    lock.acquire_lease(-1)  # and never heard of again
    leased._terms = LeaseTerms(wait=0.2)
    leased.write(f"{folder}/1.json", ["y"])
    # Broken and not had, where Azurite is too slow to answer: the write goes on without it.
    assert lock.get_blob_properties().lease.state in ("available", "broken")
    count = len(proxy.requests)
    leased.write(f"{folder}/2.json", ["z"])
    assert len(proxy.requests) - count == 3


def test_a_version_that_was_taken_meanwhile_is_reported_before_anything_is_sent(
    leased: AzureLeaseLogStore,
    azurite: AzureEndpoint,
    folder: str,
    lock: BlobClient,
    proxy: FaultProxy,
) -> None:
    leased.write(f"{folder}/0.json", ["x"])
    lock.acquire_lease(60)
    AzureConditionalLogStore(azurite.conf).write(f"{folder}/1.json", ["theirs"])
    before = commits(proxy)
    with pytest.raises(FileExistsError):
        leased.write(f"{folder}/1.json", ["ours"])
    assert commits(proxy) == before


def test_a_waiting_writer_goes_on_as_soon_as_the_lease_is_free(
    leased: AzureLeaseLogStore, folder: str, lock: BlobClient, proxy: FaultProxy
) -> None:
    leased.write(f"{folder}/0.json", ["x"])
    held = lock.acquire_lease(60)
    asked = len(leases(proxy))
    leased._terms = LeaseTerms(wait=WAIT)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(leased.write, f"{folder}/1.json", ["y"])
        for _ in range(10_000):
            if len(leases(proxy)) > asked:
                break
            threading.Event().wait(0.005)
        assert not commits(proxy)[1:]
        held.release()
        writing.result(WAIT)
    assert list(leased.read(f"{folder}/1.json")) == ["y"]


def test_the_lock_blob_is_in_no_listing(
    store: AzureConditionalLogStore, conf: dict[str, str], folder: str, lock: BlobClient
) -> None:
    AzureLeaseLogStore(conf).write(f"{folder}/0.json", ["x"])
    assert lock.exists()
    assert [status.name for status in store.list_from(f"{folder}/")] == ["0.json"]
    store.filesystem.delete_file(store.filesystem_path(f"{folder}/0.json"))
    with pytest.raises(FileNotFoundError):
        store.list_from(f"{folder}/")


def test_connections_are_shared_in_a_process_and_not_with_its_children(
    conf: dict[str, str], folder: str
) -> None:
    one, other = AzureConditionalLogStore(conf), AzureLeaseLogStore(conf)
    (first, _), (second, _) = one._locate(f"{folder}/x"), other._locate(f"{folder}/y")
    assert blob_service(first._settings) is blob_service(second._settings)
    settings = azure_settings(conf, parse_azure_uri(folder), 1.0)
    assert blob_service(settings) is blob_service(first._settings)
    # In a process of its own, since forking one that has threads is no fair test.
    code = (
        "import os, sys\n"
        "from lakelog.logstores import AzureLeaseLogStore\n"
        "from lakelog.logstores.azure.sdk import blob_service\n"
        f"store = AzureLeaseLogStore({conf!r})\n"
        f"store.write({folder + '/0.json'!r}, ['parent'])\n"
        f"settings = store._locate({folder!r})[0]._settings\n"
        "parents = blob_service(settings)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    if blob_service(settings) is parents:\n"
        "        os._exit(3)\n"
        f"    store.write({folder + '/1.json'!r}, ['child'])\n"
        "    os._exit(0)\n"
        f"store.write({folder + '/2.json'!r}, ['parent'])\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=WAIT)
    names = [status.name for status in one.list_from(f"{folder}/")]
    assert names == ["0.json", "1.json", "2.json"]


class Stalling(AzureLeaseLogStore):
    """A store whose writer stands still between taking its turn and sending its file."""

    stalled: threading.Event
    resume: threading.Event
    path: str

    @classmethod
    def of(cls, store: AzureLeaseLogStore, path: str) -> Stalling:
        made = cls(store.conf)
        made._terms = store._terms
        made.stalled, made.resume = threading.Event(), threading.Event()
        made.path = path
        return made

    def _locate(self, path: str) -> tuple[AzureClient, str]:
        client, key = super()._locate(path)
        return _StallingClient(client, self), key


class _StallingClient(AzureClient):
    def __init__(self, client: AzureClient, store: Stalling) -> None:
        super().__init__(client._settings, client._name)
        self._store = store

    def create(self, key: str, body: bytes, token: str) -> None:
        if self._store.path.endswith(key):
            self._store.stalled.set()
            assert self._store.resume.wait(WAIT)
        super().create(key, body, token)


def test_a_fault_that_never_ends_ends_in_bounded_requests(
    patient: dict[str, str], proxy: FaultProxy, folder: str
) -> None:
    limits = {
        "spark.lakelog.store.retry.timeBudget": "0.4",
        "spark.lakelog.azure.lease.wait": "0.2",
    }
    store: Any = AzureLeaseLogStore({**patient, **limits})
    proxy.arm("refuse:503:ServerBusy", b"PUT ", 1000)
    with pytest.raises(OSError, match="was not written"):
        store.write(f"{folder}/0.json", ["x"])
    assert len(proxy.requests) < 100
