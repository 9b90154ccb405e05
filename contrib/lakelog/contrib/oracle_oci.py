"""Oracle Cloud Infrastructure Object Storage: a commit is a PutObject with `if-none-match: *`.

It uses Oracle's own API. The S3-compatible one does not list conditional puts as supported:
https://docs.oracle.com/en-us/iaas/Content/Object/Tasks/s3compatibleapi_topic-Amazon_S3_Compatibility_API_Support.htm

Paths and settings are those of Oracle's HDFS connector: `oci://bucket@namespace/key`, and
`fs.oci.client.*`; else `~/.oci/config`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from lakelog.contrib.oci_client import OCIClient
from lakelog.contrib.sdk_store import SdkLogStore
from lakelog.logstores import LogStoreConfError, MissingExtraError
from lakelog.logstores.locations import shown

_URI: Final = re.compile(r"oci://([^/@]+)@([^/@]+)(?:/(.*))?", re.DOTALL)
_REGION: Final = re.compile(r"objectstorage\.([a-z0-9-]+)\.")
_AUTH: Final = {
    "user": "auth.userId",
    "tenancy": "auth.tenantId",
    "fingerprint": "auth.fingerprint",
    "key_file": "auth.pemfilepath",
}
_PRINCIPALS: Final = {
    "InstancePrincipalsCustomAuthenticator": "instance",
    "ResourcePrincipalsCustomAuthenticator": "resource",
}


class OracleCloudLogStore(SdkLogStore):
    """A log on Oracle Object Storage, for any number of writers anywhere."""

    scheme = "oci"
    settings_prefix = "fs.oci.client."

    def _split(self, path: str) -> tuple[tuple[str, ...], str]:
        match = _URI.fullmatch(path)
        if match is None:
            raise LogStoreConfError(f"{shown(path)} is not of the form oci://bucket@namespace/key")
        return (match[1], match[2]), match[3] or ""

    def _client(self, place: tuple[str, ...]) -> OCIClient:
        bucket, namespace = place
        return OCIClient(self._shared(), namespace, bucket)

    def _shared(self) -> Any:
        """The process's one SDK client for these settings: making one takes a tenth of a second."""
        kept = frozenset(item for item in self.conf.items() if "fs.oci.client." in item[0])
        name = (os.getpid(), kept, self._timeout)
        found = _sdks.get(name)
        if found is None:
            # Two threads may both make one; the first one stored is used by all.
            found = _sdks.setdefault(name, self._connected())
        return found

    def _connected(self) -> Any:
        try:
            import oci
        except ImportError as error:
            raise MissingExtraError("oci", "Oracle Object Storage") from error

        config, more = self._identity(oci)
        region, host = self._setting("regionCodeOrId"), self._setting("hostname")
        if region:
            config["region"] = region
        if host:
            more["service_endpoint"] = host if "://" in host else f"https://{host}"
            if config:
                # The SDK wants one, but a request to a named host has no region in it.
                named = _REGION.search(host)
                config.setdefault("region", named[1] if named else "us-ashburn-1")
        try:
            return oci.object_storage.ObjectStorageClient(
                config,
                retry_strategy=oci.retry.NoneRetryStrategy(),
                circuit_breaker_strategy=oci.circuit_breaker.NoCircuitBreakerStrategy(),
                timeout=(self._timeout, self._timeout),
                **more,
            )
        # Their texts may quote the key.
        except (oci.exceptions.ClientError, ValueError, OSError) as error:
            raise LogStoreConfError(
                "Oracle's client could not be created from fs.oci.client.* or ~/.oci/config "
                f"({type(error).__name__}). Check hostname, auth.tenantId, auth.userId, "
                "auth.fingerprint, and that auth.pemfilepath is a readable PEM key on this host."
            ) from None

    def _identity(self, oci: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The SDK's config, and a signer where the machine itself is the user."""
        java = self._setting("custom.authenticator")
        if java is not None:
            kind = _PRINCIPALS.get(java.rpartition(".")[2])
            if kind is None:
                raise LogStoreConfError(
                    f"fs.oci.client.custom.authenticator is {java}, a Java class that has no "
                    f"counterpart here; {' and '.join(sorted(_PRINCIPALS))} have"
                )
            if kind == "instance":
                return {}, {"signer": oci.auth.signers.InstancePrincipalsSecurityTokenSigner()}
            return {}, {"signer": oci.auth.signers.get_resource_principals_signer()}
        given = {name: self._setting(key) for name, key in _AUTH.items()}
        if not any(given.values()):
            return self._from_file(oci), {}
        missing = [f"fs.oci.client.{_AUTH[name]}" for name, value in given.items() if not value]
        if missing:
            raise LogStoreConfError(f"these settings are missing: {', '.join(missing)}")
        if not Path(given["key_file"] or "").is_file():
            raise LogStoreConfError(
                f"fs.oci.client.auth.pemfilepath is {given['key_file']}, which is not a file on "
                "this host. It has to be on every host that works with the table."
            )
        return {**given, "pass_phrase": self._setting("auth.passphrase")}, {}

    def _from_file(self, oci: Any) -> dict[str, Any]:
        try:
            return dict(oci.config.from_file())
        except (oci.exceptions.ClientError, OSError) as error:
            raise LogStoreConfError(
                "no credentials for Oracle Object Storage: set fs.oci.client.auth.tenantId, "
                "auth.userId, auth.fingerprint and auth.pemfilepath, or make ~/.oci/config "
                f"({type(error).__name__})"
            ) from None


_sdks: dict[tuple[int, frozenset[tuple[str, str]], float], Any] = {}
