"""Arrow's S3 file system, for data files and checkpoints, from the settings of the log."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lakelog.logstores.environment import environment_proxy
from lakelog.logstores.errors import LogStoreConfError, MissingExtraError
from lakelog.logstores.s3.credentials import CredentialSource

if TYPE_CHECKING:
    import pyarrow.fs

    from lakelog.logstores.s3.conf import S3Settings

_OWN_CHAIN: Final = {
    CredentialSource.CHAIN,
    CredentialSource.ENVIRONMENT,
    CredentialSource.PROFILE,
    CredentialSource.WEB_IDENTITY,
    CredentialSource.CONTAINER,
    CredentialSource.INSTANCE,
}
"""Sources that Arrow's default chain, of the AWS SDK for C++, has as well."""


def arrow_filesystem(settings: S3Settings) -> pyarrow.fs.S3FileSystem:
    """A file system that reaches the same buckets with the same credentials.

    It can be pickled, for executors. With no keys in the settings it holds none, and looks for
    them where it is used.

    Raises:
        LogStoreConfError: Arrow can't do what a setting asks for.
    """
    # botocore reads these itself; Arrow does not.
    bundle = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE")
    proxy = settings.proxy or environment_proxy(settings.endpoint or _default_endpoint(settings))
    return _made(settings, bundle, proxy, os.getpid())


def _default_endpoint(settings: S3Settings) -> str:
    scheme = "https" if settings.tls else "http"
    region = settings.region or _region()
    return f"{scheme}://s3.{region}.amazonaws.com{'.cn' * region.startswith('cn-')}"


def _with_port(proxy: str) -> str:
    """The URL with the port that its scheme implies, which Arrow does not know."""
    parts = urlsplit(proxy)
    if parts.port is not None:
        return proxy
    port = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{parts.netloc.removesuffix(':')}:{port}"


@lru_cache(maxsize=16)
def _made(
    settings: S3Settings,
    bundle: str | None,
    proxy: str | None,
    pid: int,  # noqa: ARG001
) -> pyarrow.fs.S3FileSystem:
    # The process is part of the key: connections and threads don't survive a fork.
    from pyarrow.fs import S3FileSystem

    _refuse_what_arrow_lacks(settings)
    options: dict[str, Any] = {"connect_timeout": settings.connect_timeout}
    options["request_timeout"] = settings.read_timeout
    options["region"] = settings.region or _region()
    options["scheme"] = "https" if settings.tls else "http"
    if settings.endpoint:
        options["scheme"], _, options["endpoint_override"] = settings.endpoint.partition("://")
        # Arrow puts the bucket into the path on any endpoint that it is given.
        options["force_virtual_addressing"] = settings.addressing != "path"
    if proxy:
        options["proxy_options"] = _with_port(proxy)
    options |= _credentials(settings)
    # Arrow learnt these after the oldest version of our range, the last one last: a small file is
    # one PUT, not a multipart upload of three requests; and other certificates than SSL_CERT_FILE.
    later: dict[str, Any] = {"allow_delayed_open": True}
    if bundle:
        later["tls_ca_file_path"] = bundle
    while later:
        try:
            return S3FileSystem(**options, **later)
        except TypeError:
            later.popitem()
    return S3FileSystem(**options)


def _credentials(settings: S3Settings) -> dict[str, Any]:
    role = settings.role
    given = {"access_key": settings.access_key, "secret_key": settings.secret_key}
    if role is not None:
        return {
            "role_arn": role.arn,
            "session_name": role.session_name,
            "external_id": role.external_id,
            "load_frequency": role.seconds,
        }
    for source in settings.sources:
        if source is CredentialSource.ANONYMOUS:
            return {"anonymous": True}
        if source in _OWN_CHAIN:
            return {}
        if source is CredentialSource.TEMPORARY and settings.session_token:
            return {**given, "session_token": settings.session_token}
        if source is CredentialSource.SIMPLE and settings.access_key:
            return given
    return {}


def _region() -> str:
    """As boto3 has it, without importing that: Arrow would ask the machine's metadata service."""
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        from botocore.session import get_session
    except ModuleNotFoundError as error:
        raise MissingExtraError("s3", "S3") from error

    return get_session().get_config_variable("region") or "us-east-1"


def _refuse_what_arrow_lacks(settings: S3Settings) -> None:
    encryption = settings.encryption
    if encryption is not None and encryption.algorithm != "AES256":
        raise LogStoreConfError(
            f"fs.s3a.encryption.algorithm asks for {encryption.algorithm}, and Arrow's S3 file "
            "system, which writes data files, can't ask for it with each object. Make it the "
            "bucket's default encryption (aws s3api put-bucket-encryption) and unset the key; "
            "SSE-C can't be used."
        )
    if settings.requester_pays:
        raise LogStoreConfError(
            "fs.s3a.requester.pays.enabled: Arrow's S3 file system, which reads data files, "
            "can't send that header. Copy the table to a bucket of your own, or ask its owner."
        )
    role = settings.role
    if role is not None and (
        role.policy or role.sts_endpoint or role.sources or settings.access_key
    ):
        raise LogStoreConfError(
            "a role with fs.s3a.assumed.role.policy, .sts.endpoint or .credentials.provider, or "
            "with fs.s3a.access.key beside it: Arrow's S3 file system, which writes data files, "
            "can assume a role with its default credentials only. Put the role into a "
            "profile (role_arn, source_profile), name it by AWS_PROFILE, and set "
            "fs.s3a.aws.credentials.provider to ProfileAWSCredentialsProvider."
        )
