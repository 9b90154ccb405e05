from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile, CommitInfo
from lakelog.core.commit import attempt as commit_attempt
from lakelog.core.commit.attempt import CommitLines
from support.tables import add_file

if TYPE_CHECKING:
    import pytest

INFO = CommitInfo(operation="WRITE", timestamp=1)
FILES = [add_file("a"), add_file("b")]


def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are encoded from now on."""
    seen: list[str] = []
    to_json = AddFile.to_json

    def spy(add: AddFile) -> str:
        seen.append(add.path)
        return to_json(add)

    monkeypatch.setattr(AddFile, "to_json", spy)
    return seen


def test_the_lines_are_those_of_the_actions_and_are_measured() -> None:
    lines = CommitLines(INFO, FILES)
    for _ in range(2):
        found = list(lines)
        assert found == [each.to_json() for each in (INFO, *FILES)]
        assert lines.bytes == sum(len(line) + 1 for line in found)


def test_only_what_changed_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = encoded(monkeypatch)
    lines = CommitLines(INFO, FILES)
    list(lines)
    changed = replace(FILES[1], base_row_id=7)
    lines.change(replace(INFO, in_commit_timestamp=2), [FILES[0], changed])
    first, *others = lines
    assert seen == ["a", "b", "b"]
    assert first == replace(INFO, in_commit_timestamp=2).to_json()
    assert others == [FILES[0].to_json(), changed.to_json()]


def test_a_great_many_lines_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_attempt, "_KEPT_LINES", 2)
    seen = encoded(monkeypatch)
    lines = CommitLines(INFO, FILES)
    assert list(lines) == list(lines)
    assert seen == ["a", "b", "a", "b"]
