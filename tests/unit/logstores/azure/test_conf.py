"""Which account, endpoint and credential a conf means: Hadoop's names, the SDKs' environment."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    InconsistentLogStoreConfError,
    LogStoreConfError,
    MissingExtraError,
    log_store_for,
)
from lakelog.logstores.azure.conf import azure_settings
from lakelog.logstores.azure.credentials import (
    ClientSecret,
    DefaultChain,
    ManagedIdentity,
    SasToken,
    SharedKey,
    WorkloadIdentity,
)
from lakelog.logstores.azure.filesystem import arrow_options
from lakelog.logstores.azure.uri import parse_azure_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.azure.conf import AzureSettings

URI = "abfss://box@acct.dfs.core.windows.net/t/_delta_log/0.json"
OAUTH = "spark.hadoop.fs.azure.account.oauth2.client."
PROVIDER = "spark.hadoop.fs.azure.account.oauth.provider.type"
JAVA = "org.apache.hadoop.fs.azurebfs.oauth2."
TOKEN_URL = "https://login.microsoftonline.com/tenant-1/oauth2/token"


def settings(
    conf: Mapping[str, str], uri: str = URI, env: Mapping[str, str] | None = None
) -> AzureSettings:
    return azure_settings(conf, parse_azure_uri(uri), environ=env or {})


@pytest.mark.parametrize(
    ("uri", "container", "account", "blob_host", "key"),
    [
        (URI, "box", "acct", "acct.blob.core.windows.net", "t/_delta_log/0.json"),
        ("abfs://box@acct.dfs.core.windows.net", "box", "acct", "acct.blob.core.windows.net", ""),
        (
            "wasbs://box@acct.blob.core.chinacloudapi.cn/a b/%20ü",
            "box",
            "acct",
            "acct.blob.core.chinacloudapi.cn",
            "a b/%20ü",
        ),
        ("wasb://box@ACCT.blob.core.windows.net/", "box", "acct", "acct.blob.core.windows.net", ""),
        (
            "abfss://box@acct.z12.dfs.storage.azure.net/x",
            "box",
            "acct",
            "acct.z12.blob.storage.azure.net",
            "x",
        ),
        (
            "abfss://space@onelake.dfs.fabric.microsoft.com/x",
            "space",
            "onelake",
            "onelake.blob.fabric.microsoft.com",
            "x",
        ),
        ("abfss://box@acct/x", "box", "acct", "acct.blob.core.windows.net", "x"),
        ("az://box/t/x", "box", None, None, "t/x"),
        ("abfss://box/t/x", "box", None, None, "t/x"),
        ("abfs://box@127.0.0.1:10000/x", "box", None, None, "x"),
        ("abfs://box@localhost/x", "box", None, None, "x"),
    ],
)
def test_a_uri_tells_container_account_and_key(
    uri: str, container: str, account: str | None, blob_host: str | None, key: str
) -> None:
    found = parse_azure_uri(uri)
    assert (found.container, found.account, found.blob_host, found.key) == (
        container,
        account,
        blob_host,
        key,
    )


@pytest.mark.parametrize(
    "uri",
    [
        "s3://box/x",
        "/plain/path",
        "abfss:/box/x",
        "abfss:///x",
        "abfss://@acct.dfs.core.windows.net/x",
        "abfss://box@/x",
        "abfss://acct.dfs.core.windows.net/x",
    ],
)
def test_what_names_no_container_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"container@account\.dfs\.core\.windows\.net"):
        AzureConditionalLogStore().filesystem_path(uri)


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "wasb", "wasbs", "az"])
def test_every_scheme_of_azure_gets_the_store_without_a_lease(scheme: str) -> None:
    assert (
        type(log_store_for(f"{scheme}://box@acct.dfs.core.windows.net/t"))
        is AzureConditionalLogStore
    )


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net",
        "fs.azure.account.key.acct.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.key.acct.blob.core.windows.net",
        "fs.azure.account.key.acct",
        "fs.azure.account.key",
    ],
)
def test_an_account_key_is_found_under_hadoops_names(key: str) -> None:
    found = settings({key: " secret "})
    assert found.credential == SharedKey("acct", "secret")
    assert found.endpoint == "https://acct.blob.core.windows.net"


def test_the_key_of_the_account_beats_the_key_of_all() -> None:
    conf = {"fs.azure.account.key": "all", "fs.azure.account.key.acct": "own"}
    assert settings(conf).credential == SharedKey("acct", "own")
    other = "abfss://box@other.dfs.core.windows.net/x"
    assert settings(conf, other).credential == SharedKey("other", "all")


def test_two_values_of_one_key_are_refused_without_showing_them() -> None:
    conf = {"fs.azure.account.key": "hush1", "spark.hadoop.fs.azure.account.key": "hush2"}
    with pytest.raises(InconsistentLogStoreConfError) as caught:
        settings(conf)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "fs.azure.sas.fixed.token",
        "fs.azure.sas.fixed.token.acct",
        "fs.azure.sas.fixed.token.acct.dfs.core.windows.net",
        "fs.azure.sas.fixed.token.box.acct.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.box.acct.blob.core.windows.net",
    ],
)
def test_a_sas_is_found_under_hadoops_names(key: str) -> None:
    assert settings({key: "?sv=1&sig=x"}).credential == SasToken("sv=1&sig=x")


def test_a_sas_of_another_container_is_not_taken() -> None:
    conf = {"fs.azure.sas.other.acct.blob.core.windows.net": "sig=x"}
    assert settings(conf).credential == DefaultChain()


def test_a_service_principal_is_made_of_three_settings() -> None:
    conf = {
        "spark.hadoop.fs.azure.account.auth.type": "OAuth",
        PROVIDER: JAVA + "ClientCredsTokenProvider",
        OAUTH + "id": "app",
        OAUTH + "secret.acct.dfs.core.windows.net": "hush",
        OAUTH + "endpoint": TOKEN_URL,
    }
    assert settings(conf).credential == ClientSecret("tenant-1", "app", "hush")
    conf[OAUTH + "endpoint"] = "https://login.chinacloudapi.cn/t2/oauth2/v2.0/token"
    expected = ClientSecret("t2", "app", "hush", "login.chinacloudapi.cn")
    assert settings(conf).credential == expected


def test_identities_of_machines_and_workloads_are_known() -> None:
    msi = {PROVIDER: JAVA + "MsiTokenProvider"}
    assert settings(msi).credential == ManagedIdentity(None)
    assert settings({**msi, OAUTH + "id": "app"}).credential == ManagedIdentity("app")
    workload = {
        PROVIDER: JAVA + "WorkloadIdentityTokenProvider",
        OAUTH + "id": "app",
        "fs.azure.account.oauth2.msi.tenant": "t1",
        "fs.azure.account.oauth2.token.file": "/var/run/token",
    }
    assert settings(workload).credential == WorkloadIdentity("t1", "app", "/var/run/token")


def test_the_kind_that_is_asked_for_is_taken_and_no_other() -> None:
    both = {"fs.azure.account.key": "k", "fs.azure.sas.fixed.token": "sig=x"}
    kind = "fs.azure.account.auth.type.acct.dfs.core.windows.net"
    assert settings(both).credential == SharedKey("acct", "k")
    assert settings({**both, kind: "SAS"}).credential == SasToken("sig=x")
    assert settings({**both, kind: "sharedkey"}).credential == SharedKey("acct", "k")
    assert settings({**both, kind: "OAuth"}).credential == DefaultChain()


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"fs.azure.account.auth.type": "SharedKey"}, r"fs\.azure\.account\.key\.acct is not set"),
        ({"fs.azure.account.auth.type": "SAS"}, r"fs\.azure\.sas\.fixed\.token\.acct is not set"),
        ({"fs.azure.account.auth.type": "Custom"}, "SharedKey, OAuth, SAS"),
        ({PROVIDER: JAVA + "UserPasswordTokenProvider"}, "ClientCredsTokenProvider"),
        ({OAUTH + "secret": "hush"}, r"client\.id, fs\.azure\.account\.oauth2\.client\.endpoint"),
        ({PROVIDER: JAVA + "WorkloadIdentityTokenProvider"}, r"token\.file"),
        (
            {OAUTH + "id": "a", OAUTH + "secret": "hush", OAUTH + "endpoint": "http://x/"},
            r"login\.microsoftonline\.com/<tenant>",
        ),
        ({"spark.lakelog.azure.endpoint": "acct.blob.core.windows.net"}, "URL of a blob service"),
        ({"spark.lakelog.azure.endpoint": "https://a.b/?sig=hush"}, "URL of a blob service"),
        ({"spark.lakelog.azure.endpoint": "http://h:1/other"}, r"azure\.endpoint\.<account>"),
    ],
)
def test_a_conf_that_is_wrong_is_told_what_to_set(
    conf: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LogStoreConfError, match=message) as caught:
        settings(conf)
    assert "hush" not in str(caught.value)


def test_a_path_whose_account_no_one_names_is_refused() -> None:
    with pytest.raises(LogStoreConfError, match=r"spark\.lakelog\.azure\.account"):
        settings({}, "az://box/x")
    with pytest.raises(LogStoreConfError, match=r"spark\.lakelog\.azure\.endpoint"):
        settings({"spark.lakelog.azure.account": "a"}, "abfs://box@10.0.0.1:10000/x")


def test_the_account_of_a_bare_container_comes_from_conf_endpoint_or_environment() -> None:
    by_conf = settings({"spark.lakelog.azure.account": "acct"}, "az://box/x")
    assert by_conf.endpoint == "https://acct.blob.core.windows.net"
    emulated = {"spark.lakelog.azure.endpoint": "http://127.0.0.1:10000/devstoreaccount1/"}
    by_endpoint = settings(emulated, "az://box/x")
    assert by_endpoint.account == "devstoreaccount1"
    assert by_endpoint.endpoint == "http://127.0.0.1:10000/devstoreaccount1"
    by_env = settings({}, "az://box/x", {"AZURE_STORAGE_ACCOUNT": "acct"})
    assert by_env.endpoint == "https://acct.blob.core.windows.net"


def test_each_account_may_have_an_endpoint_of_its_own() -> None:
    conf = {"spark.lakelog.azure.endpoint.acct": "https://10.1.2.3/acct"}
    assert settings(conf).endpoint == "https://10.1.2.3/acct"
    other = settings(conf, "abfss://box@other.dfs.core.windows.net/x")
    assert other.endpoint == "https://other.blob.core.windows.net"


def test_the_environment_fills_what_the_conf_leaves_open() -> None:
    env = {"AZURE_STORAGE_ACCOUNT_NAME": "acct", "AZURE_STORAGE_ACCOUNT_KEY": "k"}
    assert settings({}, env=env).credential == SharedKey("acct", "k")
    assert settings({"fs.azure.account.key": "own"}, env=env).credential == SharedKey("acct", "own")
    elsewhere = "abfss://box@other.dfs.core.windows.net/x"
    assert settings({}, elsewhere, env).credential == DefaultChain()
    assert settings({}, env={"AZURE_STORAGE_SAS_TOKEN": "?sig=1"}).credential == SasToken("sig=1")


def test_a_connection_string_of_the_environment_is_read() -> None:
    text = "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=a+/b==;EndpointSuffix=x.cn"
    found = settings({}, "az://box/x", {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert found.credential == SharedKey("acct", "a+/b==")
    assert found.endpoint == "https://acct.blob.x.cn"
    local = "AccountName=dev;SharedAccessSignature=?sig=1;BlobEndpoint=http://127.0.0.1:1/dev;"
    found = settings({}, "az://box/x", {"AZURE_STORAGE_CONNECTION_STRING": local})
    assert (found.credential, found.endpoint) == (SasToken("sig=1"), "http://127.0.0.1:1/dev")


def test_no_secret_is_in_the_repr_of_settings() -> None:
    for conf in (
        {"fs.azure.account.key": "hush"},
        {"fs.azure.sas.fixed.token": "sig=hush"},
        {OAUTH + "id": "a", OAUTH + "secret": "hush", OAUTH + "endpoint": TOKEN_URL},
    ):
        assert "hush" not in repr(settings(conf))


def test_arrow_gets_what_it_can_have() -> None:
    key = arrow_options(settings({"fs.azure.account.key": "k"}))
    assert key == {
        "account_name": "acct",
        "account_key": "k",
        "blob_storage_scheme": "https",
        "dfs_storage_scheme": "https",
        "blob_storage_authority": ".blob.core.windows.net",
        "dfs_storage_authority": ".dfs.core.windows.net",
    }
    principal = {OAUTH + "id": "a", OAUTH + "secret": "s", OAUTH + "endpoint": TOKEN_URL}
    options = arrow_options(settings(principal))
    assert options is not None
    assert options["tenant_id"] == "tenant-1"
    assert arrow_options(settings({})) is not None


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.lakelog.azure.endpoint": "https://lake.example.com"},
        {PROVIDER: JAVA + "MsiTokenProvider"},
        {
            OAUTH + "id": "a",
            OAUTH + "secret": "s",
            OAUTH + "endpoint": "https://login.chinacloudapi.cn/t/oauth2/token",
        },
    ],
)
def test_arrow_is_passed_over_where_it_would_go_elsewhere(conf: dict[str, str]) -> None:
    assert arrow_options(settings(conf)) is None


@pytest.mark.parametrize("seconds", ["14", "61", "x", "-1"])
def test_a_lease_that_azure_would_refuse_is_refused_here(seconds: str) -> None:
    with pytest.raises(LogStoreConfError, match=r"lease\.duration"):
        AzureLeaseLogStore({"spark.lakelog.azure.lease.duration": seconds})


def test_the_file_systems_paths_name_the_account() -> None:
    store = AzureConditionalLogStore()
    assert store.filesystem_path(URI) == "box@acct.dfs.core.windows.net/t/_delta_log/0.json"
    assert store.filesystem_path("az://box/t/") == "box/t"
    assert store.filesystem_path("az://box") == "box"


def test_stores_and_file_systems_are_pickled_without_connections() -> None:
    store = AzureLeaseLogStore({"fs.azure.account.key": "k"})
    client, _ = store._locate(URI)
    twin = pickle.loads(pickle.dumps(store))
    assert twin._locate(URI)[0] is not client
    assert twin._locate(URI)[0].endpoint == client.endpoint
    assert pickle.loads(pickle.dumps(store.filesystem)) == store.filesystem


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    store = AzureConditionalLogStore({"fs.azure.account.key.noextra": "k"})
    with pytest.raises(MissingExtraError, match=r"'\.\[azure\]'"):
        list(store.read("abfss://box@noextra.dfs.core.windows.net/x"))


def test_only_azures_own_hosts_are_vouched_for() -> None:
    def known(conf: dict[str, str], uri: str) -> bool:
        return AzureConditionalLogStore(conf)._locate(uri)[0].is_known

    key = {"fs.azure.account.key": "k"}
    assert known(key, URI)
    assert not known({**key, "spark.lakelog.azure.endpoint": "http://127.0.0.1:1/acct"}, URI)
    assert not known(
        {**key, "spark.lakelog.azure.endpoint": "https://x.core.windows.net.evil.org/acct"}, URI
    )
