"""A pipe gets plain text, whole; a terminal gets colours, unless NO_COLOR is set."""

from __future__ import annotations

import io
import re
import sys

import pytest

from lakelog.cli import output as _output


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_plain_columns_that_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    _output.table(("A", "B"), [("1", ("[red]", "green")), (long, "2")])
    assert capsys.readouterr().out.splitlines() == [
        "A" + " " * 500 + " B",
        "1" + " " * 500 + " [red]",
        long + "  2",
    ]


def test_lines_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    _output.line("[bold]s3a://b/t[/bold] :smile: " + "y" * 300)
    assert capsys.readouterr().out == "[bold]s3a://b/t[/bold] :smile: " + "y" * 300 + "\n"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_told_not_to(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    _output.line("failed", "red")
    assert ("\x1b[31m" in terminal.getvalue()) == coloured


def test_json_keeps_its_order_and_its_letters(capsys: pytest.CaptureFixture[str]) -> None:
    _output.print_json({"b": "ä", "a": [1]})
    assert capsys.readouterr().out == '{\n  "b": "ä",\n  "a": [\n    1\n  ]\n}\n'


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with _output.progress() as tell:
        tell("working")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_column_that_is_named_whole_does_not_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    _output.table(("Time", "What"), [("2026-01-31T12:00:00.000Z", "word " * 20)], whole=("Time",))
    lines = [line for line in terminal.getvalue().splitlines() if "2026" in line]
    assert len(lines) == 1
    assert "2026-01-31T12:00:00.000Z" in lines[0]
    assert terminal.getvalue().count("word") == 20, "the other one folds"


HISTORY = ("Version", "Time (UTC)", "Operation", "What", "Isolation", "Engine")


def _shown(
    monkeypatch: pytest.MonkeyPatch, width: int, columns: tuple[str, ...], spare: tuple[str, ...]
) -> str:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    row = [f"{name.lower()} in several words, enough to fold" for name in columns]
    row[:3] = ["7", "2026-01-31T12:00:00.000Z", "WRITE"]
    _output.table(columns, [row], whole=columns[:3], spare=spare)
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # bold is no colour


@pytest.mark.parametrize("width", [70, 80, 100, 120, 160, 300])
def test_what_a_terminal_shows_of_a_table_can_be_read(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _shown(monkeypatch, width, HISTORY, ("Isolation", "Engine"))
    *grid, last = shown.splitlines()
    grid = grid if "Too narrow" in last else [*grid, last]
    assert all(len(line) <= width for line in grid)
    words = " ".join(grid).split()
    for number, name in enumerate(HISTORY):
        if name in grid[0]:
            text = f"{name.lower()} in several words, enough to fold" if number > 2 else name
            assert set(text.split()) <= set(words), "no word is cut"
        else:
            assert name in ("Isolation", "Engine"), "only what may be spared is left out"
            assert name in last
    assert ("Too narrow" in last) == (width < 125)


def test_no_color_means_no_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, 300, HISTORY, ()).isascii()
