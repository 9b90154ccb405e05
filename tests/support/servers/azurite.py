"""Azurite: Azure's blob service, without accounts of hierarchical namespace (the dfs API)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from support.servers._service import (
    ServerUnavailableError,
    answers,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from azure.storage.blob import BlobServiceClient

VERSION = "3.37.0"
ENDPOINT_VARIABLE = "LAKELOG_TEST_AZURE_ENDPOINT"
CONNECTION_VARIABLE = "LAKELOG_TEST_AZURE_CONNECTION_STRING"
VERSION_VARIABLE = "LAKELOG_TEST_AZURE_API_VERSION"
"""For an Azurite that runs without `--skipApiVersionCheck`: `2025-11-05`."""

ACCOUNT = "devstoreaccount1"
# Microsoft publishes this key for its emulators; it opens nothing else.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True, slots=True)
class AzureEndpoint:
    """A blob service that tests may fill."""

    url: str
    """Of the blob service: `http://127.0.0.1:10000/devstoreaccount1`."""
    account: str
    key: str
    api_version: str | None = None
    """For a service that refuses the SDK's own."""

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf that leads to it."""
        return self.conf_at(self.url)

    def conf_at(self, url: str) -> dict[str, str]:
        """The same by another way, such as a proxy in front of it."""
        conf = {
            "spark.lakelog.azure.endpoint": url,
            "spark.lakelog.azure.account": self.account,
            "spark.hadoop.fs.azure.account.key": self.key,
        }
        if self.api_version:
            conf["spark.lakelog.azure.apiVersion"] = self.api_version
        return conf

    def client(self) -> BlobServiceClient:
        """The SDK's own client, for what tests do behind the store's back."""
        from azure.storage.blob import BlobServiceClient

        options: dict[str, Any] = {"api_version": self.api_version} if self.api_version else {}
        return BlobServiceClient(self.url, credential=self.key, **options)


@tool("azurite")
def install() -> Path:
    """The program's script: the one that npm installs into the cache (half a minute, once)."""
    folder = built(f"azurite-{VERSION}", _build)
    return folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _build(folder: Path) -> None:
    npm = need_program("npm", "Azurite")
    run_step(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"azurite@{VERSION}"],
        cwd=folder,
    )


@contextlib.contextmanager
def run_azurite(*, any_version: bool = True) -> Iterator[AzureEndpoint]:
    """An Azurite of its own, empty, until the block ends.

    SDKs speak newer versions of the protocol than any Azurite knows, and Arrow's can't be told
    another. With `any_version=False` it refuses them, as it does where nobody tells it not to.
    """
    argv = _program()
    port = free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    # On disk it saves all that it has every few seconds, and answers nobody meanwhile.
    argv += ["--silent", "--disableTelemetry", "--inMemoryPersistence"]
    argv += ["--skipApiVersionCheck"] if any_version else []
    argv += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with running(argv, ready=lambda: answers(f"{url}?comp=list")):
        yield AzureEndpoint(url, ACCOUNT, KEY)


def _program() -> list[str]:
    with contextlib.suppress(ServerUnavailableError):
        return [need_program("azurite-blob", "Azure")]
    return [need_program("node", "Azurite"), str(install())]


def _from_environment() -> AzureEndpoint | None:
    """A connection string, as `az storage account show-connection-string` prints it, or a URL."""
    text = os.environ.get(CONNECTION_VARIABLE)
    version = os.environ.get(VERSION_VARIABLE)
    if text:
        parts = dict(part.split("=", 1) for part in text.split(";") if part)
        account = parts["AccountName"]
        suffix = parts.get("EndpointSuffix", "core.windows.net")
        url = parts.get("BlobEndpoint", f"https://{account}.blob.{suffix}").rstrip("/")
        return AzureEndpoint(url, account, parts["AccountKey"], version)
    url = os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/")
    if not url:
        return None
    host = urlsplit(url).hostname or ""
    named = host.split(".", 1)[0] if ".blob." in host else ACCOUNT
    return AzureEndpoint(
        url,
        os.environ.get("AZURE_STORAGE_ACCOUNT", named),
        os.environ.get("AZURE_STORAGE_KEY", KEY),
        version,
    )


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzureEndpoint]:
    """A blob service for the session: the one that the environment names, or an Azurite."""
    named = _from_environment()
    if named:
        yield named
        return
    try:
        with run_azurite() as endpoint:
            yield endpoint
    except ServerUnavailableError as error:
        pytest.skip(str(error))
