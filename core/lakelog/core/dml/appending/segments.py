"""Rows that are safe before they are in their table: segments beside it, one file after another.

    <table>/_lakelog/appends/<digest of the app_id>/00000000000000000007.segment

VACUUM of every client leaves names alone that begin with `_`, and no client reads them as data.

All that is put for one application is one chain. A segment takes the first free position, by a
create that has one winner; that alone acknowledges its rows. Whoever opens an appender first takes
the next position for a *take-over*: from then on the one before finds its own next position taken,
and nothing that it puts is acknowledged. What is before the take-over is then brought into the
table, where the application's record (`txn`) says what is there already, and a record of the
take-over itself keeps the one before from committing. Rows are deleted once the table has them,
but for those at the end of the chain, so that the end is found. A take-over stays for a week, lest
a process that was asleep finds its position free again.

The file has lines of text: a header, and for rows an Arrow stream, as base64. The header says what
columns the table had when the rows came, so that they come to the same ones under other names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import uuid
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.dml.appending.given import Fitted
from lakelog.core.errors import AppenderStoppedError, DeltaAnalysisError
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.appending.intake import Append
    from lakelog.logstores import FileStatus

FOLDER: Final = "_lakelog/appends"
_FORMAT: Final = 1
_SUFFIX: Final = ".segment"
_KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long a take-over stays."""


def turn_app(app_id: str) -> str:
    """The application by which the table records the take-overs of another one."""
    return f"lakelog.appender:{app_id}"


class TakenOverError(DeltaAnalysisError):
    """Another appender of the application was opened."""


class MissingSegmentError(AppenderStoppedError):
    """Rows that were saved are not there, and may be in the table."""


@dataclass(frozen=True, slots=True)
class SavedAppend:
    """An append of a segment."""

    seq: int
    fitted: Fitted


class Segments:
    """The chain of one application, as one appender puts to it."""

    def __init__(self, log: DeltaLog, app_id: str, table_id: str) -> None:
        """Ask for nothing yet.

        Args:
            log: the table.
            app_id: the application.
            table_id: of the table; what was put for another one at the same place is not for it.
        """
        digest = hashlib.sha256(app_id.encode()).hexdigest()[:32]
        self._log, self._app_id, self._table_id = log, app_id, table_id
        self._folder = f"{log.table.rstrip('/')}/{FOLDER}/{digest}"
        self._next = 0
        self._last = -1
        self._put: dict[int, int] = {}
        """Positions of rows -> their last numbers."""
        self._lock = threading.Lock()

    def listed(self) -> list[FileStatus]:
        """What is there, in order of positions; nothing where nobody ever put anything.

        Raises:
            OSError: the storage failed.
        """
        try:
            found = list(self._log.store.list_from(f"{self._folder}/"))
        except FileNotFoundError:
            return []
        return [each for each in found if _position(each.name) is not None]

    def check_storage(self) -> None:
        """Check that no half of a file can be taken for a whole one, and that none is overlooked.

        Raises:
            DeltaAnalysisError: that may be.
        """
        store = self._log.store
        if store.is_partial_write_visible(self._path(0)):
            why = "shows files that are half written"
        elif not store.capabilities.consistent_listing:
            why = "lists files late"
        else:
            return
        raise DeltaAnalysisError(
            f"the storage of {self._log.table} {why}, so that rows can't be saved beside the "
            "table: leave save_every out",
            table=self._log.table,
        )

    def take_over(self, identity: str, after: int) -> tuple[int, list[FileStatus]]:
        """Take the position at the end, after which nothing of others is acknowledged.

        Args:
            identity: of this try and those that repeat it.
            after: the last take-over that the table has recorded; -1 for none.

        Returns:
            The position, and all files up to it.

        Raises:
            OSError: the storage failed, or has not said whether it was taken.
            CommitOutcomeUnknownError: likewise.
        """
        self._log.store.create_folder(self._folder)
        listed = self.listed()
        while True:
            position = max(_end(listed), after + 1)
            while not self._create(position, identity, [self._header("take-over", identity)]):
                position += 1
            self._next = position + 1
            # Whoever puts here may have gone past the position, and deleted what was there, since
            # it was listed; but it never deletes the last that it has put.
            listed = self.listed()
            if _end(listed) <= self._next:
                return position, listed

    def saved(self, listed: Sequence[FileStatus], first: int, recorded: int) -> list[SavedAppend]:
        """The appends that the table does not have, in order; once it was taken over.

        Args:
            listed: what `take_over` gave.
            first: the last take-over that the table has recorded: what is before it is in the
                table. -1 for none.
            recorded: the number that the table has recorded last.

        Raises:
            AppenderStoppedError: something is missing between what the table has and what is here,
                or it is not known whether the table has it.
            OSError: the storage failed.
        """
        found: list[SavedAppend] = []
        last = recorded
        for each in listed:
            position = _position(each.name)
            if position is None or position < first:
                continue
            try:
                header, body = self._read(position)
            except FileNotFoundError:
                continue  # it was deleted since, by who had committed it
            if header["kind"] != "rows":
                continue
            if header["table_id"] != self._table_id:
                self._put[position] = -1
                continue
            if recorded < header["recorded"] or (recorded < 0 and self._may_be_old(header)):
                raise self._unknown(
                    recorded,
                    f"the table's record of the application is gone ({recorded} now, and "
                    f"{header['recorded']} when rows were saved in {self._path(position)}), so "
                    "that it is not known which saved rows the table has. Compare them, and "
                    f"delete the folder {self._folder}",
                )
            self._put[position] = header["seqs"][-1]
            if header["seqs"][-1] <= last:
                continue
            if header["after"] > last:
                raise self._unknown(
                    recorded,
                    f"rows were saved up to seq {header['after']} before those of "
                    f"{self._path(position)}, and neither the table nor its saved rows have those "
                    f"after seq {last}",
                )
            try:
                found += [each for each in _appends(header, body) if each.seq > last]
            except ValueError as exc:
                raise self._unknown(
                    recorded, f"the saved rows of {self._path(position)} are damaged: {exc}"
                ) from exc
            last = header["seqs"][-1]
        return found

    def tidy(self, listed: Sequence[FileStatus], turn: int) -> None:
        """Delete what is old, once all that was saved is in the table.

        Args:
            listed: what `take_over` gave.
            turn: the position of the own take-over, which stays whatever the clocks say.
        """
        oldest = self._log.clock.now_ms() - _KEPT_MS
        self._log.store.delete_files(
            [
                each.path
                for each in listed
                if each.modification_time < oldest and each.name < _name(turn)
            ]
        )

    def put(self, appends: Sequence[Append], fitted: Fitted, recorded: int, identity: str) -> None:
        """Save appends: they are safe when this returns.

        Args:
            appends: after those that were saved last.
            fitted: all of their rows.
            recorded: the number that the table has recorded last.
            identity: of this put and those that repeat it.

        Raises:
            TakenOverError: another appender of the application was opened.
            OSError: the storage failed, or has not said whether they were saved.
            CommitOutcomeUnknownError: likewise.
        """
        rows = fitted.rows
        own = (fitted.schema.get(each) for each in rows.schema.names)
        said = {
            "recorded": recorded,
            "after": self._last,
            "seqs": [each.seq for each in appends],
            "counts": [each.rows.num_rows for each in appends],
            "schema": StructType(tuple(each for each in own if each is not None)).to_json(),
        }
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
            writer.write_table(rows)
        body = base64.b64encode(memoryview(sink.getvalue())).decode()
        if not self._create(self._next, identity, [self._header("rows", identity, **said), body]):
            raise self.taken_over()
        self._last = appends[-1].seq
        with self._lock:
            self._put[self._next] = self._last
            self._next += 1

    def taken_over(self) -> TakenOverError:
        """What says that the chain is another appender's now."""
        return TakenOverError(
            f"another appender of the app_id {self._app_id!r} was opened for {self._log.table} "
            "(give each its own app_id), and has taken over all that was saved",
            table=self._log.table,
            app_id=self._app_id,
        )

    def go_on_after(self, last: int) -> None:
        """Say of the next segment that it follows a number that the table has."""
        self._last = last

    def forget(self, committed: int) -> None:
        """Delete what the table has.

        Args:
            committed: the last number that it has.
        """
        with self._lock:
            # The last one stays, for whoever looks for the end of the chain.
            done = [
                position
                for position, last in self._put.items()
                if last <= committed and position < self._next - 1
            ]
            for each in done:
                del self._put[each]
        if done:
            # What can't be deleted now is passed over by its numbers, and deleted when it is old.
            self._log.store.delete_files([self._path(each) for each in done])

    def _path(self, position: int) -> str:
        return f"{self._folder}/{_name(position)}"

    def _header(self, kind: str, identity: str, **more: Any) -> str:
        said = {
            "format": _FORMAT,
            "kind": kind,
            "id": identity,
            "app_id": self._app_id,
            "table_id": self._table_id,
            "at": self._log.clock.now_ms(),
            **more,
        }
        return json.dumps(said)

    def _create(self, position: int, identity: str, lines: Sequence[str]) -> bool:
        """Whether the position is taken by these lines, or a try before that had their identity."""
        try:
            with self._log.lock_commit_if_enabled():
                self._log.store.write(self._path(position), lines)
        except FileExistsError:
            try:
                return bool(self._read(position)[0]["id"] == identity)
            except FileNotFoundError as exc:
                raise OSError(f"{self._path(position)} exists, and can't be read") from exc
        return True

    def _read(self, position: int) -> tuple[dict[str, Any], bytes]:
        path = self._path(position)
        header, _, body = self._log.store.read_bytes(path).partition(b"\n")
        found = json.loads(header)
        if found["format"] != _FORMAT:
            raise DeltaAnalysisError(
                f"{path} was saved by a newer lakelog (format {found['format']}): open the "
                "appender with that",
                table=self._log.table,
                path=path,
            )
        return found, body

    def _may_be_old(self, header: dict[str, Any]) -> bool:
        """Whether the table may have had a record of it that it has no longer."""
        keep = self._log.snapshot.properties.set_transaction_retention_ms
        return keep is not None and header["at"] < self._log.clock.now_ms() - keep

    def _unknown(self, recorded: int, why: str) -> MissingSegmentError:
        return MissingSegmentError(
            f"no appender of the app_id {self._app_id!r} can be opened for {self._log.table}: "
            f"{why}.",
            table=self._log.table,
            app_id=self._app_id,
            acknowledged=recorded,
            pending=0,
            failed_seq=None,
            failed_row=None,
        )


def new_identity() -> str:
    """For one put, however often it is tried."""
    return uuid.uuid4().hex


def _name(position: int) -> str:
    return f"{position:020d}{_SUFFIX}"


def _position(name: str) -> int | None:
    digits = name.removesuffix(_SUFFIX)
    fits = name.endswith(_SUFFIX) and len(digits) == 20 and digits.isascii() and digits.isdigit()
    return int(digits) if fits else None


def _end(listed: Sequence[FileStatus]) -> int:
    """The first position after those of a listing."""
    positions = [_position(each.name) for each in listed]
    return max((each for each in positions if each is not None), default=-1) + 1


def _appends(header: dict[str, Any], body: bytes) -> Iterator[SavedAppend]:
    with pa.ipc.open_stream(base64.b64decode(body)) as reader:
        rows = reader.read_all()
    schema = StructType.from_json(header["schema"])
    starts = accumulate(header["counts"], initial=0)
    for seq, count, start in zip(header["seqs"], header["counts"], starts, strict=False):
        yield SavedAppend(seq, Fitted(rows.slice(start, count), schema))
