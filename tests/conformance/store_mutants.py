"""The stores with one thing wrong, once for each thing that the kit watches over in this process.

Processes that the kit starts import the stores anew, as they are; so no mutant here is left to a
race among processes or to a writer that is killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.gcs import client as _gcs_client
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.hdfs import store as hdfs
from lakelog.logstores.hdfs.client import HdfsClient
from lakelog.logstores.local import file_creation as _local_files
from lakelog.logstores.local import store as local
from lakelog.logstores.object_store import create_once as _settle
from lakelog.logstores.object_store import store as _objects
from lakelog.logstores.object_store.store import TOKEN_NAME
from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.store import _LookThenPut
from lakelog.logstores.s3_dynamodb import lock_table_commit as _dynamodb_commit
from lakelog.logstores.s3_dynamodb.client import DynamoDBTable
from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lakelog.logstores.object_store.client import ObjectEntry

_azure_listed = AzureClient._listed
_gcs_send = GCSClient._send
_gcs_upload = GCSClient._upload
_hdfs_entries = HdfsClient.entries
_hdfs_rename = HdfsClient.rename
_local_path = local.local_path
_s3_page = S3Client.page

_PAGE = 10
"""Entries that a listing's page has here; the kit's long listing is longer."""


@dataclass(frozen=True)
class StoreMutant(Mutant):
    """One thing wrong with a store, and the check of the kit that must show it."""

    check: str


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, know of nothing."""


def _no(*_: Any, **__: Any) -> bool:
    return False


def _yes(*_: Any, **__: Any) -> bool:
    return True


# Any store


def _without_the_last_end(lines: Iterable[str]) -> Iterator[bytes]:
    yield "\n".join(lines).encode()


def _at_every_line_end(raw: Iterable[bytes]) -> list[str]:
    return b"".join(raw).decode().splitlines()


# The local store


def _same_place(_: object) -> int:
    return 0


def _replace(draft: _local_files.Draft, **_: Any) -> None:
    draft.replace()


def _open_under_its_name(draft: _local_files.Draft, _: bool) -> int:
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    return os.open(draft._name, flags, 0o666, dir_fd=draft._folder.fd)


def _write_in_place(draft: _local_files.Draft) -> None:
    Path(draft.target).write_bytes(Path(f"/proc/self/fd/{draft._fd}").read_bytes())


def _with_blanks(uri: str) -> str:
    return _local_path(uri).replace("%20", " ")


# Object stores


def _create_over_what_is_there(client: S3Client, key: str, body: bytes, token: str) -> None:
    client.put(key, body, token=token)


def _first_page_only(page: Callable[..., Any]) -> Callable[..., Any]:
    def first(
        client: Any, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], None]:
        return page(client, prefix, start, continuation, limit or _PAGE)[0], None

    return first


def _after_the_start(client: S3Client, prefix: str, start: str, *more: Any) -> Any:
    return _s3_page(client, prefix, start and start + "\0", *more)


def _upload_over_what_is_there(client: AzureClient, key: str, body: bytes, token: str) -> None:
    blob = client._blob(key)
    blob.upload_blob(body, length=len(body), overwrite=True, metadata={TOKEN_NAME: token})


def _with_its_lock(
    client: AzureClient, prefix: str, _: str, continuation: str | None, limit: int | None
) -> Any:
    return _azure_listed(client, prefix, continuation, limit, "/")


def _send_unconditionally(client: GCSClient, *about: Any, once: bool) -> None:
    _gcs_send(client, *about, once=False)


# The way to the service


def _upload_without_token(client: GCSClient, key: str, body: bytes, _: Any, *, once: bool) -> Any:
    return _gcs_upload(client, key, body, None, once=once)


def _taken_by_another(*about: Any) -> bool:
    raise FileExistsError(f"{about[3]} exists: another writer made it")


def _failed(*about: Any) -> None:
    raise OSError(f"{about[3]} was not written")


def _all_that_came(reply: Any) -> bytes:
    return bytes(reply.content)


# HDFS


def _rename_over_what_is_there(
    client: HdfsClient,
    source: str,
    target: str,
    *,
    overwrite: bool,
) -> None:
    _hdfs_rename(client, source, target, overwrite=True)


def _first_entries_only(client: HdfsClient, path: str) -> Any:
    return _hdfs_entries(client, path)[:_PAGE]


def _first_piece_only(client: HdfsClient, path: str) -> Iterator[bytes]:
    reader = client.reader(path)
    piece = client.piece(path, reader, 0, min(len(reader), 1 << 16))
    return iter(piece.splitlines(keepends=True))


_THREADS = "of_racing_threads_exactly_one_wins"
_TAKEN = "a_taken_name_is_refused_and_kept"
_LONG = "a_long_listing_is_complete"
_LINES = "a_written_file_reads_back_line_by_line"
_BYTES = "the_bytes_are_utf8_lines_each_with_a_newline"
_BESIDE = "readers_beside_a_writer_see_all_or_nothing"
_APPENDS = "writers_of_one_log_lose_nothing"
_LATER = "a_request_that_may_land_later_leaves_the_outcome_unknown"

_DRAFT = _local_files.Draft

LOCAL = [
    StoreMutant("a commit replaces", _DRAFT, "publish", _replace, _THREADS),
    StoreMutant(
        "a draft has its file's name",
        _DRAFT,
        "_open",
        _open_under_its_name,
        "no_reader_sees_a_part_of_a_new_file",
    ),
    StoreMutant(
        "an overwrite is made in place",
        _DRAFT,
        "replace",
        _write_in_place,
        "a_reading_outlives_an_overwrite",
    ),
    StoreMutant(
        "names stay as the folder has them",
        local,
        "_first",
        _same_place,
        "a_listing_is_ordered_by_name",
    ),
    StoreMutant("the last line has no end", local, "encode_lines", _without_the_last_end, _BYTES),
    StoreMutant("lines end as text's do", local, "decode_lines", _at_every_line_end, _LINES),
    StoreMutant(
        "paths are decoded", local, "local_path", _with_blanks, "every_name_is_kept_as_it_is"
    ),
]

S3 = [
    StoreMutant(
        "a create has no condition", S3Client, "create", _create_over_what_is_there, _TAKEN
    ),
    StoreMutant("a create looks, then puts", S3Client, "create", _LookThenPut.create, _THREADS),
    StoreMutant("what is there is taken for ours", _settle, "_is_ours", _yes, _TAKEN),
    StoreMutant("the first page is all", S3Client, "page", _first_page_only(_s3_page), _LONG),
    StoreMutant(
        "a listing starts after the name given",
        S3Client,
        "page",
        _after_the_start,
        "a_listing_starts_at_the_name_given",
    ),
    StoreMutant(
        "the last line has no end", _objects, "encode_lines", _without_the_last_end, _BYTES
    ),
]

AZURE = [
    StoreMutant("a create overwrites", AzureClient, "create", _upload_over_what_is_there, _TAKEN),
    StoreMutant(
        "the first page is all", AzureClient, "page", _first_page_only(AzureClient.page), _LONG
    ),
]
AZURE_LEASE = [
    StoreMutant(
        "its lock is an entry of the log",
        AzureClient,
        "page",
        _with_its_lock,
        "a_listing_is_ordered_by_name",
    ),
]

GCS = [
    StoreMutant("a create has no condition", GCSClient, "_send", _send_unconditionally, _TAKEN),
    StoreMutant(
        "the first page is all", GCSClient, "page", _first_page_only(GCSClient.page), _LONG
    ),
]

HDFS = [
    StoreMutant("a rename replaces", HdfsClient, "rename", _rename_over_what_is_there, _THREADS),
    StoreMutant("the first page is all", HdfsClient, "entries", _first_entries_only, _LONG),
    StoreMutant("the first piece is all", hdfs, "_raw_lines", _first_piece_only, _LINES),
]

DYNAMODB = [
    StoreMutant("a row has no condition", DynamoDBTable, "insert", DynamoDBTable.replace, _THREADS),
    StoreMutant("any row is taken for ours", _dynamodb_commit, "_rival", _nothing, _THREADS),
]
RECOVERY = [
    StoreMutant("nobody finishes a commit", LockedLog, "finish", _nothing, _BESIDE),
    StoreMutant("a reader finishes no commit", LockedLog, "roll_forward", _no, _BESIDE),
    StoreMutant("a listing finishes no commit", LockedLog, "settle", _nothing, _APPENDS),
]
"""Of a store whose writers all die when their row is in the table."""

NETWORK = [
    StoreMutant(
        "what is there is taken for another's",
        _settle,
        "_has_landed",
        _taken_by_another,
        "a_create_whose_reply_is_lost_is_known_as_ours",
    ),
    StoreMutant(
        "a file does not tell its writer",
        GCSClient,
        "_upload",
        _upload_without_token,
        "losing_two_replies_is_no_conflict_either",
    ),
    StoreMutant("unknown is taken for failed", _settle, "_settle", _failed, _LATER),
    StoreMutant("unknown is taken for done", _settle, "_settle", _nothing, _LATER),
    StoreMutant(
        "nothing is asked again",
        _settle.Patience,
        "pause_after",
        _no,
        "a_busy_service_is_asked_again",
    ),
    StoreMutant(
        "a part of a body is a body",
        _gcs_client,
        "checked_body",
        _all_that_came,
        "a_torn_reading_is_repeated_or_an_error",
    ),
]
