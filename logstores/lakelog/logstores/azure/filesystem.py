"""Azure storage for bulk bytes: one file system that reaches every account of a conf.

A store's URIs name their accounts, but Arrow's Azure file system is made for a single one. So
paths here are `container@host/path`, and each call goes to the file system of the path's account:
Arrow's own, in C++, or, where Arrow lacks the credential or the kind of endpoint, one on the SDK.
An opened file is that file system's own, so bytes do not pass through here.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.fs

from lakelog.logstores.azure.conf import azure_settings
from lakelog.logstores.azure.credentials import (
    ClientSecret,
    DefaultChain,
    ManagedIdentity,
    SasToken,
    SharedKey,
)
from lakelog.logstores.azure.uri import parse_azure_uri
from lakelog.logstores.environment import needs_requests
from lakelog.logstores.travelling import own_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.azure.conf import AzureSettings


def azure_filesystem(
    conf: Mapping[str, str], timeout: float, budget: float
) -> pyarrow.fs.FileSystem:
    """The file system for a conf. It may be pickled and used on another host.

    Args:
        conf: the user's.
        timeout: seconds for each reply.
        budget: seconds that an operation may be repeated.
    """
    return pyarrow.fs.PyFileSystem(AccountRouter(conf, timeout, budget))


class AccountRouter(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """Sends each call to the account that the path names."""

    def __init__(self, conf: Mapping[str, str], timeout: float, budget: float) -> None:
        """Keep what the conf says about Azure; connect at the first use."""
        self._conf = own_settings(conf, "lakelog.logstores.AzureConditionalLogStore")
        self._timeout = timeout
        self._budget = budget

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccountRouter) and self._conf == other._conf

    def get_type_name(self) -> str:
        return "lakelog-azure"

    def normalize_path(self, path: str) -> str:
        return path.strip("/")

    def get_file_info(self, paths: list[str]) -> list[pyarrow.fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[pyarrow.fs.FileInfo]:
        filesystem, inner, root = self._route(selector.base_dir)
        asked = pyarrow.fs.FileSelector(
            inner, allow_not_found=selector.allow_not_found, recursive=selector.recursive
        )
        return [_renamed(info, root) for info in filesystem.get_file_info(asked)]

    def create_dir(self, path: str, recursive: bool) -> None:
        filesystem, inner, _ = self._route(path)
        filesystem.create_dir(inner, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        filesystem, inner, _ = self._route(path)
        filesystem.delete_dir(inner)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        filesystem, inner, _ = self._route(path)
        filesystem.delete_dir_contents(inner, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise OSError("an account's containers are not deleted here")

    def delete_file(self, path: str) -> None:
        filesystem, inner, _ = self._route(path)
        filesystem.delete_file(inner)

    def move(self, src: str, dest: str) -> None:
        filesystem, source, target = self._both(src, dest)
        filesystem.move(source, target)

    def copy_file(self, src: str, dest: str) -> None:
        filesystem, source, target = self._both(src, dest)
        filesystem.copy_file(source, target)

    def open_input_stream(self, path: str) -> Any:
        filesystem, inner, _ = self._route(path)
        return filesystem.open_input_stream(inner, compression=None)

    def open_input_file(self, path: str) -> Any:
        filesystem, inner, _ = self._route(path)
        return filesystem.open_input_file(inner)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        filesystem, inner, _ = self._route(path)
        return filesystem.open_output_stream(inner, compression=None, metadata=metadata)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError(f"{path}: a block blob can't be appended to")

    def _info(self, path: str) -> pyarrow.fs.FileInfo:
        filesystem, inner, root = self._route(path)
        return _renamed(filesystem.get_file_info([inner])[0], root)

    def _route(self, path: str) -> tuple[pyarrow.fs.FileSystem, str, str]:
        """The account's file system, the path on it, and the prefix of our paths for it."""
        root, slash, key = path.partition("/")
        found = parse_azure_uri(f"az://{root}/")
        settings = azure_settings(self._conf, found, self._timeout)
        by_sdk = needs_requests(settings.endpoint)
        return (
            _account(os.getpid(), settings, self._budget, by_sdk=by_sdk),
            found.container + slash + key,
            root,
        )

    def _both(self, src: str, dest: str) -> tuple[pyarrow.fs.FileSystem, str, str]:
        filesystem, source, _ = self._route(src)
        other, target, _ = self._route(dest)
        if other is not filesystem:
            raise OSError(f"{src} and {dest} are on two accounts: copy through this host")
        return filesystem, source, target


def _renamed(info: pyarrow.fs.FileInfo, root: str) -> pyarrow.fs.FileInfo:
    _, slash, key = info.path.partition("/")
    size = info.size if info.type == pyarrow.fs.FileType.File else None
    return pyarrow.fs.FileInfo(root + slash + key, info.type, size=size, mtime_ns=info.mtime_ns)


@lru_cache(maxsize=16)
def _account(
    _process: int, settings: AzureSettings, budget: float, *, by_sdk: bool
) -> pyarrow.fs.FileSystem:
    """Arrow's file system of an account, or ours; once a process, as connections don't fork."""
    # The SDK obeys the proxies of the environment, and trusts its certificates.
    options = None if by_sdk else arrow_options(settings)
    # Arrow speaks its own version of the protocol and can't be set to another. Emulators lag
    # behind.
    if options is not None and not settings.api_version and not settings.is_emulator:
        try:
            from pyarrow.fs import AzureFileSystem

            return AzureFileSystem(**options)
        except (ImportError, TypeError):  # an Arrow without Azure, or without that credential
            pass
    from lakelog.logstores.azure.account_files import BlobFiles

    return pyarrow.fs.PyFileSystem(BlobFiles(settings, budget))


def arrow_options(settings: AzureSettings) -> dict[str, str] | None:
    """Options of Arrow's Azure file system for these settings; `None` if it lacks support."""
    options = _credential_options(settings)
    parts = urlsplit(settings.endpoint)
    account, host = settings.account, parts.netloc
    if options is None:
        return None
    options |= {"account_name": account}
    options |= {"blob_storage_scheme": parts.scheme, "dfs_storage_scheme": parts.scheme}
    if parts.path.strip("/") == account:
        # A host without a dot in front makes Arrow put the account into the path, as emulators
        # have it, and not ask for a hierarchical namespace, whose API they lack.
        return {**options, "blob_storage_authority": host, "dfs_storage_authority": host}
    tail = host.removeprefix(account)
    if parts.path.strip("/") or not (host.startswith(account) and tail.startswith(".blob.")):
        return None
    dfs = ".dfs." + tail.removeprefix(".blob.")
    return {**options, "blob_storage_authority": tail, "dfs_storage_authority": dfs}


def _credential_options(settings: AzureSettings) -> dict[str, str] | None:
    match settings.credential:
        case SharedKey(key=key):
            return {"account_key": key}
        case SasToken(token=token):
            return {"sas_token": token}
        case ClientSecret(authority=None, tenant=tenant, client=client, secret=secret):
            return {"tenant_id": tenant, "client_id": client, "client_secret": secret}
        case ManagedIdentity(client=str(client)):
            return {"client_id": client}
        case DefaultChain():
            return {}
        case _:
            return None
