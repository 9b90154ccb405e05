"""Credentials that the server vends, as the keys by which lakelog's stores take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lakelog.core.catalogs.contract import Credentials
from lakelog.core.errors import CatalogError
from lakelog.logstores import keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HADOOP: Final = "spark.hadoop."
_NEVER: Final = 253_402_300_800_000
"""The year 10000, in milliseconds: what ends then or later has no end."""
_SIMPLE: Final = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_TEMPORARY: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"


def conf_of(vended: Sequence[Mapping[str, Any]], location: str, catalog: str) -> Credentials:
    """The credentials for a location: those of its longest prefix.

    Args:
        vended: the server's `storage-credentials`.
        location: the table's, as the server spells it.
        catalog: its name, for errors.

    Raises:
        CatalogError: they are of a kind that no store takes.
        KeyError: one lacks its other half.
        TypeError: they are not what the API says; as an `AttributeError`.
    """
    fitting = [each for each in vended if _covers(each.get("prefix") or "", location)]
    if not fitting:
        return Credentials(conf={})
    best = max(fitting, key=lambda each: len(each.get("prefix") or ""))
    config, ends = _texts(best.get("config") or {}), _end(best.get("expiration-time-ms"))
    if not config:
        return Credentials(conf={}, ends_at_ms=ends)
    parts = urlsplit(location)
    found: dict[str, str] = {}
    if "s3.access-key-id" in config:
        bucket = f"{_HADOOP}fs.s3a.bucket.{parts.netloc}."
        token = config.get("s3.session-token")
        found = {
            f"{bucket}access.key": config["s3.access-key-id"],
            f"{bucket}secret.key": config["s3.secret-access-key"],
            f"{bucket}aws.credentials.provider": _TEMPORARY if token else _SIMPLE,
        }
        if token:
            found[f"{bucket}session.token"] = token
    elif "azure.sas-token" in config:
        host = parts.netloc.rpartition("@")[2]
        found = {
            f"{_HADOOP}fs.azure.account.auth.type.{host}": "SAS",
            f"{_HADOOP}fs.azure.sas.fixed.token.{host}": config["azure.sas-token"],
        }
    elif "gcs.oauth-token" in config:
        found = {keys.GCS_TOKEN.name: config["gcs.oauth-token"]}
    if not found:
        raise CatalogError(
            f"the catalog {catalog} vends credentials for {location} that no store of lakelog "
            f"takes: {', '.join(sorted(config))}. Set the storage's own credentials, and "
            f"spark.lakelog.catalog.{catalog}.credentials = own."
        )
    return Credentials(conf=found, ends_at_ms=ends)


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    found = {key: value for key, value in config.items() if value is not None}
    if not all(isinstance(value, str) for value in found.values()):
        raise TypeError
    return found


def _end(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 0):
        raise TypeError
    return None if value is None or value >= _NEVER else value


def _covers(prefix: str, location: str) -> bool:
    if not prefix:
        return True  # it was asked for this one
    base, place = _one_spelling(prefix).rstrip("/"), _one_spelling(location)
    return place == base or place.startswith(f"{base}/")


def _one_spelling(uri: str) -> str:
    """The same for all schemes of S3: a server may use one for a prefix, and one for a table."""
    scheme, mark, rest = uri.partition("://")
    return f"s3://{rest}" if mark and scheme.lower() in ("s3", "s3a", "s3n") else uri
