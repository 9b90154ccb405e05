"""What goes wrong on Azure is told once, in bounded time, with the way out and without secrets."""

from __future__ import annotations

import base64
import itertools
import logging
import socket
import ssl
import traceback
import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    CommitOutcomeUnknownError,
    LogStoreConfError,
)
from lakelog.logstores.azure.credentials import DefaultChain, SasToken
from lakelog.logstores.azure.errors import explained
from lakelog.logstores.object_store.client import TryAgainError
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.servers.azurite import AzureEndpoint

KEY = "spark.hadoop.fs.azure.account.key"
SAS = "spark.hadoop.fs.azure.sas.fixed.token"
QUICK = {
    "spark.lakelog.store.retry.timeBudget": "0.3",
    "spark.lakelog.store.request.timeout": "20",
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.azure.lease.wait": "0.1",
}
OPERATIONS: dict[str, Callable[[AzureConditionalLogStore, str], object]] = {
    "read": lambda store, folder: list(store.read(f"{folder}/0.json")),
    "list": lambda store, folder: list(store.list_from(f"{folder}/")),
    "create": lambda store, folder: store.write(f"{folder}/1.json", ["x"]),
    "create in turn": lambda store, folder: AzureLeaseLogStore(store.conf).write(
        f"{folder}/2.json", ["x"]
    ),
    "overwrite": lambda store, folder: store.write(f"{folder}/hint", ["x"], overwrite=True),
    "checkpoint": lambda store, folder: _stage(store, f"{folder}/1.checkpoint.parquet"),
}


def _stage(store: AzureConditionalLogStore, path: str) -> None:
    with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as out:
        out.write(b"PAR1")


@pytest.fixture(scope="module")
def container(azurite: AzureEndpoint) -> Iterator[str]:
    name = f"errors-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        yield name
        service.delete_container(name)


@pytest.fixture
def folder(azurite: AzureEndpoint, container: str) -> str:
    made = f"az://{container}/{uuid.uuid4().hex}"
    AzureConditionalLogStore(azurite.conf).write(f"{made}/0.json", ["here"])
    return made


@pytest.fixture
def proxy(azurite: AzureEndpoint) -> Iterator[FaultProxy]:
    with FaultProxy(azurite.url) as running:
        yield running


@pytest.fixture
def conf(azurite: AzureEndpoint) -> dict[str, str]:
    return {**azurite.conf, **QUICK}


def sas_for(azurite: AzureEndpoint, container: str, rights: str, hours: float) -> str:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    return str(
        generate_container_sas(
            azurite.account,
            container,
            account_key=azurite.key,
            permission=ContainerSasPermissions.from_string(rights),
            expiry=datetime.now(UTC) + timedelta(hours=hours),
        )
    )


def full_text(error: BaseException) -> str:
    """All that a log of this exception could show."""
    text = "".join(traceback.format_exception(error))
    each: BaseException | None = error
    while each is not None:
        text += str(each) + repr(each)
        each = each.__context__
    return text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_wrong_key_is_reported_and_not_shown(
    conf: dict[str, str], folder: str, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = base64.b64encode(b"hush" * 16).decode()
    with pytest.raises(PermissionError, match=r"403 Auth.*key") as caught:
        OPERATIONS[operation](AzureConditionalLogStore({**conf, KEY: key}), folder)
    assert key not in full_text(caught.value) + caplog.text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_key_that_is_no_key_is_reported(
    conf: dict[str, str], folder: str, operation: str
) -> None:
    key = "+".join(["hush"] * 3)
    with pytest.raises(LogStoreConfError, match="not valid base64") as caught:
        OPERATIONS[operation](AzureConditionalLogStore({**conf, KEY: key}), folder)
    assert key not in full_text(caught.value)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_container_is_named(conf: dict[str, str], operation: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"/no-such-box/.*no such container"):
        OPERATIONS[operation](AzureConditionalLogStore(conf), "az://no-such-box/t")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_sas_that_has_expired_says_so_and_is_not_shown(
    conf: dict[str, str],
    azurite: AzureEndpoint,
    container: str,
    folder: str,
    operation: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    sas = sas_for(azurite, container, "racwdl", -1)
    store = AzureConditionalLogStore({**_without_key(conf), SAS: sas})
    with pytest.raises(PermissionError, match=r"the SAS expired at 20.* UTC") as caught:
        OPERATIONS[operation](store, folder)
    signature = sas.partition("sig=")[2].partition("&")[0]
    assert signature
    assert signature not in full_text(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("rights", "works", "fails"),
    [
        ("rl", ["read", "list"], ["create", "create in turn", "overwrite", "checkpoint"]),
        ("rcw", ["read", "create", "create in turn", "overwrite"], ["list"]),
        ("racwdl", list(OPERATIONS), []),
    ],
)
def test_a_sas_is_told_which_right_it_lacks(
    conf: dict[str, str],
    azurite: AzureEndpoint,
    container: str,
    folder: str,
    rights: str,
    works: list[str],
    fails: list[str],
) -> None:
    sas = sas_for(azurite, container, rights, 1)
    store = AzureConditionalLogStore({**_without_key(conf), SAS: "?" + sas})
    for operation in works:
        OPERATIONS[operation](store, folder)
    for operation in fails:
        with pytest.raises(PermissionError, match="Storage Blob Data Contributor"):
            OPERATIONS[operation](store, folder)


def test_a_sas_is_not_in_the_log_of_what_worked(
    conf: dict[str, str],
    azurite: AzureEndpoint,
    container: str,
    folder: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    sas = sas_for(azurite, container, "racwdl", 1)
    store = AzureLeaseLogStore({**_without_key(conf), SAS: sas})
    store.write(f"{folder}/1.json", ["x"])
    assert list(store.read(f"{folder}/1.json")) == ["x"]
    signature = sas.partition("sig=")[2].partition("&")[0]
    assert "1.json" in caplog.text
    assert signature not in caplog.text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_sas_is_not_shown_when_the_network_fails(operation: str) -> None:
    conf = {
        "spark.lakelog.azure.endpoint": "http://127.0.0.1:9/devstoreaccount1",
        SAS: "sv=1&sig=" + "hush" * 3,
    }
    with pytest.raises(OSError, match="could not connect") as caught:
        OPERATIONS[operation](AzureConditionalLogStore({**conf, **QUICK}), "az://box/t")
    assert "hush" * 3 not in full_text(caught.value)


def test_nothing_of_the_sdks_own_errors_is_passed_on(conf: dict[str, str]) -> None:
    from azure.core.exceptions import ServiceResponseError

    secret = "hush" * 3

    def request() -> None:
        raise ServiceResponseError(f"GET https://acct.blob.core.windows.net/x?sig={secret}")

    client, _ = AzureConditionalLogStore(conf)._locate("az://box/t")
    with pytest.raises(TryAgainError) as caught:
        client._ask("t", request)
    assert secret not in full_text(caught.value)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_endpoint_that_is_down_is_reported_within_the_budget(operation: str) -> None:
    conf = {"spark.lakelog.azure.endpoint": "http://127.0.0.1:9/devstoreaccount1", KEY: "aHVzaA=="}
    with pytest.raises(OSError, match=r"could not connect; given up after 0\.3 s"):
        OPERATIONS[operation](AzureConditionalLogStore({**conf, **QUICK}), "az://box/t")


def test_an_account_that_does_not_exist_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    uri = f"abfss://box@{uuid.uuid4().hex[:20]}.dfs.core.windows.net/t"
    for operation in OPERATIONS.values():
        with pytest.raises(OSError, match="Check the name of the storage account"):
            operation(AzureConditionalLogStore({KEY: "aHVzaA=="}), uri)


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        *itertools.product(("200", "302", "403", "407"), OPERATIONS),
        *itertools.product(("502", "511"), ("read", "list", "overwrite", "checkpoint")),
        ("502", "create"),
    ],
)
def test_a_web_page_in_the_way_is_an_error(
    azurite: AzureEndpoint, proxy: FaultProxy, folder: str, status: str, operation: str
) -> None:
    proxy.arm(f"html:{status}", b"HTTP/1.1", 500)
    store = AzureConditionalLogStore({**azurite.conf_at(proxy.url), **QUICK})
    with pytest.raises((OSError, CommitOutcomeUnknownError)) as caught:
        OPERATIONS[operation](store, folder)
    assert not isinstance(caught.value, FileNotFoundError)
    if status == "403":
        assert "with a web page: a proxy" in str(caught.value)
    if status == "502":
        assert "came from a proxy" in str(caught.value)


@pytest.mark.parametrize(
    ("refusal", "operation", "kind", "text"),
    [
        ("409:BlobImmutableDueToPolicy", "overwrite", PermissionError, "immutability policy"),
        ("409:ContainerBeingDeleted", "create", OSError, "is being deleted"),
        ("409:InvalidBlobType", "overwrite", OSError, "append or page blob"),
        ("403:KeyBasedAuthenticationNotPermitted", "list", PermissionError, "allows no account"),
        ("403:AuthorizationPermissionMismatch", "create", PermissionError, "Data Contributor"),
        ("400:AccountRequiresHttps", "read", OSError, "accepts https only"),
        ("412:LeaseIdMissing", "overwrite", OSError, "the blob itself has a lease"),
        ("501:NotImplemented", "create", OSError, "does not support this operation"),
        ("404:ResourceNotFound", "read", FileNotFoundError, "check the names of the account"),
    ],
)
def test_refusals_for_good_are_reported_at_once(
    azurite: AzureEndpoint,
    proxy: FaultProxy,
    folder: str,
    refusal: str,
    operation: str,
    kind: type[OSError],
    text: str,
) -> None:
    proxy.arm(f"refuse:{refusal}", b"HTTP/1.1", 10)
    store = AzureConditionalLogStore({**azurite.conf_at(proxy.url), **QUICK})
    with pytest.raises(kind, match=text):
        OPERATIONS[operation](store, folder)
    assert len(proxy.requests) == 1


def test_a_create_that_meets_a_blob_under_a_policy_has_lost_its_race(
    azurite: AzureEndpoint, proxy: FaultProxy, folder: str
) -> None:
    proxy.arm("refuse:409:BlobImmutableDueToPolicy", b"PUT ")
    store = AzureConditionalLogStore({**azurite.conf_at(proxy.url), **QUICK})
    with pytest.raises(FileExistsError):
        store.write(f"{folder}/0.json", ["x"])


def test_a_version_of_the_protocol_that_the_sdk_lacks_is_a_wrong_conf(
    conf: dict[str, str], folder: str
) -> None:
    store = AzureConditionalLogStore({**conf, "spark.lakelog.azure.apiVersion": "1999-01-01"})
    with pytest.raises(LogStoreConfError, match=r"azure\.apiVersion = '1999-01-01'"):
        list(store.read(f"{folder}/0.json"))


def test_tokens_are_not_sent_in_the_clear(conf: dict[str, str], folder: str) -> None:
    oauth = {**_without_key(conf), "fs.azure.account.auth.type": "OAuth"}
    with pytest.raises(LogStoreConfError, match="over https only"):
        list(AzureConditionalLogStore(oauth).read(f"{folder}/0.json"))


def test_no_credential_at_all_is_reported_with_the_ways_to_give_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from azure.identity import CredentialUnavailableError

    class NoCredential:
        def get_token(self, *_: object, **__: object) -> None:
            raise CredentialUnavailableError(message="tried everything, hush")

    monkeypatch.setattr(DefaultChain, "open", lambda self: NoCredential())
    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    uri = f"abfss://box@{uuid.uuid4().hex[:20]}.dfs.core.windows.net/t"
    with pytest.raises(PermissionError, match=r"fs\.azure\.account\.key.*az login") as caught:
        AzureConditionalLogStore().write(f"{uri}/0.json", ["x"])
    assert "hush" not in full_text(caught.value)


def refused(status: int, code: str = "", message: str = "", **headers: str) -> Exception:
    """What the SDK raises for a reply."""
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

    named = {"x-ms-error-code": code, "x-ms-request-id": "r-1"} if code else {}
    reply: Any = SimpleNamespace(
        status_code=status, reason="Injected", headers={**named, **headers}, text=lambda: ""
    )
    kind = ClientAuthenticationError if status in (401, 403) else HttpResponseError
    return kind(message, response=reply)


def test_a_clock_that_is_off_is_told_by_how_much() -> None:
    for minutes, way in ((17, "ahead of"), (-17, "behind")):
        theirs = datetime.now(UTC) - timedelta(minutes=minutes)
        date = theirs.strftime("%a, %d %b %Y %H:%M:%S GMT")
        error = explained(refused(403, "AuthenticationFailed", Date=date), "x")
        assert isinstance(error, PermissionError)
        assert f"this host's clock is 17 minutes {way} the service's" in str(error)
    stale = "Request date header too old: 'Sat, 21 Nov 2020 00:00:00 GMT'"
    assert "correct this host's clock" in str(
        explained(refused(403, "AuthenticationFailed", stale), "x")
    )


def test_a_sas_that_is_not_valid_yet_says_from_when() -> None:
    sas = SasToken("st=2999-01-01T00:00:00Z&se=2999-02-01&sig=hush")
    text = str(explained(refused(403, "AuthenticationFailed"), "x", sas))
    assert "is valid only from 2999-01-01" in text
    assert "hush" not in text


def test_a_refused_sign_in_is_reported_by_its_code() -> None:
    from azure.core.exceptions import ClientAuthenticationError

    said = "AADSTS7000215: Invalid client secret provided. hush. Trace ID: 1"
    error = explained(ClientAuthenticationError(said), "x")
    assert isinstance(error, PermissionError)
    assert "AADSTS7000215" in str(error)
    assert "hush" not in str(error)


def test_a_service_of_an_older_version_is_told_of_the_setting() -> None:
    said = "The API version 2026-10-06 is not supported by Azurite."
    error = explained(refused(400, "InvalidHeaderValue", said), "x")
    assert "spark.lakelog.azure.apiVersion" in str(error)


def test_the_pace_that_the_service_asks_for_is_passed_on() -> None:
    error = explained(refused(503, "ServerBusy", **{"Retry-After": "3"}), "x")
    assert isinstance(error, TryAgainError)
    assert (error.retry_after, error.may_have_landed) == (3.0, False)
    error = explained(refused(503, **{"Retry-After": "Sat, 21 Nov 2026 00:00:00 GMT"}), "x")
    assert isinstance(error, TryAgainError)
    assert (error.retry_after, error.may_have_landed) == (None, True)


def test_a_certificate_that_no_one_trusts_is_reported_at_once() -> None:
    from azure.core.exceptions import ServiceRequestError

    inner = ssl.SSLCertVerificationError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed")
    error = explained(ServiceRequestError("wrapped", error=inner), "x")
    assert isinstance(error, OSError)
    assert "certificate is not trusted" in str(error)


def _without_key(conf: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in conf.items() if name != KEY}
