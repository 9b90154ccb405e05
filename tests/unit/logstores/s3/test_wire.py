"""A GET without the SDK's machinery is the SDK's own request, and its refusals are the SDK's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.conf import S3Settings
from lakelog.logstores.s3.sdk import sdk_client, wire_of
from support.scripted_server import ScriptedServer, scripted_server

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = {"fs.s3a.access.key": "AKIA", "fs.s3a.secret.key": "secret", "fs.s3a.endpoint.region": "eu"}
OF_ONE_REQUEST = {"authorization", "x-amz-date", "amz-sdk-invocation-id", "amz-sdk-request"}


@pytest.fixture(scope="module")
def listening() -> Iterator[ScriptedServer]:
    with scripted_server() as found:
        yield found


@pytest.fixture
def server(listening: ScriptedServer) -> ScriptedServer:
    """One for all tests, so that they share the SDK's client, which takes long to make."""
    listening.heard.clear()
    listening.say(200, b"some bytes", ETag='"1"')
    return listening


def settings(server: ScriptedServer, **more: str) -> S3Settings:
    conf = {**KEYS, "fs.s3a.endpoint": server.url}
    conf |= {f"fs.s3a.{name.replace('_', '.')}": value for name, value in more.items()}
    return S3Settings.from_conf(conf, "lake")


def both(server: ScriptedServer, found: S3Settings, key: str, **more: str) -> list[Any]:
    """The request line and headers of both ways to get an object, as the server heard them."""
    always = {"Bucket": "lake", **more}
    heard = []
    sdk_client(found).get_object(Key=key, **always)["Body"].read()
    quick = wire_of(found).get(key, always)
    assert quick is not None
    assert quick["Body"].read() == b"some bytes"
    for each in server.heard[-2:]:
        headers = {k.lower(): v for k, v in each.headers.items() if k.lower() not in OF_ONE_REQUEST}
        heard.append((each.line, headers))
    return heard


@pytest.mark.parametrize(
    "key",
    [
        "table/_delta_log/00000000000000000001.json",
        "grüße/x=a b/%20+~.json",
        "a//b/./c",
        "a/(1)=&$@,;:'*!?#[]",
        "lakelog",
    ],
)
def test_it_asks_as_the_sdk_asks(server: ScriptedServer, key: str) -> None:
    one, other = both(server, settings(server), key)
    assert one == other


def test_what_a_bucket_needs_comes_along(server: ScriptedServer) -> None:
    found = settings(server, session_token="token", user_agent_prefix="mine")
    one, other = both(server, found, "a", RequestPayer="requester")
    assert one == other
    assert other[1]["x-amz-request-payer"] == "requester"
    assert other[1]["x-amz-security-token"] == "token"


def test_the_token_of_the_moment_is_sent_once(server: ScriptedServer) -> None:
    both(server, settings(server, session_token="token"), "a")
    heard = server.heard[-1].headers
    assert [name.lower() for name in heard].count("x-amz-security-token") == 1
    assert "x-amz-security-token" in heard["Authorization"], "it is signed"


def refusal(request: Any) -> tuple[str, Any, Any]:
    with pytest.raises(ClientError) as caught:
        request()
    reply = caught.value.response
    meta = reply["ResponseMetadata"]
    headers = {k: v for k, v in meta["HTTPHeaders"].items() if k != "date"}
    return caught.value.operation_name, reply["Error"], (meta["HTTPStatusCode"], headers)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"<Error><Code>NoSuchKey</Code><Message>none</Message><Key>a</Key></Error>"),
        (403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
        (301, b"<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region></Error>"),
        (503, b"<Error><Code>SlowDown</Code><Message>slower</Message></Error>"),
        (502, b"<html>bad gateway</html>"),
        (404, b""),
        (400, b"no XML at all"),
    ],
)
def test_it_is_refused_as_the_sdk_is_refused(
    server: ScriptedServer, status: int, body: bytes
) -> None:
    found = settings(server)
    server.say(status, body, x_amz_request_id="R", x_amz_bucket_region="eu-west-1")
    wire, sdk = wire_of(found), sdk_client(found)
    before = len(server.heard)
    quick = refusal(lambda: wire.get("a", {"Bucket": "lake"}))
    assert len(server.heard) == before + 1, "what was refused is not sent again"
    assert quick == refusal(lambda: sdk.get_object(Bucket="lake", Key="a"))


def test_what_is_not_signed_is_left_to_the_sdk(server: ScriptedServer) -> None:
    found = settings(
        server,
        **{"aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
    )
    assert wire_of(found).get("a", {"Bucket": "lake"}) is None
    assert server.heard == []


def test_what_is_signed_in_another_way_is_left_to_the_sdk(server: ScriptedServer) -> None:
    found = settings(server)
    wire = wire_of(found)
    seen: list[str] = []

    def sign_otherwise(**_: Any) -> str:
        seen.append("asked")
        return "s3"

    wire.client.meta.events.register("choose-signer.s3", sign_otherwise)
    try:
        assert wire.get("a", {"Bucket": "another"}) is None
    finally:
        wire.client.meta.events.unregister("choose-signer.s3", sign_otherwise)
    assert seen
    assert server.heard == []


def test_without_credentials_nothing_is_sent(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    provider = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
    conf = {"fs.s3a.endpoint": server.url, "fs.s3a.aws.credentials.provider": provider}
    wire = wire_of(S3Settings.from_conf(conf, "lake"))
    for _ in range(2):
        with pytest.raises(NoCredentialsError):
            wire.get("a", {"Bucket": "lake"})
    assert server.heard == []


def test_the_sdk_sends_over_the_same_connections(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.httpsession import URLLib3Session

    senders: list[Any] = []
    send = URLLib3Session.send

    def noted(session: Any, request: Any) -> Any:
        senders.append(session)
        return send(session, request)

    monkeypatch.setattr(URLLib3Session, "send", noted)
    both(server, settings(server), "a")
    assert len(senders) == 2
    assert senders[0] is senders[1]


@pytest.mark.parametrize(("size", "asks"), [(0, False), (700, False), (1 << 20, True)])
def test_only_a_large_body_waits_to_be_asked_for(
    server: ScriptedServer, size: int, asks: bool
) -> None:
    server.say(200, b"", ETag='"1"')
    client = S3Client.from_conf({**KEYS, "fs.s3a.endpoint": server.url}, "bucket")
    client.create("key", b"x" * size, "token")
    [heard] = server.heard
    assert heard.body == b"x" * size
    assert ("Expect" in heard.headers) is asks
