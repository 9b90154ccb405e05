"""Deleting many objects: by requests that take many keys where the service has one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lakelog.logstores.deletion import delete_each
from lakelog.logstores.errors import LogStoreError
from lakelog.logstores.object_store.create_once import RetryPolicy, repeat
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.logstores.object_store.client import ObjectClient


class _Share(NamedTuple):
    client: ObjectClient
    keys: dict[str, str]
    """Key -> path."""


def delete_objects(
    paths: Sequence[str], locate: Callable[[str], tuple[ObjectClient, str]], policy: RetryPolicy
) -> dict[str, Exception]:
    """Delete objects; see `LogStore.delete_files`.

    A service that refuses requests of many keys, as some that speak S3's protocol do, is asked for
    each key.

    Args:
        paths: of the objects, none of them twice.
        locate: the client of a path's bucket, and the key in it.
        policy: how patiently requests are repeated.
    """

    def delete(path: str) -> None:
        client, key = locate(path)
        repeat(partial(client.delete, key), path, policy)

    def run(share: _Share) -> dict[str, Exception]:
        try:
            left = _delete_many(share, policy)
        except PermissionError as error:
            return dict.fromkeys(share.keys.values(), error)
        except (LogStoreError, OSError):
            left = list(share.keys)
        # One by one: which of them fail, and why, is what a single request says best.
        return delete_each([share.keys[key] for key in left], delete)

    shares, singles = _shares(paths, locate)
    failed = delete_each(singles, delete)
    for found in at_once(run, shares, REQUESTS, "lakelog-delete"):
        failed |= found
    return failed


def _shares(
    paths: Sequence[str], locate: Callable[[str], tuple[ObjectClient, str]]
) -> tuple[list[_Share], list[str]]:
    """The keys of each batch request, and the paths in buckets without batch requests."""
    shares: list[_Share] = []
    singles: list[str] = []
    open_shares: dict[int, _Share] = {}
    for path in paths:
        client, key = locate(path)
        if client.most_deletions < 2:
            singles.append(path)
            continue
        share = open_shares.get(id(client))
        if share is None or len(share.keys) >= client.most_deletions:
            share = open_shares[id(client)] = _Share(client, {})
            shares.append(share)
        share.keys[key] = path
    return shares, singles


def _delete_many(share: _Share, policy: RetryPolicy) -> list[str]:
    """The keys that the service did not delete."""
    keys, path = list(share.keys), next(iter(share.keys.values()))
    return repeat(partial(share.client.delete_many, keys), path, policy)
