"""Google credentials out of settings. Only the default chain asks a server here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.gcs.conf import GCSSettings

_STORAGE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105, RUF100  # an address


def credentials_of(settings: GCSSettings) -> Any:
    """The credentials that the settings name.

    Raises:
        MissingExtraError: the extra `gcs` is not installed.
        LogStoreConfError: a key can't be read, or there are no default credentials.
    """
    try:
        from google.auth import impersonated_credentials
    except ImportError as error:
        raise MissingExtraError("gcs", "Google Cloud Storage") from error

    # Acting as another account is a request of its own, which the storage scope does not cover.
    scope = _PLATFORM if settings.impersonated else _STORAGE
    source = _MAKERS[settings.auth](settings, [scope])
    if settings.impersonated is None:
        return source
    return impersonated_credentials.Credentials(
        source_credentials=source,
        target_principal=settings.impersonated,
        target_scopes=[_STORAGE],
    )


def _default(settings: GCSSettings, scopes: list[str]) -> Any:  # noqa: ARG001
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        credentials, _ = google.auth.default(scopes=scopes)
    except GoogleAuthError as error:
        raise LogStoreConfError(
            "no Google credentials were found. Run `gcloud auth application-default login`, or "
            "set GOOGLE_APPLICATION_CREDENTIALS to a key file, or set "
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile, or, for a public bucket or an "
            "emulator, spark.hadoop.fs.gs.auth.type=UNAUTHENTICATED"
        ) from error
    return credentials


def _anonymous(settings: GCSSettings, scopes: list[str]) -> Any:  # noqa: ARG001
    from google.auth.credentials import AnonymousCredentials

    return AnonymousCredentials()


def _keyfile(settings: GCSSettings, scopes: list[str]) -> Any:
    from google.oauth2 import service_account

    def read() -> Any:
        return service_account.Credentials.from_service_account_file(settings.file, scopes=scopes)

    return _from_file(settings, "fs.gs.auth.service.account.json.keyfile", read)


def _federation(settings: GCSSettings, scopes: list[str]) -> Any:
    import google.auth

    def read() -> Any:
        return google.auth.load_credentials_from_file(settings.file, scopes=scopes)[0]

    key = "fs.gs.auth.workload.identity.federation.credential.config.file"
    return _from_file(settings, key, read)


def _from_file(settings: GCSSettings, key: str, read: Callable[[], Any]) -> Any:
    from google.auth.exceptions import GoogleAuthError

    try:
        return read()
    except OSError as error:
        raise LogStoreConfError(
            f"{key} is {settings.file}, which can't be read: {error.strerror}. The file has to be "
            "on every host that works with the table."
        ) from None
    # A parser's error about a bad key may quote it, so its text is not passed on.
    except (ValueError, KeyError, GoogleAuthError):
        raise LogStoreConfError(
            f"{key} is {settings.file}, which is not such a JSON file, or is damaged. Download "
            "a new one."
        ) from None


def _key(settings: GCSSettings, scopes: list[str]) -> Any:
    from google.auth.exceptions import GoogleAuthError
    from google.oauth2 import service_account

    email, key_id, key = settings.secrets
    info = {
        "type": "service_account",
        "client_email": email,
        "private_key_id": key_id,
        # A conf file holds the key in one line.
        "private_key": key.replace("\\n", "\n"),
        "token_uri": _TOKEN_URI,
    }
    try:
        return service_account.Credentials.from_service_account_info(info, scopes=scopes)
    except (ValueError, KeyError, GoogleAuthError):
        raise LogStoreConfError(
            "fs.gs.auth.service.account.private.key is not a PEM private key"
        ) from None


def _user(settings: GCSSettings, scopes: list[str]) -> Any:
    from google.oauth2.credentials import Credentials

    client_id, client_secret, refresh_token = settings.secrets
    return Credentials(
        token=None,
        refresh_token=refresh_token,
        client_id=client_id,
        client_secret=client_secret,
        token_uri=_TOKEN_URI,
        scopes=scopes,
    )


def _token(settings: GCSSettings, scopes: list[str]) -> Any:  # noqa: ARG001
    from google.oauth2.credentials import Credentials

    # It can't be renewed here: whoever gave it gives another one.
    return Credentials(token=settings.secrets[0])


_MAKERS: Final = {
    "default": _default,
    "anonymous": _anonymous,
    "keyfile": _keyfile,
    "key": _key,
    "federation": _federation,
    "user": _user,
    "token": _token,
}
