"""One SDK client per process and settings: making one costs a tenth of a second.

A client holds open connections, which two processes must not share. So it is kept here, never in
a store, and a forked child begins without clients.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError
from lakelog.logstores.locations import check_endpoints, without_secrets
from lakelog.logstores.s3.credentials import use_sources
from lakelog.logstores.s3.errors import Place, speaking_s3
from lakelog.logstores.s3.models import loader_of
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.s3.conf import S3Settings
    from lakelog.logstores.s3.wire import Wire

_SERVICE: Final = "s3"
_DEFAULT_REGION: Final = "us-east-1"
_SOURCES: Final = {
    "lakelog-conf": "fs.s3a.access.key of the conf",
    "lakelog-assumed-role": "the role fs.s3a.assumed.role.arn",
    "env": "the environment (AWS_ACCESS_KEY_ID)",
}
"""botocore's names of credential sources, in plain words."""
_MOST: Final = 64
"""Clients that are kept; the oldest is dropped when another one is made."""


class _Shelf:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wires: dict[S3Settings, Wire] = {}


_shelf = _Shelf()


def _reset_after_fork() -> None:
    # The lock may have been held at the fork, by a thread that the child doesn't have.
    global _shelf
    _shelf = _Shelf()


after_fork(_reset_after_fork)


def sdk_client(settings: S3Settings) -> Any:
    """The S3 client for some settings, of this process; safe to share by its threads.

    Raises:
        MissingExtraError: boto3 is not installed.
        PermissionError: the profile that holds the credentials does not exist.
        LogStoreConfError: the endpoint is not a URL.
    """
    return wire_of(settings).client


def wire_of(settings: S3Settings) -> Wire:
    """The same client with its connections.

    Raises:
        MissingExtraError: boto3 is not installed.
        PermissionError: the profile that holds the credentials does not exist.
        LogStoreConfError: the endpoint is not a URL.
    """
    shelf = _shelf
    found = shelf.wires.get(settings)
    if found is not None:
        return found
    with shelf.lock:
        if settings not in shelf.wires:
            while len(shelf.wires) >= _MOST:
                del shelf.wires[next(iter(shelf.wires))]
            place = Place(settings.endpoint or "AWS", settings.region or "")
            with _uncollected(), speaking_s3("connect", place):
                shelf.wires[settings] = _new_wire(settings)
        return shelf.wires[settings]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: what the SDK's import and models make stays.

    Looking through it again and again takes a fifth of the first client's time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _new_wire(settings: S3Settings) -> Wire:
    from lakelog.logstores.s3.wire import Wire

    core, signed = _core_session(settings)
    client = _client_of(core, settings, signed=signed, signs_body=None)
    return Wire(client, core.get_config_variable("ca_bundle"))


def new_sdk_client(settings: S3Settings, *, signs_body: bool | None = None) -> Any:
    """A client that is not shared, whose events may be hooked.

    Args:
        settings: where, and as whom.
        signs_body: whether the signature covers what is sent; None leaves it to the SDK.
    """
    core, signed = _core_session(settings)
    return _client_of(core, settings, signed=signed, signs_body=signs_body)


def _client_of(core: Any, settings: S3Settings, *, signed: bool, signs_body: bool | None) -> Any:
    config = client_config(settings, signed=signed, signs_body=signs_body)
    try:
        client = _made(core, _SERVICE, settings, config)
    except ValueError as error:
        raise LogStoreConfError(
            without_secrets(f"fs.s3a.endpoint = {settings.endpoint}: {error}")
        ) from None
    client.meta.events.register("before-call.s3", _stay_in_region)
    return client


def new_client(service: str, settings: S3Settings) -> Any:
    """A client of another of AWS's services that is reached as the settings say.

    Args:
        service: as the SDK names it.
        settings: where, and as whom.

    Raises:
        MissingExtraError: boto3 is not installed.
        ValueError: the endpoint is not a URL.
    """
    core, signed = _core_session(settings)
    return _made(core, service, settings, client_config(settings, signed=signed))


def _made(core: Any, service: str, settings: S3Settings, config: Any) -> Any:
    """What boto3 makes of this, without the third more of imports that its resources take."""
    core.register_component("data_loader", loader_of(core))
    client = core.create_client(
        service,
        region_name=_region_of(core, settings),
        endpoint_url=settings.endpoint,
        use_ssl=settings.tls,
        config=config,
    )
    # The conf's was checked before; the environment and profiles may have another.
    check_endpoints({"the endpoint_url of AWS's environment or profile": client.meta.endpoint_url})
    return client


def boto_session(settings: S3Settings) -> tuple[Any, bool]:
    """A boto3 session with the settings' credentials and region, and whether it signs.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    core, signed = _core_session(settings)
    return _session_of(core, settings), signed


def _core_session(settings: S3Settings) -> tuple[Any, bool]:
    """A botocore session with the settings' credentials, and whether it signs."""
    try:
        import botocore.session
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "S3") from error
    core = botocore.session.get_session()
    return core, use_sources(core, settings)


def _session_of(core: Any, settings: S3Settings) -> Any:
    try:
        from boto3.session import Session
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "S3") from error
    return Session(botocore_session=core, region_name=_region_of(core, settings))


def _region_of(core: Any, settings: S3Settings) -> str:
    found: str = settings.region or core.get_config_variable("region") or _DEFAULT_REGION
    return found


def in_force(settings: S3Settings) -> dict[str, str]:
    """The effective settings, for display; without secrets."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "S3") from error

    meta = sdk_client(settings).meta
    session, signed = boto_session(settings)
    try:
        found = session.get_credentials() if signed else None
        source = "requests are not signed" if not signed else "none were found"
        if found is not None:
            source = f"from {_SOURCES.get(found.method, found.method)}"
    except (BotoCoreError, ClientError) as error:
        source = f"unavailable ({type(error).__name__})"
    return {
        "s3 endpoint": meta.endpoint_url,
        "s3 region": meta.region_name,
        "s3 credentials": source,
    }


def client_config(
    settings: S3Settings, *, signed: bool = True, signs_body: bool | None = None
) -> Any:
    """How every request is sent: once, with the settings' timeouts and proxy."""
    import botocore
    from botocore.config import Config

    return Config(
        # A repeated create meets its own object: lakelog repeats, and knows its own.
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_pool_connections=settings.connections,
        tcp_keepalive=True,
        proxies={"http": settings.proxy, "https": settings.proxy} if settings.proxy else None,
        user_agent_extra=settings.user_agent or "lakelog",
        signature_version=None if signed else botocore.UNSIGNED,
        # Servers other than AWS's refuse the newer checksums, and SigV4 covers the body anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": settings.addressing, "payload_signing_enabled": signs_body},
    )


def _stay_in_region(context: dict[str, Any], **_: Any) -> None:
    # botocore would look up the bucket's region, a request or two each time, and hide the wrong
    # setting from everything else that reads it (pyarrow does not look it up).
    if "s3_redirect" in context:
        context["s3_redirect"]["redirected"] = True
