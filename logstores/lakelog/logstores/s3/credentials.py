"""Where S3 credentials come from: Hadoop's provider classes, and what replaces them.

Nothing here asks for credentials: the SDK does, at the first request, and refreshes them.
"""

from __future__ import annotations

import difflib
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from lakelog.logstores.errors import LogStoreConfError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CredentialSource(enum.Enum):
    """A place to look for credentials."""

    SIMPLE = "access key and secret key of the conf"
    TEMPORARY = "access key, secret key and session token of the conf"
    ANONYMOUS = "none: requests are not signed"
    ENVIRONMENT = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    PROFILE = "the shared credentials file and profiles"
    WEB_IDENTITY = "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN"
    CONTAINER = "the container's credentials URI"
    INSTANCE = "the instance's metadata service"
    CHAIN = "the SDK's default chain"
    ASSUMED_ROLE = "a role, assumed with other credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedRole:
    """A role and how to assume it."""

    arn: str
    session_name: str
    seconds: int
    """How long a session lasts; it is renewed before it ends."""
    external_id: str | None
    policy: str | None
    """A JSON policy that narrows the session."""
    sts_endpoint: str | None
    sts_region: str | None
    sources: tuple[CredentialSource, ...]
    """The credentials that assume it; empty: the conf's keys, then the SDK's default chain."""


_NAMES: Final = {
    "SimpleAWSCredentialsProvider": CredentialSource.SIMPLE,
    "TemporaryAWSCredentialsProvider": CredentialSource.TEMPORARY,
    "AnonymousAWSCredentialsProvider": CredentialSource.ANONYMOUS,
    "AnonymousAWSCredentials": CredentialSource.ANONYMOUS,
    "AnonymousCredentialsProvider": CredentialSource.ANONYMOUS,
    "EnvironmentVariableCredentialsProvider": CredentialSource.ENVIRONMENT,
    "ProfileAWSCredentialsProvider": CredentialSource.PROFILE,
    "ProfileCredentialsProvider": CredentialSource.PROFILE,
    "WebIdentityTokenCredentialsProvider": CredentialSource.WEB_IDENTITY,
    "WebIdentityTokenFileCredentialsProvider": CredentialSource.WEB_IDENTITY,
    "ContainerCredentialsProvider": CredentialSource.CONTAINER,
    "EC2ContainerCredentialsProviderWrapper": CredentialSource.INSTANCE,
    "IAMInstanceCredentialsProvider": CredentialSource.INSTANCE,
    "InstanceProfileCredentialsProvider": CredentialSource.INSTANCE,
    "SharedInstanceProfileCredentialsProvider": CredentialSource.INSTANCE,
    "DefaultAWSCredentialsProviderChain": CredentialSource.CHAIN,
    "DefaultCredentialsProvider": CredentialSource.CHAIN,
    "AssumedRoleCredentialProvider": CredentialSource.ASSUMED_ROLE,
}
"""Last part of a Java class's name -> source. The packages differ between versions of Hadoop and
of the AWS SDK for Java, but the last parts are unambiguous."""

# botocore's names of its own providers.
_METHODS: Final = {
    CredentialSource.ENVIRONMENT: ("env",),
    CredentialSource.PROFILE: (
        "assume-role",
        "sso",
        "shared-credentials-file",
        "custom-process",
        "config-file",
    ),
    CredentialSource.WEB_IDENTITY: ("assume-role-with-web-identity",),
    CredentialSource.CONTAINER: ("container-role",),
    # Hadoop's IAM provider also asks the container first.
    CredentialSource.INSTANCE: ("container-role", "iam-role"),
}


def sources_from(text: str | None, key: Callable[[str], str]) -> tuple[CredentialSource, ...]:
    """Translate a comma-separated list of Java class names.

    Args:
        text: the value of `fs.s3a.aws.credentials.provider`, or `None`.
        key: gives the spelling of that key which is set, for messages.

    Raises:
        LogStoreConfError: an unknown class.
    """
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    return tuple(_source(name, key("aws.credentials.provider")) for name in names)


def _source(name: str, key: str) -> CredentialSource:
    last = name.rpartition(".")[2]
    if last in _NAMES:
        return _NAMES[last]
    near = difflib.get_close_matches(last, _NAMES, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise LogStoreConfError(
        f"{key} names {name}, which has no counterpart here; {hint}Known names "
        f"are {', '.join(_NAMES)}. Unset the key to use the SDK's default chain."
    )


class SourceSettings(Protocol):
    """What is known of credentials; `S3Settings` is one."""

    @property
    def sources(self) -> Sequence[CredentialSource]:
        """Where to look, in order; empty for the SDK's own chain."""
        ...

    @property
    def access_key(self) -> str | None:
        """As given."""
        ...

    @property
    def secret_key(self) -> str | None:
        """As given."""
        ...

    @property
    def session_token(self) -> str | None:
        """As given."""
        ...

    @property
    def role(self) -> AssumedRole | None:
        """The role to take on."""
        ...

    @property
    def region(self) -> str | None:
        """Where the service of the role is, unless the role says."""
        ...

    @property
    def tls(self) -> bool:
        """Whether https is used."""
        ...


def use_sources(session: Any, settings: SourceSettings) -> bool:
    """Let a botocore session look for credentials where the settings say.

    Returns:
        Whether requests are to be signed.
    """
    sources = settings.sources
    if CredentialSource.ANONYMOUS in sources:
        others = [each for each in sources if each is not CredentialSource.ANONYMOUS]
        if not others:
            return False
        _register(session, settings, others)
        return session.get_credentials() is not None
    if sources:
        _register(session, settings, sources)
    return True


def _register(session: Any, settings: SourceSettings, sources: Sequence[CredentialSource]) -> None:
    from botocore.credentials import CredentialResolver

    chain = session.get_component("credential_provider")
    providers: list[Any] = []
    for source in sources:
        providers += _providers(session, chain, settings, source)
    session.register_component("credential_provider", CredentialResolver(providers))


def _providers(
    session: Any, chain: Any, settings: SourceSettings, source: CredentialSource
) -> list[Any]:
    if source is CredentialSource.CHAIN:
        return list(chain.providers)
    if source in (CredentialSource.SIMPLE, CredentialSource.TEMPORARY):
        token = settings.session_token if source is CredentialSource.TEMPORARY else None
        if not settings.access_key or (source is CredentialSource.TEMPORARY and not token):
            return []
        return [_given(settings.access_key, settings.secret_key, token)]
    if source is CredentialSource.ASSUMED_ROLE:
        return [_assumed(session, chain, settings, settings.role)] if settings.role else []
    known = {provider.METHOD: provider for provider in chain.providers}
    return [known[method] for method in _METHODS[source] if method in known]


def _given(access_key: str, secret_key: str | None, token: str | None) -> Any:
    from botocore.credentials import CredentialProvider, Credentials

    class Given(CredentialProvider):  # type: ignore[misc, unused-ignore]  # no stubs: it is Any
        METHOD = "lakelog-conf"

        def load(self) -> Any:
            return Credentials(access_key, secret_key, token, method=self.METHOD)

    return Given()


def _assumed(session: Any, chain: Any, settings: SourceSettings, role: AssumedRole) -> Any:
    from botocore.credentials import (
        AssumeRoleCredentialFetcher,
        CredentialProvider,
        CredentialResolver,
        DeferredRefreshableCredentials,
    )

    inner = role.sources or (
        (CredentialSource.TEMPORARY, CredentialSource.SIMPLE, CredentialSource.CHAIN)
    )
    providers = [
        provider for each in inner for provider in _providers(session, chain, settings, each)
    ]

    def sts(service: str, **keys: Any) -> Any:
        region = role.sts_region or settings.region
        url = role.sts_endpoint
        if url and "://" not in url:
            url = f"{'https' if settings.tls else 'http'}://{url}"
        return session.create_client(service, region_name=region, endpoint_url=url, **keys)

    class Assumed(CredentialProvider):  # type: ignore[misc, unused-ignore]  # no stubs: it is Any
        METHOD = "lakelog-assumed-role"

        def load(self) -> Any:
            base = CredentialResolver(providers).load_credentials()
            if base is None:
                return None
            extra = {"RoleSessionName": role.session_name, "DurationSeconds": role.seconds}
            if role.external_id:
                extra["ExternalId"] = role.external_id
            if role.policy:
                extra["Policy"] = role.policy
            fetcher = AssumeRoleCredentialFetcher(sts, base, role.arn, extra_args=extra)
            return DeferredRefreshableCredentials(
                method=self.METHOD, refresh_using=fetcher.fetch_credentials
            )

    return Assumed()
