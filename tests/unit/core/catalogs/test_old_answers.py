"""A catalog whose answer is older than what was seen of the table before, as a replica gives it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog
from lakelog.core.engine.streams import StreamOptions, StreamSource
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.streaming.offsets import SourceOffset
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "lake.s.t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path)) as served:
        yield served


@pytest.fixture
def folder(server: UnityServer) -> Path:
    """That of a table with versions 0 to 4, of which 1 to 4 have a file each."""
    made = make_table(server)
    for each in range(1, 5):
        other_client_commits(server, made, each)
    return made


@contextmanager
def answering(server: UnityServer, version: int) -> Iterator[None]:
    """The server answers as it did when a version was the newest."""
    table = server.table(NAME)
    now = table.latest, table.commits
    table.latest = version
    table.commits = {v: commit for v, commit in table.commits.items() if v <= version}
    try:
        yield
    finally:
        table.latest, table.commits = now


def started(server: UnityServer, **options: Any) -> StreamSource:
    """A stream as a process has it that has just begun."""
    return StreamSource(DeltaLog.for_table(NAME, server.conf()), StreamOptions(**options))


def versions(source: StreamSource, start: SourceOffset, end: SourceOffset) -> list[int]:
    return sorted(source.files_between(start, end)["version"].to_pylist())


@pytest.mark.parametrize(
    "at",
    [
        SourceOffset(4, -1),
        SourceOffset(3, 0),
        SourceOffset(3, 0, is_starting=True),
        SourceOffset(3, -1, barrier=1),
        SourceOffset(3, -1, barrier=2),
    ],
)
def test_a_stream_waits_and_says_so_once(
    server: UnityServer, folder: Path, at: SourceOffset, caplog: pytest.LogCaptureFixture
) -> None:
    assert folder.exists()
    with answering(server, 2):
        source = started(server)
        with caplog.at_level(logging.WARNING, "lakelog"):
            for _ in range(3):
                assert source.latest_offset(at) == at
            source.stop_at_newest()
            assert source.latest_offset(at) == at
    (said,) = (each.getMessage() for each in caplog.records)
    assert "lake" in said
    assert "2 is the newest version" in said
    assert "has version 3 " in said


def test_it_goes_on_with_the_next_answer_and_says_it_again_of_another_one(
    server: UnityServer, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at = SourceOffset(5, -1)
    with caplog.at_level(logging.WARNING, "lakelog"):
        with answering(server, 3):
            source = started(server)
            assert source.latest_offset(at) == at
        assert source.latest_offset(at) == at
        other_client_commits(server, folder, 5)
        end = source.latest_offset(at)
        assert (end, versions(source, at, end)) == (SourceOffset(6, -1), [5])
        assert len(caplog.records) == 1
        with answering(server, 4):
            # In a process answers don't go back.
            assert source.latest_offset(end) == end
            assert len(caplog.records) == 1
            again = started(server)
            assert again.latest_offset(end) == end
        assert len(caplog.records) == 2


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
@pytest.mark.parametrize("start", [SourceOffset(2, -1), SourceOffset(4, -1, is_starting=True)])
def test_a_batch_that_was_planned_before_is_not_read_in_part(
    server: UnityServer, folder: Path, fail_on_data_loss: bool, start: SourceOffset
) -> None:
    assert folder.exists()
    end = SourceOffset(5, -1)
    with answering(server, 3):
        source = started(server, fail_on_data_loss=fail_on_data_loss)
        with pytest.raises(CatalogError, match=r"3 is the newest version .*has version 4"):
            source.files_between(start, end)
    assert versions(source, start, end)[-1] == 4


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"starting_version": 4}, VersionNotFoundError),
        ({"starting_timestamp": 1 << 50}, TimestampOutOfRangeError),
    ],
)
def test_where_a_new_query_begins_matters_to_a_new_query_alone(
    server: UnityServer, folder: Path, named: dict[str, Any], error: type[Exception]
) -> None:
    assert folder.exists()
    with answering(server, 2):
        source = started(server, **named)
        begin = source.initial_offset()  # Spark asks so on a restart as well
        with pytest.raises(error):
            source.latest_offset(begin)
        source = started(server, **named)
        source.initial_offset()
        at = SourceOffset(5, -1)
        assert source.latest_offset(at) == at
    other_client_commits(server, folder, 5)
    end = source.latest_offset(at)
    assert versions(source, at, end) == [5]


def test_a_query_of_older_sparks_is_told_how_to_go_on(server: UnityServer, folder: Path) -> None:
    assert folder.exists()
    at = SourceOffset(5, -1)
    with answering(server, 2):
        source = started(server)
        with pytest.raises(DeltaAnalysisError, match="newest file of the checkpoint's folder"):
            source.files_between(at, source.end_of_newest())


def test_another_table_of_the_name_is_no_old_answer(server: UnityServer, folder: Path) -> None:
    source = started(server)
    offset = SourceOffset(5, -1).to_json_value(source.snapshot.metadata.id)
    assert folder.exists()
    server.drop(NAME)
    make_table(server)
    again = started(server).snapshot
    with pytest.raises(DeltaAnalysisError, match="DIFFERENT_DELTA_TABLE_READ"):
        SourceOffset.from_json_value(offset, again.metadata.id, again.table)
