"""What a user is told when Google Cloud Storage, or the way to it, says no."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, GCSLogStore, LogStoreConfError
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.gcs.conf import GCSSettings
from lakelog.logstores.gcs.connection import connection_of
from lakelog.logstores.gcs.pace import Pace
from lakelog.logstores.object_store.store import TryAgainError
from support.fault_proxy import FaultProxy
from support.rsa_key import new_pem
from support.scripted_server import ScriptedServer, scripted_server
from support.servers._service import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.servers.fake_gcs import GCSEndpoint

PATH = "gs://bucket/t/_delta_log/00000000000000000000.json"
TOKEN = "ya29.a-token-that-nobody-may-see"
BASE = {
    "spark.lakelog.gcs.minWriteInterval": "0",
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "2",
    "spark.lakelog.store.retry.timeBudget": "0.4",
}
PAGE = b"<html><body>Please log in to the proxy.</body></html>"


def complaint(code: int, reason: str, message: str) -> dict[str, Any]:
    """An error in the form that the JSON API has."""
    about = {"domain": "global", "reason": reason, "message": message}
    return {"error": {"code": code, "message": message, "errors": [about]}}


@pytest.fixture
def google() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def store(google: ScriptedServer) -> GCSLogStore:
    anonymous = {"spark.hadoop.fs.gs.auth.type": "UNAUTHENTICATED"}
    return GCSLogStore({**BASE, **anonymous, "spark.hadoop.fs.gs.storage.root.url": google.url})


def create(store: GCSLogStore) -> None:
    store.write(PATH, ["x"])


def replace(store: GCSLogStore) -> None:
    store.write(PATH, ["x"], overwrite=True)


def read(store: GCSLogStore) -> None:
    list(store.read(PATH))


def listing(store: GCSLogStore) -> None:
    list(store.list_from(PATH))


@pytest.mark.parametrize(
    ("work", "permission"),
    [
        (create, r"storage\.objects\.create \(HTTP 403\)"),
        (replace, r"storage\.objects\.create or storage\.objects\.delete"),
        (read, r"storage\.objects\.get"),
        (listing, r"storage\.objects\.list"),
    ],
)
def test_a_403_names_the_permission_and_the_role(
    work: Callable[[GCSLogStore], None],
    permission: str,
    store: GCSLogStore,
    google: ScriptedServer,
) -> None:
    google.say(403, complaint(403, "forbidden", "job@p.iam.gserviceaccount.com may not"))
    with pytest.raises(PermissionError, match=permission) as caught:
        work(store)
    assert "Storage Object User" in str(caught.value)
    assert "job@p.iam.gserviceaccount.com may not" in str(caught.value), "Google's own words"
    assert len(google.heard) == 1, "a refusal for good is not asked for again"


def test_a_401_without_credentials_says_to_set_some(
    store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(401, complaint(401, "required", "Anonymous caller does not have access"))
    with pytest.raises(PermissionError, match=r"no credentials are set.*fs\.gs\.auth\.type"):
        create(store)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("retentionPolicyNotMet", "Object is subject to bucket's retention policy"),
        ("objectUnderActiveHold", "Object is under active Event-Based hold"),
    ],
)
def test_a_retention_policy_is_named_with_the_way_out(
    reason: str, message: str, store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(403, complaint(403, reason, message))
    with pytest.raises(PermissionError, match=r"retention policy or a hold.*_last_checkpoint"):
        replace(store)


def test_a_bucket_whose_owner_does_not_pay_is_explained(
    store: GCSLogStore, google: ScriptedServer
) -> None:
    message = "Bucket is a requester pays bucket but no user project provided."
    google.say(400, complaint(400, "required", message))
    with pytest.raises(OSError, match=r"fs\.gs\.requester\.pays\.mode=ENABLED"):
        read(store)


@pytest.mark.parametrize("work", [create, replace, read, listing])
@pytest.mark.parametrize("status", [403, 407])
def test_a_page_of_a_proxy_is_distinguished_from_google(
    work: Callable[[GCSLogStore], None], status: int, store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(status, PAGE)
    # Whoever answers so may have let the request through.
    kind = CommitOutcomeUnknownError if work is create else OSError
    with pytest.raises(kind, match="An HTML page answered") as caught:
        work(store)
    assert "Please log in" not in str(caught.value), "no page is poured into a message"


@pytest.mark.parametrize("work", [create, replace, read, listing])
def test_a_missing_bucket_is_named(
    work: Callable[[GCSLogStore], None], store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(404, complaint(404, "notFound", "The specified bucket does not exist."))
    with pytest.raises(FileNotFoundError, match="bucket does not exist"):
        work(store)


def test_a_missing_object_of_a_bucket_with_that_word_in_its_name_is_no_missing_bucket(
    store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(404, complaint(404, "notFound", "No such object: my-bucket/t/x"))
    client, key = store._locate("gs://my-bucket/t/x")
    client.delete(key)
    with pytest.raises(FileNotFoundError, match=r"my-bucket/t/x does not exist$"):
        client.get(key)


def test_a_condition_of_an_organisation_is_no_name_that_is_taken(
    store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(412, complaint(412, "conditionNotMet", "violates constraint"))
    with pytest.raises(OSError, match="violates constraint"):
        replace(store)


def test_a_missing_bucket_of_the_server_is_an_error_for_every_operation(
    fake_gcs: GCSEndpoint,
) -> None:
    store = GCSLogStore({**fake_gcs.conf, **BASE})
    for work in (create, replace, read, listing):
        with pytest.raises(FileNotFoundError):
            work(store)


def test_a_refusal_by_rate_says_how_long_to_wait_and_that_nothing_was_done(
    google: ScriptedServer,
) -> None:
    settings = GCSSettings(root_url=google.url, auth="anonymous")
    client = GCSClient(settings, "bucket", Pace(0.0))
    google.say(429, complaint(429, "rateLimitExceeded", "slow down"), Retry_After="7")
    with pytest.raises(TryAgainError, match="throttles these requests") as caught:
        client.create("t/0.json", b"x", "token")
    assert (caught.value.retry_after, caught.value.may_have_landed) == (7.0, False)


@pytest.mark.parametrize("body", [{"kind": "storage#object", "name": "other"}, PAGE])
def test_a_success_that_names_no_object_is_no_commit(
    body: object, store: GCSLogStore, google: ScriptedServer
) -> None:
    google.say(200, body)
    with pytest.raises(Exception, match="it may come from a proxy in between") as caught:
        create(store)
    assert isinstance(caught.value, CommitOutcomeUnknownError)


def test_a_wrong_checksum_is_no_file(store: GCSLogStore, google: ScriptedServer) -> None:
    google.say(200, ["x"], x_goog_generation="1", x_goog_hash="crc32c=AAAAAA==,md5=xyz")
    with pytest.raises(OSError, match="do not match the checksum"):
        read(store)


def test_without_any_credentials_the_ways_to_get_some_are_named(
    tmp_path: Path, google: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    store = GCSLogStore({**BASE, "spark.hadoop.fs.gs.storage.root.url": google.url})
    with pytest.raises(LogStoreConfError, match="gcloud auth application-default login"):
        create(store)
    assert google.heard == []


@pytest.fixture(scope="module")
def private_key() -> str:
    return new_pem()


@pytest.fixture
def keyfile(tmp_path: Path, private_key: str, google: ScriptedServer) -> str:
    file = tmp_path / "key.json"
    key = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": private_key,
        "client_email": "job@p.iam.gserviceaccount.com",
        "token_uri": f"{google.url}/token",
    }
    file.write_text(json.dumps(key))
    return str(file)


def with_key(root_url: str, keyfile: str) -> GCSLogStore:
    key = {"spark.hadoop.fs.gs.auth.service.account.json.keyfile": keyfile}
    return GCSLogStore({**BASE, **key, "spark.hadoop.fs.gs.storage.root.url": root_url})


def test_the_key_in_the_conf_is_used_and_its_token_is_sent(
    google: ScriptedServer, keyfile: str, fake_gcs: GCSEndpoint, gcs_bucket: str
) -> None:
    google.say(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
    with FaultProxy(fake_gcs.url) as proxy:
        proxy.arm("delay:0", TOKEN.encode(), times=3)
        store = with_key(proxy.url, keyfile)
        path = f"gs://{gcs_bucket}/t/0.json"
        store.write(path, ["x"])
        with store.filesystem.open_input_file(store.filesystem_path(path)) as file:
            assert file.read() == b"x\n"
        assert len(proxy.requests) == 3, "the conf's endpoint is asked, for nothing else"
        client = connection_of(store._settings).client
        # Its thread may be late: what it would ask for is not always among the three.
        assert not getattr(client, "_bucket_metadata_cache", None)
        assert proxy.fired == ["delay:0"] * 3, "upload, look and download carry the token"
    assert len(google.heard) == 1, "one token does for all"
    assert b"devstorage.read_write" not in google.heard[0].body, "the claim is signed, not plain"


def test_a_prepared_create_is_complete_and_carries_the_token(
    google: ScriptedServer, keyfile: str, fake_gcs: GCSEndpoint, gcs_bucket: str
) -> None:
    google.say(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
    settings = GCSSettings(root_url=fake_gcs.url, auth="keyfile", file=keyfile)
    client = GCSClient(settings, gcs_bucket, Pace(0.0))
    prepared = client.prepared_create("t/ü.json", b"body", "a-token")
    assert prepared is not None
    assert f"authorization: bearer {TOKEN}".encode() in prepared.data.lower()
    assert len(google.heard) == 1
    statuses = []
    for _ in range(2):
        with socket.create_connection((prepared.host, prepared.port), timeout=10) as raw:
            raw.sendall(prepared.data)
            statuses.append(raw.recv(12))
    assert statuses == [b"HTTP/1.1 200", b"HTTP/1.1 412"]
    assert client.get("t/ü.json") == b"body"
    owner = client.owner("t/ü.json")
    assert owner is not None
    assert owner.token == "a-token"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
            "timeframe. Check your iat and exp values in the JWT claim.",
            "correct this host's clock",
        ),
        ("Invalid JWT Signature.", "Create a new key"),
        ("Invalid grant: account not found", "Create a new key"),
    ],
)
def test_a_refused_token_tells_a_wrong_clock_from_a_dead_key(
    said: str, expected: str, google: ScriptedServer, keyfile: str
) -> None:
    google.say(400, {"error": "invalid_grant", "error_description": said})
    with pytest.raises(PermissionError, match=expected) as caught:
        read(with_key(google.url, keyfile))
    assert "PRIVATE KEY" not in str(caught.value)


def test_credentials_that_google_no_longer_takes_are_to_be_renewed(
    google: ScriptedServer, keyfile: str
) -> None:
    # The same server gives tokens and refuses them, so only the storage's words are told apart.
    store = with_key(google.url, keyfile)
    google.say(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
    with pytest.raises(OSError, match="has no storage#objects"):
        listing(store)
    google.say(401, complaint(401, "authError", f"Invalid Credentials: Bearer {TOKEN}"))
    with pytest.raises(PermissionError, match=r"expired, was revoked|does not accept") as caught:
        listing(store)
    assert TOKEN not in str(caught.value)


def test_a_token_server_that_is_down_is_reported_as_such(tmp_path: Path, keyfile: str) -> None:
    key = json.loads((tmp_path / "key.json").read_text())
    key["token_uri"] = f"http://127.0.0.1:{free_port()}/token"
    (tmp_path / "key.json").write_text(json.dumps(key))
    with pytest.raises(OSError, match=r"was not written: .*token server does not answer"):
        create(with_key("http://127.0.0.1:1", keyfile))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "can't be read: No such file"),
        ("not json", "not such a JSON file"),
        ('{"type": "authorized_user"}', "not such a JSON file"),
        ('{"client_email": "a", "token_uri": "b", "private_key": "top secret"}', "not such a JSON"),
    ],
)
def test_a_bad_key_file_is_named_and_not_quoted(
    content: str | None, expected: str, tmp_path: Path, google: ScriptedServer
) -> None:
    file = tmp_path / "bad.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(LogStoreConfError, match=expected) as caught:
        read(with_key(google.url, str(file)))
    assert str(file) in str(caught.value)
    assert "top secret" not in str(caught.value)
    assert google.heard == []
