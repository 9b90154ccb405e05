"""Writers, a reader and another client of one table, by a proxy that loses, delays, repeats and
replaces what the server answers: each row is there once or not, and its writer knows which."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, read_arrow, write_arrow
from lakelog.core.catalogs import resolution
from lakelog.core.catalogs.unity import client
from lakelog.core.clock import SystemClock
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    CorruptLogError,
    DeltaError,
    TableNotFoundError,
)
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.wire import LostReplyError, NotSentError, Reply, Wire
from support.examples import seeds
from support.unity_server import UnityServer, Ways
from support.unity_tables import make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

NAME = "lake.s.t"
CONF = {"spark.sql.catalog.lake.uri": "http://nowhere"}
BEFORE: list[Reply | Exception] = [
    NotSentError("connection refused"),
    LostReplyError("connection reset"),
    Reply(500, b'{"error":{"type":"CommitStateUnknownException","message":"x"}}', None, None),
    Reply(503, b"<html>busy", 0.0, None),
    Reply(429, b'{"error":{"type":"TooManyRequestsException","message":"x"}}', None, None),
    Reply(404, b"<html>default backend", None, None),
]
"""What comes in place of the server's doing anything."""
NO_LOCK = Reply(
    409, b'{"error":{"type":"UpdateRequirementConflictException","message":"x"}}', None, None
)
AFTER: list[Reply | Exception] = [
    LostReplyError("connection reset"),
    Reply(403, b'{"error":{"type":"PermissionDeniedException","message":"x"}}', None, None),
    Reply(400, b"<html>bad request", None, None),
    Reply(408, b"", None, None),
    Reply(502, b"<html>bad gateway", None, None),
    Reply(302, b"", None, "https://login"),
    Reply(200, b"<html>login", None, None),
    Reply(200, b'{"metadata":{', None, None),
]
"""What comes in place of the answer to what was done."""


class Quick(SystemClock):
    """Waits hardly at all."""

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.003))


class Way:
    """The way to the server and back."""

    def __init__(self, server: UnityServer, random: Random) -> None:
        self.server, self.random = server, random
        self.rate = random.choice([0.05, 0.2, 0.4])
        self.late: list[threading.Timer] = []

    def answer(self, method: str, path: str, body: bytes | None) -> Reply:
        status, value = self.server.answer(method, path, body or b"", {})
        return Reply(status, b"" if value is None else json.dumps(value).encode(), None, None)

    def send(
        self, wire: Wire, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        if self.random.random() > self.rate:
            return self.answer(method, path, body)
        what = self.random.randrange(6)
        if what == 0 and method == "POST":
            self.late.append(
                threading.Timer(self.random.random() / 30, self.answer, (method, path, body))
            )
            self.late[-1].start()
            raise LostReplyError("the request goes on alone")
        if what == 1 and method == "POST":
            return NO_LOCK
        if what == 2:
            self.answer(method, path, body)
            return self.answer(method, path, body)  # a proxy that tries again
        if what < 4:
            return told(self.random.choice(BEFORE))
        self.answer(method, path, body)
        return told(self.random.choice(AFTER))


def told(what: Reply | Exception) -> Reply:
    if isinstance(what, Exception):
        raise type(what)(*what.args)
    return what


class Table:
    """One table, those who use it, and what they were told."""

    def __init__(self, server: UnityServer, random: Random) -> None:
        self.server, self.random = server, random
        self.folder = make_table(server) / "_delta_log"
        self.done, self.unknown, self.failed = set[int](), set[int](), set[int]()
        self.wrong: list[str] = []
        self.is_over = False

    def write(self, rows: range, random: Random) -> None:
        log: DeltaLog | None = None
        for row in rows:
            try:
                if log is None or random.random() < 0.3:
                    log = DeltaLog.for_table(NAME, CONF, Quick())
                write_arrow(log, {"id": [row]}, mode="append")
                self.done.add(row)
            except CommitOutcomeUnknownError:
                self.unknown.add(row)
            except TableNotFoundError as exc:
                self.wrong.append(str(exc))
            except (DeltaError, OSError):
                self.failed.add(row)

    def read(self) -> None:
        while not self.is_over:
            known = set(self.done)
            try:
                found = rows()
            except (CorruptLogError, TableNotFoundError) as exc:
                self.wrong.append(str(exc))
            except (DeltaError, OSError):
                continue  # the catalog did not answer
            else:
                if len(found) != len(set(found)) or known - set(found):
                    self.wrong.append(f"{known} were written, {found} read")

    def publish(self) -> None:
        """As another client does, which removes what it has published before the catalog knows."""
        while not self.is_over:
            time.sleep(0.01)
            for version, commit in list(self.server.table(NAME).commits.items()):
                staged = self.folder / "_staged_commits" / commit["file-name"]
                path = self.folder / f"{version:020d}.json"
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    if self.random.random() < 0.2:
                        path.hardlink_to(staged)
                    if self.random.random() < 0.3 and path.exists():
                        staged.unlink()


def rows() -> list[int]:
    return sorted(read_arrow(NAME, conf=CONF)["id"].to_pylist())


def together(*work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=each) for each in work]
    for each in threads:
        each.start()
    return threads


@pytest.mark.parametrize("seed", seeds(8))
def test_each_row_is_there_once_and_its_writer_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    ways = Ways(checks_published=True, replays_conflict=random.random() < 0.5)
    server = UnityServer(tmp_path, ways)
    table, way = Table(server, random), Way(server, random)
    resolution._made.clear()
    monkeypatch.setattr(client, "SystemClock", Quick)
    monkeypatch.setattr(Wire, "send", lambda *request: way.send(*request))

    beside = together(table.read, table.publish)
    writers = together(
        *(
            lambda n=n: table.write(range(n * 100, n * 100 + 5), Random(seed * 10 + n))
            for n in range(3)
        )
    )
    for each in writers:
        each.join()
    table.is_over = True
    for each in [*beside, *way.late]:
        each.join()
    assert wait_for_all()
    way.rate = 0.0

    assert table.wrong == []
    found = rows()
    assert len(found) == len(set(found))
    assert table.done <= set(found) <= table.done | table.unknown
    write_arrow(NAME, {"id": [9999]}, mode="append", conf=CONF)
    assert rows() == [*found, 9999]
    assert wait_for_all()
    newest = server.table(NAME).latest
    assert all((table.folder / f"{each:020d}.json").exists() for each in range(newest + 1))
