"""The DynamoDB store as the conformance kit can drive it where it matters: inside a log.

The kit works in folders of its own naming, and only commit files of a `_delta_log` go by way of
the table. So this one puts a `_delta_log` between the folder and the name. It is importable, since
the kit sends stores to other processes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.logstores import FileStatus


def inside(path: str) -> str:
    """`folder/name` as `folder/_delta_log/name`."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/_delta_log/{name}"


class InALogStore(S3DynamoDBLogStore):
    """Every folder is a table's log."""

    def read(self, path: str) -> Iterator[str]:
        return super().read(inside(path))

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(inside(path))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(inside(path), lines, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        folder = path.rpartition("/")[0]
        for status in super().list_from(inside(path)):
            yield dataclasses.replace(status, path=f"{folder}/{status.name}")

    def filesystem_path(self, path: str) -> str:
        return super().filesystem_path(inside(path))
