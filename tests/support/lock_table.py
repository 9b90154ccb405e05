"""A bucket and a lock table in memory, whose users can be stopped between any two requests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakelog.logstores.object_store.store import (
    KeyTakenError,
    ObjectClient,
    ObjectEntry,
    Owner,
    RetryPolicy,
)
from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow, LogFile, LogFolder, commit_file_name
from lakelog.logstores.s3_dynamodb.lock_table_commit import commit
from lakelog.logstores.s3_dynamodb.log_objects import LogObjects
from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog, LogRules
from lakelog.logstores.s3_dynamodb.row_table import RowTable, RowTakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FOLDER = "s3a://bucket/t/_delta_log/"
PREFIX = "t/_delta_log/"
TTL = 86_400


class CrashError(BaseException):
    """The process of a writer ends here. No code of the writer's may catch it."""


@dataclass(slots=True)
class World:
    """What all writers share.

    Attributes:
        objects: key -> bytes, token, and the time it was made.
        rows: tablePath and fileName -> row.
        now: seconds since 1970.
        heeds: whether the bucket heeds If-None-Match.
    """

    heeds: bool = True
    now: float = 1_800_000_000.0
    objects: dict[str, tuple[bytes, str | None, float]] = field(default_factory=dict)
    rows: dict[tuple[str, str], CommitRow] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"memory://{uuid.uuid4().hex}")

    def expire(self) -> None:
        """Delete the rows whose time is up, as DynamoDB does some time after."""
        for key, row in list(self.rows.items()):
            if row.expire_time is not None and row.expire_time < self.now:
                del self.rows[key]

    def text(self, version: int) -> str | None:
        """A commit file."""
        found = self.objects.get(PREFIX + commit_file_name(version))
        return found[0].decode() if found else None

    def log(self) -> dict[int, str]:
        """All commit files."""
        names = {key.removeprefix(PREFIX): value[0].decode() for key, value in self.objects.items()}
        return {int(n[:20]): text for n, text in names.items() if n[20:] == ".json"}

    def row(self, version: int) -> CommitRow | None:
        """The row of a version."""
        return self.rows.get(("s3a://bucket/t", commit_file_name(version)))


class Hand:
    """One writer or reader. `pause` is called before each request and after it, with its name."""

    def __init__(
        self, world: World, pause: Callable[[str], None] | None = None, *, guard: bool = True
    ) -> None:
        self.world = world
        self.client = _Client(world, pause or _go_on)
        self.table = _Table(world, pause or _go_on)
        policy = RetryPolicy(budget=1.0, sleep=lambda _: None)
        folder = LogFolder.from_uri(FOLDER)
        assert folder is not None
        self.log = LockedLog(
            folder,
            self.table,
            LogObjects(self.client, PREFIX, FOLDER, policy),
            LogRules(policy, TTL, guard, lambda: world.now),
        )

    def write(self, version: int, text: str) -> None:
        """Commit as the store does."""
        commit(self.log, self.file(version), text.encode())

    def list_versions(self) -> list[int]:
        """List as the store does: finish first, look then."""
        self.log.settle()
        return sorted(self.world.log())

    def read(self, version: int) -> str | None:
        """Read as the store does."""
        text = self.world.text(version)
        if text is None and self.log.roll_forward(self.file(version)):
            return self.world.text(version)
        return text

    def write_as_the_jvm(self, version: int, text: str) -> None:
        """Commit as Delta's own store does, whose copies are no conditional puts.

        Raises:
            FileExistsError: the version is taken.
            OSError: the predecessor is missing.
        """
        file = self.file(version)
        if self.client.owner(PREFIX + file.name) is not None:
            raise FileExistsError(file.path)
        if version:
            before = self.table.get(file.folder.table_path, commit_file_name(version - 1))
            if before is not None and not before.complete:
                self.fix_as_the_jvm(before)
            elif self.client.owner(PREFIX + commit_file_name(version - 1)) is None:
                raise OSError("previous commit doesn't exist")
        row = file.new_row()
        self.client.put(PREFIX + row.temp_path, text.encode())
        try:
            self.table.insert(row)
        except RowTakenError:
            raise FileExistsError(file.path) from None
        if self.client.owner(PREFIX + row.file_name) is None:
            self.client.put(PREFIX + row.file_name, self.client.get(PREFIX + row.temp_path))
        self.table.replace(row.completed(int(self.world.now) + TTL))

    def fix_as_the_jvm(self, row: CommitRow) -> None:
        """Finish a commit as Delta's own store does."""
        if self.client.owner(PREFIX + row.file_name) is None:
            self.client.put(PREFIX + row.file_name, self.client.get(PREFIX + row.temp_path))
        self.table.replace(row.completed(int(self.world.now) + TTL))

    @staticmethod
    def file(version: int) -> LogFile:
        """The commit file of a version."""
        file = LogFile.from_path(FOLDER + commit_file_name(version))
        assert file is not None
        return file


def _go_on(_: str) -> None:
    pass


class _Client(ObjectClient):
    def __init__(self, world: World, pause: Callable[[str], None]) -> None:
        self._world = world
        self._pause = pause

    @property
    def endpoint(self) -> str:
        return self._world.name

    def create(self, key: str, body: bytes, token: str) -> None:
        self._pause(f"create {key}")
        if self._world.heeds and key in self._world.objects:
            raise KeyTakenError(key)
        self._world.objects[key] = (body, token, self._world.now)
        self._pause(f"created {key}")

    def put(self, key: str, body: bytes) -> None:
        self._pause(f"put {key}")
        self._world.objects[key] = (body, None, self._world.now)
        self._pause(f"have put {key}")

    def get(self, key: str) -> bytes:
        self._pause(f"get {key}")
        if key not in self._world.objects:
            raise FileNotFoundError(key)
        return self._world.objects[key][0]

    def owner(self, key: str) -> Owner | None:
        self._pause(f"head {key}")
        found = self._world.objects.get(key)
        return Owner(found[1], int(found[2] * 1000)) if found else None

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        self._pause(f"list {prefix}")
        names = sorted(key.removeprefix(prefix) for key in self._world.objects)
        return [
            ObjectEntry(name, 0, 0) for name in names if name >= start and "/" not in name
        ], None

    def delete(self, key: str) -> None:
        self._world.objects.pop(key, None)

    def upload(self, key: str, source: Path) -> None:
        self.put(key, source.read_bytes())


class _Table(RowTable):
    def __init__(self, world: World, pause: Callable[[str], None]) -> None:
        self._world = world
        self._pause = pause

    @property
    def place(self) -> str:
        return "table in memory"

    def get(self, table_path: str, file_name: str) -> CommitRow | None:
        self._pause(f"get row {file_name}")
        return self._world.rows.get((table_path, file_name))

    def newest(self, table_path: str) -> CommitRow | None:
        self._pause("newest row")
        return max(self._of(table_path), key=lambda row: row.file_name, default=None)

    def insert(self, row: CommitRow) -> None:
        self._pause(f"insert row {row.file_name}")
        key = (row.table_path, row.file_name)
        if key in self._world.rows:
            raise RowTakenError(self._world.rows[key])
        self._world.rows[key] = replace(row)
        self._pause(f"inserted row {row.file_name}")

    def replace(self, row: CommitRow) -> None:
        self._pause(f"replace row {row.file_name}")
        self._world.rows[row.table_path, row.file_name] = replace(row)
        self._pause(f"replaced row {row.file_name}")

    def rows(self, table_path: str) -> Iterator[CommitRow]:
        return iter(sorted(self._of(table_path), key=lambda row: row.file_name))

    def delete(self, row: CommitRow) -> None:
        self._world.rows.pop((row.table_path, row.file_name), None)

    def _of(self, table_path: str) -> list[CommitRow]:
        return [row for key, row in self._world.rows.items() if key[0] == table_path]
