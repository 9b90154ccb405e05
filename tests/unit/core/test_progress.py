"""The callback hears how far an operation is; a bar appears on terminals, after two seconds."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import (
    DeltaLog,
    Progress,
    clone,
    delete_rows,
    merge,
    optimize,
    read_arrow,
    restore,
    scan,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core import progress as module
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.progress import progress_callback
from lakelog.logstores import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, as a list of one."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """One in the place of standard error; made in the test, as pytest gives each phase its own."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found


def step(done: int, total: int | None = 9, unit: str = "files") -> Progress:
    return Progress(text="deleting", done=done, total=total, unit=unit)


def test_a_bar_appears_after_two_seconds_and_not_before(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    screen = terminal(monkeypatch)
    with progress_callback("auto") as report:
        report(step(1))
        clock[0] += 1.9
        report(step(2))
        assert not screen.getvalue()
        clock[0] += 0.2
        report(step(7))
    assert "deleting" in screen.getvalue()
    assert "7 of 9 files" in screen.getvalue()


def test_bytes_are_shown_in_units_and_what_has_no_end_without_one(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    screen = terminal(monkeypatch)
    with progress_callback("auto") as report:
        clock[0] += 3
        report(step(1_500_000, 3_000_000_000, "bytes"))
        report(Progress(text="listing", done=4000, unit="files"))
    assert "1.4 MiB of 2.8 GiB" in screen.getvalue()
    assert "4,000 files" in screen.getvalue()


def test_nothing_is_drawn_in_a_pipe(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    # Where nothing is drawn, what would draw it need not be there.
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with progress_callback("auto") as report:
        clock[0] += 3
        report(step(1))
    assert not pipe.getvalue()


def test_a_missing_extra_is_named_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"progress='auto'.*cli"):
        write_arrow(str(tmp_path / "t"), {"a": [1]}, progress="auto")
    assert not (tmp_path / "t").exists()


def test_what_is_no_way_to_tell_is_refused(tmp_path: Path) -> None:
    given: Any = "bar"
    with pytest.raises(DeltaAnalysisError, match="'auto' or None, but it is 'bar'"):
        write_arrow(str(tmp_path / "t"), {"a": [1]}, progress=given)
    assert not (tmp_path / "t").exists()


def test_each_operation_tells_how_far_it_is(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"a": [1, 2, 3]})
    write_arrow(uri, {"a": [4, 5]}, mode="append")

    def steps(run: Callable[[Callable[[Progress], object]], object]) -> list[Progress]:
        found: list[Progress] = []
        run(found.append)
        return found

    def last(found: list[Progress]) -> list[tuple[str, int, int | None, str]]:
        each = {step.text: step for step in found}
        return [(step.text, step.done, step.total, step.unit) for step in each.values()]

    assert last(
        steps(lambda report: write_arrow(uri, {"a": [6]}, mode="append", progress=report))
    ) == [("writing", 1, 1, "rows")]
    assert last(steps(lambda report: delete_rows(uri, "a = 1 OR a = 4", progress=report))) == [
        ("searching", 2, 2, "files"),
        ("copying", 3, None, "rows"),
    ]
    assert last(steps(lambda report: update_rows(uri, {"a": "0"}, "a > 4", progress=report))) == [
        ("searching", 2, 2, "files"),
        ("rewriting", 2, 2, "files"),
    ]
    [(text, done, total, unit)] = last(steps(lambda report: optimize(uri, progress=report)))
    assert (text, unit) == ("rewriting", "bytes")
    assert done == total
    assert last(steps(lambda report: vacuum(uri, progress=report)))[0][0] == "listing"


def test_merge_restore_clone_checkpoints_and_reading_tell_how_far_they_are(tmp_path: Path) -> None:
    uri, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    write_arrow(uri, {"a": [1, 2, 3]})
    write_arrow(uri, {"a": [4, 5]}, mode="append")
    delete_rows(uri, "a = 5")

    def last(run: Callable[[Callable[[Progress], object]], object]) -> list[tuple[Any, ...]]:
        found: dict[str, Progress] = {}
        run(lambda step: found.update({step.text: step}))
        return [(step.text, step.done, step.total, step.unit) for step in found.values()]

    def merged(report: Callable[[Progress], object]) -> None:
        builder = merge(uri, {"a": [1, 4, 6, 7]}, "target.a = source.a", progress=report)
        builder.when_matched_update({"a": "-1"}).when_not_matched_insert_all().execute()

    assert last(merged) == [
        ("searching", 2, 2, "files"),
        ("rewriting", 2, 2, "files"),
        ("inserting", 2, None, "rows"),
    ]
    assert last(lambda report: DeltaLog.for_table(uri).checkpoint(progress=report)) == [
        ("checkpoint", 4, 4, "actions")
    ]
    assert last(lambda report: clone(uri, copy, shallow=False, progress=report)) == [
        ("copying", 1, 1, "files"),
        ("committing", 1, None, "actions"),
    ]
    read = [("reading", 6, 6, "rows")]
    assert last(lambda report: read_arrow(uri, progress=report)) == read
    assert last(lambda report: read_arrow(uri, where="a > -5", progress=report)) == read
    heard: list[Progress] = []
    few = scan(uri, where="a % 2 = 0", progress=heard.append).limit(3)
    assert few.to_reader().read_all().num_rows == 2
    assert [(step.done, step.total) for step in heard][-1] == (2, None)
    for number in range(2, 12):
        write_arrow(uri, {"a": [number]}, mode="append")
    delete_rows(uri, "true")
    seen = last(lambda report: restore(uri, 13, progress=report))
    assert seen[0] == ("looking for files", 11, 11, "files")
    assert seen[1][0] == "committing"


def test_a_reader_that_is_left_ends_its_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    uri = str(tmp_path / "t")
    for number in range(3):
        write_arrow(uri, {"a": [number]}, mode="append")
    screen = terminal(monkeypatch)
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    batches = scan(uri, progress="auto").to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert "reading" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_a_stream_has_no_total_and_what_a_function_raises_ends_the_write(tmp_path: Path) -> None:
    import pyarrow as pa

    uri = str(tmp_path / "t")
    found: list[Progress] = []
    batches = (pa.record_batch({"a": [n]}) for n in range(3))
    write_arrow(uri, batches, progress=found.append)
    assert [(each.done, each.total) for each in found][-1] == (3, None)

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_arrow(uri, {"a": [1]}, mode="append", progress=stop)
    assert DeltaLog.for_table(uri).snapshot.version == 0
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


def test_a_terminal_that_is_gone_neither_ends_an_operation_nor_hides_that_it_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    class Gone(Terminal):
        def write(self, _: str) -> int:
            clock[0] += 1000.0
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    uri = str(tmp_path / "t")
    assert write_arrow(uri, {"id": [1, 2]}, progress="auto") == 0
    assert clock[0] > 1000.0  # it was tried
    assert DeltaLog.for_table(uri).snapshot.num_files == 1
