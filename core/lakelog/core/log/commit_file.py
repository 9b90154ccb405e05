"""One commit file, parsed: small things as objects, file actions as rows.

A commit of a few lines is parsed line by line. One of a hundred adds or a million goes through
Arrow's JSON reader, whose rows take a fraction of the memory, and are what is asked for. It is
configured to refuse whatever it does not know; if it refuses, the lines are parsed one by one
after all, which also finds the line to name in an error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
import pyarrow as pa

from lakelog.core.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions.file_table import files_from_json, tombstones_from_json
from lakelog.core.actions.json_fields import MalformedFieldError
from lakelog.core.actions.json_reader import read_file_actions
from lakelog.core.errors import CorruptCommitError, LogGapError
from lakelog.core.features.protocol import check_readable
from lakelog.core.log.budget import AS_OBJECTS, LogBudget, read_log_file
from lakelog.core.log.file_names import commit_path
from lakelog.core.log.json_lines import is_mostly_blank, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.logstores.contract import LogStore

Rows: TypeAlias = "list[dict[str, Any]] | pa.Table"

# Below this many lines, setting up Arrow's reader costs more than it saves.
_MANY_LINES = 100

_MANY_ROWS = 100

_ADD = b'{"add":{'

_REMOVE = b'{"remove":{'

_REMEDY = (
    "A writer was interrupted on storage that shows half-written files, or the file was damaged "
    "later. Restore it from a backup or from the object store's versions. It may be moved away "
    "only if it is the newest version and no writer reported that it succeeded."
)


@dataclass(slots=True)
class Commit:
    """What one version changed."""

    version: int
    path: str
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    info: CommitInfo | None = None
    adds: Rows = field(default_factory=list)
    """JSON values of the `add` actions, or rows of `FILE_SCHEMA`."""
    removes: Rows = field(default_factory=list)
    """JSON values of the `remove` actions, or rows of `TOMBSTONE_SCHEMA`."""

    def added(self) -> pa.Table:
        """The added files, as rows of `FILE_SCHEMA`; converted once."""
        self.adds = action_rows("add", self.adds, self.path, self.version)
        return self.adds

    def removed(self) -> pa.Table:
        """The removed files, as rows of `TOMBSTONE_SCHEMA`; converted once."""
        self.removes = action_rows("remove", self.removes, self.path, self.version)
        return self.removes


def action_rows(kind: str, rows: Rows, path: str, version: int) -> pa.Table:
    """The rows of file actions.

    Args:
        kind: `add` or `remove`.
        rows: JSON values, or the rows already.
        path: of the commit, for the error.
        version: of the commit, likewise.

    Raises:
        CorruptCommitError: a field has a value that its type can't hold.
    """
    if isinstance(rows, pa.Table):
        return rows
    if rows and (len(rows) >= _MANY_ROWS or "pandas" not in sys.modules):
        # Converting Python objects makes Arrow import pandas, which takes longer than
        # opening most tables; its JSON reader does not.
        lines = b"\n".join(orjson.dumps({kind: row}) for row in rows)
        table = read_file_actions(kind, lines, len(rows))
        if table is not None:
            return table
    try:
        return files_from_json(rows) if kind == "add" else tombstones_from_json(rows)
    except (pa.ArrowException, AttributeError, TypeError, OverflowError, ValueError) as exc:
        raise _corrupt(path, version, f"a file action is malformed ({exc})") from exc


def read_commit(
    store: LogStore,
    table: str,
    version: int,
    path: str | None = None,
    budget: LogBudget | None = None,
) -> Commit:
    """Read and parse one version.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: which version.
        path: where the listing found it; by default where it should be.
        budget: what it shares with other commits; one for it alone if `None`.

    Raises:
        FileNotFoundError: there is no such version.
        CorruptCommitError: the file is torn, empty, or not JSON.
        UnsupportedFeatureError: it is malformed, and its own protocol is one that we do not have.
        LogTooLargeError: it would take more memory than there is.
    """
    path = path or commit_path(table, version)
    budget = budget or LogBudget.from_store(store)
    return parse_or_refuse(table, read_log_file(store, path, budget), version, path, budget)


def parse_or_refuse(
    table: str, data: bytes, version: int, path: str, budget: LogBudget | None = None
) -> Commit:
    """`parse_commit`, for a commit that a newer client may have written.

    Raises:
        CorruptCommitError: see there.
        UnsupportedFeatureError: it is malformed, and its own protocol is one that we do not have.
        LogTooLargeError: see there.
    """
    try:
        return parse_commit(data, version, path, budget)
    except CorruptCommitError:
        # What a newer client writes is not malformed, but nothing for this one.
        if protocol := protocol_in(data):
            check_readable(protocol, table)
        raise


def commit_is_gone(table: str, path: str, version: int) -> LogGapError:
    """The error of a commit that was listed, and is not there."""
    return LogGapError(
        f"the commit {path} has just disappeared: log cleanup removed it, or "
        "the table is being deleted. Open the table again.",
        table=table,
        path=path,
        version=version,
        missing=[version],
    )


def protocol_in(data: bytes) -> Protocol | None:
    """The last protocol action of a commit, some of whose other lines may be malformed."""
    found = None
    for _, line in numbered_lines(data):
        # Adds may be many and long, and hold the word in a text.
        if b'"protocol"' not in line:
            continue
        try:
            value = orjson.loads(line).get("protocol")
            found = found if value is None else Protocol.from_json_value(value)
        except (ValueError, AttributeError):
            continue
    return found


def parse_commit(data: bytes, version: int, path: str, budget: LogBudget | None = None) -> Commit:
    """Parse the bytes of a commit file.

    Args:
        data: all of them.
        version: of the commit.
        path: of the file, for errors.
        budget: counts what is made of them; `None` not to count.

    Raises:
        CorruptCommitError: a line is not an action, or there is none at all.
        LogTooLargeError: what the lines say would take more memory than there is.
    """
    count = data.count(b"\n")
    is_large = count >= _MANY_LINES
    if budget is not None:
        if is_large:
            budget.take(len(data), path, passing=2 * len(data))
        else:
            budget.take(AS_OBJECTS * len(data), path)
    try:
        data.decode()
    except UnicodeDecodeError as exc:
        raise _corrupt(path, version, f"it is not UTF-8 ({exc.reason})") from exc
    commit = Commit(version, path)
    head = _take_adds_at_the_end(commit, data, count) if is_large else None
    if head is not None:
        rest = numbered_lines(data[:head])
    else:
        rest = _take_many(commit, data) if is_large else numbered_lines(data)
    if budget is not None and is_large:
        left = head if head is not None else sum(len(line) for _, line in rest)
        budget.take(AS_OBJECTS * left, path)
    try:
        _take_lines(commit, rest)
    except _OtherSpellingError:
        if budget is not None:
            budget.take(AS_OBJECTS * len(data), path)
        commit = Commit(version, path)
        _take_lines(commit, numbered_lines(data))
    return commit


class _OtherSpellingError(Exception):
    """A line has a file action, and does not begin like those that Arrow has taken already."""


def _take_lines(commit: Commit, lines: Iterable[tuple[int, bytes]]) -> None:
    empty = isinstance(commit.adds, list) and isinstance(commit.removes, list)
    for number, line in lines:
        if line and not line.isspace():
            _take_line(commit, number, line)
            empty = False
    if empty:
        raise _corrupt(commit.path, commit.version, "it is empty")


def _take_adds_at_the_end(commit: Commit, data: bytes, lines: int) -> int | None:
    """Take all adds, where nothing follows them but the end; return where they begin.

    Large commits look like that, and then no line need be cut out.
    """
    prefix = _ADD
    start = 0 if data.startswith(prefix) else data.find(b"\n" + prefix) + 1
    if not data.startswith(prefix, start) or not data.endswith(b"\n"):
        return None
    adds = data.count(b"\n" + prefix, max(start - 1, 0)) + (start == 0)
    # A line that is not an add has no such prefix, and then the numbers differ.
    if adds != lines - data.count(b"\n", 0, start):
        return None
    rows = read_file_actions("add", memoryview(data)[start:], adds)
    if rows is None:
        return None
    commit.adds = rows
    return start


def _take_many(commit: Commit, data: bytes) -> list[tuple[int, bytes]]:
    """Take the file actions that Arrow can read; return the other lines."""
    if is_mostly_blank(data):
        return list(numbered_lines(data))
    lines = data.split(b"\n")
    adds = [line for line in lines if line.startswith(_ADD)]
    removes = [line for line in lines if line.startswith(_REMOVE)]
    left: tuple[bytes, ...] = ()
    for kind, prefix, found in (("add", _ADD, adds), ("remove", _REMOVE, removes)):
        rows = read_file_actions(kind, b"\n".join(found), len(found)) if found else None
        if rows is None:
            left += (prefix,)
        elif kind == "add":
            commit.adds = rows
        else:
            commit.removes = rows
    taken = tuple({_ADD, _REMOVE} - set(left))
    return [numbered for numbered in enumerate(lines, 1) if not numbered[1].startswith(taken)]


def _take_line(commit: Commit, number: int, line: bytes) -> None:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        if "memory allocation" in str(exc):
            raise MemoryError(f"no memory to parse {commit.path}") from exc
        raise _corrupt(
            commit.path, commit.version, f"is not JSON: {_cut(line)} ({exc})", number
        ) from exc
    if not isinstance(body, dict):
        raise _corrupt(commit.path, commit.version, f"is not a JSON object: {_cut(line)}", number)
    for key, value in body.items():
        if value is None:
            continue
        try:
            _take_action(commit, key, value)
        except MalformedFieldError as exc:
            why = f"has a malformed {key} action ({exc}): {_cut(line)}"
            raise _corrupt(commit.path, commit.version, why, number) from None


def _take_action(commit: Commit, key: str, value: dict[str, Any]) -> None:
    match key:
        case "add":
            AddFile.check_json_value(value)
            _listed(commit.adds).append(value)
        case "remove":
            RemoveFile.check_json_value(value)
            _listed(commit.removes).append(value)
        case "commitInfo":
            commit.info = CommitInfo.from_json_value(value)
        case "txn":
            txn = SetTransaction.from_json_value(value)
            commit.transactions[txn.app_id] = txn
        case "metaData":
            commit.metadata = Metadata.from_json_value(value)
        case "protocol":
            commit.protocol = Protocol.from_json_value(value)
        case "domainMetadata":
            domain = DomainMetadata.from_json_value(value)
            commit.domains[domain.domain] = domain


def _listed(rows: Rows) -> list[dict[str, Any]]:
    if isinstance(rows, pa.Table):
        raise _OtherSpellingError
    return rows


def _cut(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= 80 else f"{text[:60]} … {text[-15:]}")


def _corrupt(path: str, version: int, why: str, line: int | None = None) -> CorruptCommitError:
    where = "" if line is None else f"line {line} "
    return CorruptCommitError(
        f"the commit file {path} (version {version}) can't be used: {where}{why}. {_REMEDY}",
        path=path,
        version=version,
        line=line,
    )


_FILE_ACTIONS = (b'{"add":{', b'{"remove":{')

_OTHERS = (b'"protocol"', b'"metaData"', b'"txn"', b'"domainMetadata"', b'"commitInfo"')


def skim_commit(data: bytes, version: int, path: str, budget: LogBudget | None = None) -> Commit:
    """Parse the bytes of a commit file, and leave out `add` and `remove`.

    What is left out is not checked: replaying it will find what is wrong with it.

    Raises:
        CorruptCommitError: another line is not an action, or there is none at all.
        LogTooLargeError: the other lines would take more memory than there is.
    """
    if budget is not None:
        budget.take(0, path, passing=2 * len(data))
    lines = [each for each in numbered_lines(data) if each[1] and not each[1].isspace()]
    kept = [each for each in lines if not _is_file_action(each[1])]
    if budget is not None:
        budget.take(AS_OBJECTS * sum(len(line) for _, line in kept), path)
    commit = Commit(version, path)
    if kept or not lines:
        _take_lines(commit, kept)
        commit.adds, commit.removes = [], []
    return commit


def skim_lines(data: bytes, version: int, path: str) -> tuple[Commit, int]:
    """The commit without the actions of lines that begin with `add` or `remove`.

    Returns:
        The commit, and how many lines it has that are not empty.

    Raises:
        CorruptCommitError: another line is not an action, or there is none at all.
    """
    commit = Commit(version, path)
    lines = [each for each in numbered_lines(data) if each[1]]
    kept = [each for each in lines if not each[1].startswith(_FILE_ACTIONS)]
    if kept or not lines:
        _take_lines(commit, kept)
        commit.adds, commit.removes = [], []
    return commit, len(lines)


def _is_file_action(line: bytes) -> bool:
    """Whether a line certainly holds one file action and nothing else."""
    if not line.startswith(_FILE_ACTIONS) or not line.rstrip().endswith(b"}}"):
        return False
    # Within a string, such as the statistics, the quotes of a name are escaped.
    return not any(other in line for other in _OTHERS)
