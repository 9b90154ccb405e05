"""The README's code is pasted into a fresh Python, as a reader does first, and its conf is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.logstores import resolve

REPOSITORY = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: str, language: str) -> list[str]:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def _paste_twice(page: str, folder: Path) -> str:
    """Run a page's code in order, twice; only `/tmp` becomes a folder of the test's own."""
    code = "\n".join(_blocks(page, "python"))
    code = re.sub(r"([\"`])/tmp/", lambda found: f"{found[1]}{folder}/", code)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=260,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.timeout(280)
def test_the_code_of_the_page_runs_as_pasted_and_once_more(tmp_path: Path) -> None:
    shown = _paste_twice("README.md", tmp_path)
    assert re.search(r"\|\s*1\|\s*UA\|\s*3\.5\|", shown), "the rows that it shows"


def test_the_line_of_conf_that_the_readme_shows_chooses_the_store() -> None:
    (block,) = (b for b in _blocks("README.md", "properties") if "logStore" in b)
    key, value = (part.strip() for part in block.split("="))
    chosen = resolve("s3a://lake/flights", {key: value})
    assert chosen.class_path.rpartition(".")[2] == value.rpartition(".")[2]
    assert chosen.class_path != resolve("s3a://lake/flights").class_path
