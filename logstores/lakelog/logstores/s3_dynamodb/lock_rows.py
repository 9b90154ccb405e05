"""One row of the lock table, and which row a file of the log has.

Both are read and written by Delta's own `io.delta.storage.S3DynamoDBLogStore` as well, so every
name, type and byte here is that of its `ExternalCommitEntry` and `BaseExternalLogStore`.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.s3_dynamodb.errors import LockTableError

if TYPE_CHECKING:
    from collections.abc import Mapping

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://(?:[^/@]*@)?([^/]+)(/.*)")
_COMMIT: Final = re.compile(r"([0-9]{20})\.json")
_SLASHES: Final = re.compile(r"/{2,}")
_LOG: Final = "_delta_log"
DRAFTS: Final = ".tmp/"
"""The folder of the drafts, relative to the log. They stay after the commit, as with Delta."""
MOVED_NAME: Final = "_lakelog_moved_to_conditional_put"
"""The `fileName` of a row that `migrate` leaves: it sorts after every commit."""
MOVED_DRAFT: Final = "THIS-TABLE-MOVED-TO-CONDITIONAL-PUT:see-lakelog-migrate"
"""The `tempPath` of the rows that `migrate` leaves. The colon makes it no path to Hadoop, so that
Delta's own store, which wants to copy from there, fails at once and says the text in its error. (To
look for an object that is missing S3A may take minutes.)
"""


def commit_file_name(version: int) -> str:
    """`00000000000000000007.json`: the `fileName` of version 7."""
    return f"{version:020d}.json"


def version_of(file_name: str) -> int | None:
    """The version of a commit's file name; `None` for any other name."""
    match = _COMMIT.fullmatch(file_name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class LogFolder:
    """A `_delta_log`, as the user spells it and as the table knows it."""

    uri: str
    """With a slash at its end."""
    table_path: str
    """The partition key: the table's root as Hadoop's `Path.toString` renders it."""

    @classmethod
    def from_uri(cls, uri: str, scheme: str | None = None) -> LogFolder | None:
        """The folder of a log; `None` if the URI is not one (or lies deeper, as `_sidecars` does).

        Args:
            uri: of the folder, with or without a slash at its end.
            scheme: the one to put into the key, if not the URI's.
        """
        match = _URI.fullmatch(uri.rstrip("/") + "/")
        if match is None:
            return None
        path = _SLASHES.sub("/", match[3]).rstrip("/")
        root, slash, name = path.rpartition("/")
        if name != _LOG or not slash:
            return None
        return cls(uri.rstrip("/") + "/", f"{scheme or match[1]}://{match[2]}{root or '/'}")

    def under(self, scheme: str) -> str:
        """The partition key of a writer that spells the URI with another scheme."""
        return f"{scheme}://{self.table_path.partition('://')[2]}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A commit file, `N.json`, of a log."""

    folder: LogFolder
    version: int

    @classmethod
    def from_path(cls, path: str, scheme: str | None = None) -> LogFile | None:
        """The commit file that a URI names; `None` if it names anything else."""
        uri, _, name = path.rpartition("/")
        version = version_of(name)
        folder = LogFolder.from_uri(uri, scheme) if version is not None else None
        return cls(folder, version) if folder is not None and version is not None else None

    @property
    def name(self) -> str:
        """The `fileName`."""
        return commit_file_name(self.version)

    @property
    def path(self) -> str:
        """The URI, for messages."""
        return self.folder.uri + self.name

    def new_row(self) -> CommitRow:
        """The row of a new attempt, whose draft is its own."""
        draft = f"{DRAFTS}{self.name}.{uuid.uuid4()}"
        return CommitRow(self.folder.table_path, self.name, draft)


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit that was decided: `fileName` holds, or is to hold, the bytes of `tempPath`."""

    table_path: str
    file_name: str
    temp_path: str
    """Relative to the log: `.tmp/<file name>.<uuid>`."""
    complete: bool = False
    """Whether the file has been made. Whichever process finds a row without it makes the file."""
    expire_time: int | None = None
    """Seconds since 1970-01-01 UTC after which DynamoDB may delete the row; only when complete."""

    @property
    def version(self) -> int | None:
        """The version; `None` if the row is for some other file."""
        return version_of(self.file_name)

    @property
    def token(self) -> str:
        """The attempt's own part of `tempPath`, which the metadata of the file carries."""
        return self.temp_path.rpartition(".")[2]

    @property
    def is_mark(self) -> bool:
        """Whether `migrate` left it, to stop the writers of the lock table."""
        return self.temp_path == MOVED_DRAFT

    def completed(self, expire_time: int) -> CommitRow:
        """The row once its file exists."""
        return replace(self, complete=True, expire_time=expire_time)

    def to_item(self) -> dict[str, dict[str, str]]:
        """The attributes, in DynamoDB's JSON. `complete` is text, as the JVM has it."""
        item = {
            "tablePath": {"S": self.table_path},
            "fileName": {"S": self.file_name},
            "tempPath": {"S": self.temp_path},
            "complete": {"S": "true" if self.complete else "false"},
        }
        if self.expire_time is not None:
            item["expireTime"] = {"N": str(self.expire_time)}
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Mapping[str, Any]]) -> CommitRow:
        """Read the attributes; others are ignored, as the JVM ignores them.

        Raises:
            LockTableError: one that every row has is missing.
        """
        texts = {name: item.get(name, {}).get("S") for name in ("tablePath", "fileName")}
        draft = item.get("tempPath", {}).get("S")
        table_path, file_name = texts["tablePath"], texts["fileName"]
        if table_path is None or file_name is None or draft is None:
            raise LockTableError(
                f"the row of {table_path} / {file_name} lacks one of tablePath, fileName and "
                "tempPath: no Delta writer made it. Look at it, and delete it if it is not yours."
            )
        expires = item.get("expireTime", {}).get("N")
        return cls(
            table_path,
            file_name,
            draft,
            item.get("complete", {}).get("S") == "true",
            None if expires is None else int(float(expires)),
        )
