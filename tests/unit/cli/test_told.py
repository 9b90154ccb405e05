"""What a command on a terminal says of how far it is."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING

import pytest

from lakelog.core import delete_rows, write_arrow
from support.terminal import lakelog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.mark.parametrize(
    ("module", "given", "said"),
    [
        ("row_changes.change", ["delete", "--where", "id = 1"], "copying: 1 row"),
        ("row_changes.change", ["update", "--set", "id=7", "--yes"], "rewriting: 2 of 2 files"),
        ("restore", ["restore", "--version", "1"], "committing: 2 actions"),
        ("checkpoint", ["checkpoint"], "checkpoint: 3 of 3 actions"),
        ("vacuum", ["vacuum", "--dry-run"], "listing: 3 files"),
    ],
)
def test_a_command_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, given: list[str], said: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [1, 2, 3]})
    write_arrow(uri, {"id": [4]}, mode="append")
    delete_rows(uri, "id = 2")
    heard: list[str] = []

    @contextlib.contextmanager
    def progress() -> Iterator[Callable[[str], None]]:
        yield heard.append

    monkeypatch.setattr(importlib.import_module(f"lakelog.cli.{module}"), "progress", progress)
    verb, *options = given
    outcome = lakelog(verb, uri, *options)
    assert outcome.code == 0, outcome.err
    assert said in heard
