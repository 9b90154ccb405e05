"""A conf written for Google's Hadoop connector means here what it means there, or is refused."""

from __future__ import annotations

import pickle
import sys

import pytest

from lakelog.logstores import GCSLogStore, LogStoreConfError, MissingExtraError, log_store_for
from lakelog.logstores.errors import InconsistentLogStoreConfError
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.gcs.conf import GOOGLE, GCSSettings, gcs_settings
from lakelog.logstores.gcs.connection import connection_of
from lakelog.logstores.gcs.pace import Pace

SECRET = "top-secret"


@pytest.fixture(autouse=True)
def _no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


def settings(**conf: str) -> GCSSettings:
    """From keys below `spark.hadoop.fs.gs.`, with `__` for each dot."""
    spelled = {f"spark.hadoop.fs.gs.{k.replace('__', '.')}": v for k, v in conf.items()}
    return gcs_settings(spelled, 20.0)


def test_a_token_of_a_catalog_goes_before_all_else() -> None:
    conf = {
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/no/such/file",
        "spark.lakelog.gcs.accessToken": SECRET,
    }
    found = gcs_settings(conf, 20.0)
    assert found.auth == "token"
    assert SECRET not in repr(found)
    pytest.importorskip("google.cloud.storage")
    headers: dict[str, str] = {}
    connection_of(found).session.credentials.apply(headers)
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(log_store_for("gs://b/t", conf).settings())


def test_an_empty_conf_means_google_with_its_default_credentials() -> None:
    assert settings() == GCSSettings(root_url=GOOGLE, auth="default")


@pytest.mark.parametrize(
    ("kind", "more", "auth"),
    [
        ("APPLICATION_DEFAULT", {}, "default"),
        ("COMPUTE_ENGINE", {}, "default"),
        ("unauthenticated", {}, "anonymous"),
        (
            "SERVICE_ACCOUNT_JSON_KEYFILE",
            {"auth__service__account__json__keyfile": "/k.json"},
            "keyfile",
        ),
        (
            "USER_CREDENTIALS",
            {
                "auth__client__id": "i",
                "auth__client__secret": SECRET,
                "auth__refresh__token": SECRET,
            },
            "user",
        ),
        (
            "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE",
            {"auth__workload__identity__federation__credential__config__file": "/f.json"},
            "federation",
        ),
    ],
)
def test_each_type_of_authentication_is_known(kind: str, more: dict[str, str], auth: str) -> None:
    assert settings(auth__type=kind, **more).auth == auth


def test_a_key_file_alone_is_enough_under_both_prefixes() -> None:
    for prefix in ("spark.hadoop.fs.gs.auth.", "google.cloud.auth."):
        found = gcs_settings({prefix + "service.account.json.keyfile": "/k.json"}, 20.0)
        assert (found.auth, found.file) == ("keyfile", "/k.json")


def test_the_two_prefixes_must_not_disagree() -> None:
    conf = {
        "fs.gs.auth.service.account.json.keyfile": "/a.json",
        "spark.hadoop.google.cloud.auth.service.account.json.keyfile": "/b.json",
    }
    with pytest.raises(InconsistentLogStoreConfError, match="two values"):
        gcs_settings(conf, 20.0)


def test_a_key_spread_over_the_conf_is_taken_and_never_shown() -> None:
    found = settings(
        auth__service__account__email="job@p.iam.gserviceaccount.com",
        auth__service__account__private__key__id="1",
        auth__service__account__private__key=SECRET,
    )
    assert found.secrets == ("job@p.iam.gserviceaccount.com", "1", SECRET)
    assert SECRET not in repr(found)
    with pytest.raises(LogStoreConfError, match="not a PEM private key") as caught:
        connection_of(found)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"auth__type": "KERBEROS"}, "'KERBEROS'; it must be one of APPLICATION_DEFAULT"),
        ({"auth__type": "ACCESS_TOKEN_PROVIDER"}, "Java class"),
        ({"auth__access__token__provider": "com.x.Y"}, "Java class"),
        ({"auth__access__token__provider__impl": "com.x.Y"}, "Java class"),
        ({"auth__type": "SERVICE_ACCOUNT_JSON_KEYFILE"}, "json.keyfile is missing"),
        ({"auth__type": "USER_CREDENTIALS"}, "client.id is missing"),
        ({"auth__service__account__keyfile": "/k.p12"}, "Make a JSON key"),
        ({"encryption__key": SECRET}, "Cloud KMS"),
        ({"storage__root__url": "storage.local"}, "must be a URL"),
        ({"storage__root__url": "http://me:top-secret@host"}, "without a user"),
        ({"storage__root__url": "http://host:port"}, "must be a URL"),
        ({"proxy__address": "http://proxy:3128"}, "must be host:port"),
        ({"proxy__address": "proxy:3128", "proxy__username": "me"}, "go together"),
        ({"requester__pays__mode": "AUTO", "project__id": "p"}, "AUTO would need to ask"),
        ({"requester__pays__mode": "ENABLED"}, "some project has to pay"),
        (
            {
                "auth__type": "UNAUTHENTICATED",
                "auth__impersonation__service__account": "a@b",
            },
            "needs credentials",
        ),
        ({"auth__impersonation__service__account__for__user__me": "a@b"}, "not supported"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(conf: dict[str, str], message: str) -> None:
    with pytest.raises(LogStoreConfError, match=message) as caught:
        settings(**conf)
    assert SECRET not in str(caught.value)


def test_an_emulator_in_the_environment_is_used_without_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "localhost:4443")
    assert settings() == GCSSettings(root_url="http://localhost:4443", auth="anonymous")
    assert settings(storage__root__url=GOOGLE) == GCSSettings(root_url=GOOGLE, auth="default")


def test_a_proxy_is_spelled_as_a_url_and_its_password_hidden() -> None:
    found = settings(proxy__address="p:3128", proxy__username="a@b", proxy__password=SECRET)
    assert found.proxy == f"http://a%40b:{SECRET}@p:3128"
    assert SECRET not in repr(found)
    anonymous = settings(proxy__address="p:3128", auth__type="UNAUTHENTICATED")
    connection = connection_of(anonymous)
    assert connection.session.proxies["https"] == "http://p:3128"
    assert connection.auth_request.session.proxies == {"https": "http://p:3128"}


def test_who_pays_depends_on_the_mode_and_the_bucket() -> None:
    everywhere = settings(requester__pays__mode="ENABLED", project__id="p")
    assert everywhere.payer("any") == "p"
    some = settings(
        requester__pays__mode="CUSTOM",
        requester__pays__project__id="payer",
        requester__pays__buckets="a, b",
    )
    assert [some.payer(name) for name in ("a", "b", "c")] == ["payer", "payer", None]
    assert settings(project__id="p").payer("a") is None


def test_arrows_own_file_system_is_used_where_its_settings_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    plain = {"spark.hadoop.fs.gs.auth.type": "UNAUTHENTICATED"}
    assert GCSLogStore(plain).filesystem.type_name == "gcs"
    proxied = {**plain, "spark.hadoop.fs.gs.proxy.address": "p:3128"}
    through = GCSLogStore(proxied).filesystem
    assert through.type_name == "py::gcs"
    assert pickle.loads(pickle.dumps(through)) == through


def test_a_store_is_chosen_by_the_scheme_made_without_a_network_and_pickled() -> None:
    store = log_store_for("gs://bucket/t")
    assert type(store) is GCSLogStore
    assert store.capabilities.min_commit_interval == 1.0
    assert dict(pickle.loads(pickle.dumps(store)).conf) == dict(store.conf)
    assert store.filesystem_path("gs://bucket/a b/%20") == "bucket/a b/%20"


@pytest.mark.parametrize("path", ["/local/path", "s3://bucket/key", "gs:///key", "gs://"])
def test_a_path_of_another_storage_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not of the form gs://bucket/key"):
        GCSLogStore().filesystem_path(path)


@pytest.mark.parametrize("text", ["-1", "soon", "61", "nan"])
def test_an_interval_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(LogStoreConfError, match="a number of at least 0 and at most 60"):
        GCSLogStore({"spark.lakelog.gcs.minWriteInterval": text})


@pytest.mark.parametrize(
    ("url", "known"),
    [
        (GOOGLE, True),
        ("https://storage.us-central1.rep.googleapis.com", True),
        ("https://storage-me.p.googleapis.com", True),
        ("http://localhost:4443", False),
        ("https://googleapis.com.evil.example", False),
    ],
)
def test_only_googles_own_endpoints_are_trusted_unprobed(url: str, known: bool) -> None:
    client = GCSClient(GCSSettings(root_url=url), "b", Pace(1.0))
    assert (client.is_known, client.endpoint) == (known, f"{url}/b")


def test_the_settings_in_force_tell_endpoint_and_credentials_and_no_secret() -> None:
    prefix = "spark.hadoop.fs.gs."
    conf = {
        prefix + "auth.type": "USER_CREDENTIALS",
        prefix + "auth.client.id": "i",
        prefix + "auth.client.secret": SECRET,
        prefix + "auth.refresh.token": SECRET,
        prefix + "auth.impersonation.service.account": "job@p",
        prefix + "requester.pays.mode": "ENABLED",
        prefix + "project.id": "payer",
    }
    shown = GCSLogStore(conf).settings()
    assert shown["endpoint"] == GOOGLE
    assert shown["credentials"] == "the user's login in the conf, acting as job@p"
    assert shown["requests are paid by"] == "payer"
    assert SECRET not in str(dict(shown))
    by_file = GCSLogStore({prefix + "auth.service.account.json.keyfile": "/k.json"})
    assert by_file.settings()["credentials"] == "the service account's key in /k.json"


SDK = (
    "google.auth",
    "google.auth.exceptions",
    "google.auth.transport.requests",
    "google.api_core.exceptions",
    "google.cloud.storage",
    "google_crc32c",
    "requests",
)


def test_a_missing_extra_is_named_at_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SDK:
        monkeypatch.setitem(sys.modules, name, None)
    # Of its own settings, so that no connection of another test is found.
    store = GCSLogStore({"spark.hadoop.fs.gs.project.id": "of-this-test-alone"})
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[gcs\]'"):
        store.write("gs://bucket/t/0.json", ["x"])
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[gcs\]'"):
        list(store.read("gs://bucket/t/0.json"))
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[gcs\]'"):
        list(store.list_from("gs://bucket/t/"))
