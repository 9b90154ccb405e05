"""The blocks of a page of the documentation, run in order as a reader pastes them.

A page's fences of `python`, `sql` and `bash` are its blocks. A fence of `text` or `json` right
after one is what it shows: what it prints and, as in a notebook, the value of its last line.
Comments are for the runs alone, and no reader sees them:

    <!-- setup                      a fence within the comment runs, and isn't shown
    <!-- shows: FILE -->            the next block is that file of the repository, whole, which has
                                    a test of its own
    <!-- saved as: NAME -->         the next block is a file of the run's folder, by that name: a
                                    later block runs it
    <!-- until: TEXT -->            the next block goes on until it is interrupted, which it is when
                                    it has printed this
    <!-- exit code: NUMBER -->      what the next block ends with, where that isn't 0
    <!-- not run: REASON -->        the next block needs what a test doesn't have
    <!-- page not run: REASON -->   all of the page does

`pytest tests/unit/test_guides.py tests/integration/test_guides.py --write-pages` writes the outputs
into the pages. A new block gets one where the page has an empty fence for it.

`/lake`, `/tmp` and `/var/log/lakelog` become folders of the run's own. What differs from run to run
is shown as one example of it: times, ids and durations (`EXAMPLES`).

None of the libraries that run the code of Markdown does all of this. pytest-examples writes
Python's output back, as comments in the code; sybil and mktestdocs run several languages and write
nothing; markdown-exec runs code, and a JVM, whenever the site is built, and GitHub shows no output.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest
    from pyspark.sql import SparkSession

    from support.servers.minio import S3Endpoint

__all__ = ["CHECKOUT", "REPOSITORY", "RUN", "STORAGES", "Block", "Page", "documents", "on_minio"]

REPOSITORY: Final = Path(__file__).parents[2]
RUN: Final = ("python", "sql", "bash")
STORAGES: Final = {
    "docs/backends/s3.md": "minio",
    "docs/backends/gcs.md": "fake_gcs",
    "docs/backends/azure.md": "azurite",
    "docs/backends/hdfs.md": "hdfs",
    "docs/backends/s3-dynamodb.md": "dynamodb",
    "docs/backends/spark.md": "minio",
    "docs/conformance.md": "minio",
    "docs/deploying.md": "minio",
    "docs/doctor.md": "minio",
    "docs/own-store.md": "minio",
    "docs/without-spark.md": "minio",
}
"""The server that the blocks of a page need."""
CHECKOUT: Final = "a checkout of lakelog"
"""Why a block of commands for a clone doesn't run: what it names is looked up instead."""
_FENCE: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_SHOWN: Final = re.compile(
    r"\s*^ *```(?:text|json)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
_NOT_RUN: Final = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*\Z")
_SHOWS: Final = re.compile(r"<!-- shows: (?P<file>\S+) -->\s*\Z")
_SAVED_AS: Final = re.compile(r"<!-- saved as: (?P<name>\S+) -->\s*\Z")
_UNTIL: Final = re.compile(r"<!-- until: (?P<printed>[^>]+) -->\s*\Z")
_EXIT_CODE: Final = re.compile(r"<!-- exit code: (?P<number>\d+) -->\s*\Z")
_PAGE_NOT_RUN: Final = re.compile(r"<!-- page not run: (?P<reason>[^>]+) -->")
_HOME: Final = "home/me"
_ROOTS: Final = re.compile(r"(?:(?<![\w/.])|(?<=://))/(?=(?:lake|tmp|var/log/lakelog)\b)")
_SPARK: Final = re.compile(r"\bpyspark\b|lakelog\.spark")
_TODAY: Final = "|".join(
    (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%d") for days in (-1, 0, 1)
)

EXAMPLES: Final[Mapping[str, str]] = {
    # Where a service listens, who may ask it, and where lakelog is installed.
    r"http://127\.0\.0\.1:\d+/\?token=\S+": "http://127.0.0.1:40613/?token=…",
    r"/.+(?=/lakelog/logstores/service/)": "/…",
    rf"(?:{_TODAY})([T ])\d\d:\d\d:\d\d": r"2026-01-31\g<1>12:00:00",
    r"(?<=12:00:00\.)\d{3}(\d{3})?": "000",
    # A release of pyarrow writes a few bytes more than another.
    r"(?<![\d.])(?:\d{3} B|\d KiB)\b": "400 B",
    r"\b\d\.\d KiB\b": "1.2 KiB",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "…",
    r"\b[0-9a-f]{32}\b": "…",
    r"\b\d+\.\d+ s\b": "0.1 s",
    r"\b\d+\.\d+s\b": "0.10s",
    r"\b\d+(?:\.\d+)? ms\b": "1.2 ms",
    r"(?m)^((?:create|read|list) +)\d\S* +\d\S* +\d\S* +(?=\d+$)": r"\g<1>1.2     2.4     4.8     ",
}
"""What is shown for what differs from run to run, as wide where it stands in columns."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fence.

    `shown` is the span, in the page, of the output that follows it; `reason` says why it can't run;
    `file` is the one that it shows, `saved_as` the one that it becomes, `until` what it prints
    before it is interrupted, and `exit_code` what it ends with otherwise.
    """

    language: str
    code: str
    line: int
    indent: str
    shown: tuple[int, int] | None
    reason: str | None
    file: str | None
    saved_as: str | None
    until: str | None
    exit_code: int


class Page:
    """A page and its blocks."""

    def __init__(self, name: str) -> None:
        """Read a page by its path in the repository."""
        self.name = name
        self.text = (REPOSITORY / name).read_text(encoding="utf-8")
        self.blocks = list(self._blocks())

    def __repr__(self) -> str:
        return self.name

    def _blocks(self) -> Iterator[Block]:
        page = _PAGE_NOT_RUN.search(self.text)
        for fence in _FENCE.finditer(self.text):
            language = fence["language"]
            before = page or _NOT_RUN.search(self.text, 0, fence.start())
            shown = _SHOWN.match(self.text, fence.end()) if language in RUN else None
            shows, saved, until = (
                each.search(self.text, 0, fence.start()) for each in (_SHOWS, _SAVED_AS, _UNTIL)
            )
            exits = _EXIT_CODE.search(self.text, 0, fence.start())
            yield Block(
                language,
                textwrap.dedent(fence["code"]),
                self.text.count("\n", 0, fence.start("code")),
                fence["indent"],
                shown.span("text") if shown else None,
                before["reason"] if before else None,
                shows["file"] if shows else None,
                saved["name"] if saved else None,
                until["printed"] if until else None,
                int(exits["number"]) if exits else 0,
            )

    @property
    def run(self) -> list[Block]:
        """The blocks that run."""
        return [b for b in self.blocks if b.language in RUN and not (b.reason or b.file)]

    @property
    def needs_spark(self) -> bool:
        """Whether any of them needs a session."""
        return any(b.language == "sql" or _SPARK.search(b.code) for b in self.run)

    def outputs(
        self,
        folder: Path,
        names: dict[str, Any] | None = None,
        stand_ins: Mapping[str, str] | None = None,
    ) -> dict[Block, str]:
        """Run the blocks, and give what each of them shows.

        Args:
            folder: an empty one; where the code's `/lake`, `/tmp` and `/var/log/lakelog` are.
            names: what Python code finds defined: `spark`, where there is a session.
            stand_ins: what the code has instead of addresses and keys that the page names.
        """
        for root in ("lake", "tmp", "var/log/lakelog", _HOME):
            (folder / root).mkdir(parents=True)
        names = {"__name__": "__main__"} | (names or {})
        outputs = {}
        for block in self.run:
            code = _ROOTS.sub(f"{folder}/", block.code)
            for named, meant in (stand_ins or {}).items():
                code = code.replace(named, meant)
            if block.saved_as:
                file = folder / block.saved_as
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(code, encoding="utf-8")
                continue
            shown = getattr(self, f"_{block.language}")(block, code, folder, names)
            for named, meant in (stand_ins or {}).items():
                shown = shown.replace(meant, named)
            shown = shown.replace(str(folder), "")
            for pattern, example in EXAMPLES.items():
                shown = re.sub(pattern, example, shown)
            lines = (line.rstrip() for line in shown.strip("\n").splitlines())
            outputs[block] = "".join(f"{line}\n" for line in lines)
        return outputs

    def _python(self, block: Block, code: str, folder: Path, names: dict[str, Any]) -> str:
        tree = ast.parse("\n" * block.line + code, self.name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(compile(tree, self.name, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), self.name, "eval"), names)
                if value is not None:
                    print(repr(value))
        return shown.getvalue()

    def _sql(self, block: Block, code: str, folder: Path, names: dict[str, Any]) -> str:
        from lakelog.spark import sql_script

        session: SparkSession = names["spark"]
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            result = sql_script(session, code)
            if block.shown and result is not None and result.columns:
                result.show(truncate=False)
        return shown.getvalue()

    def _bash(self, block: Block, code: str, folder: Path, names: dict[str, Any]) -> str:
        running = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=folder,
            env=os.environ
            | {
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "COLUMNS": "100",
                "HOME": str(folder / _HOME),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert running.stdout
        with running, running.stdout as lines:
            shown = ""
            for line in lines:
                shown += line
                if block.until and block.until in line:
                    os.killpg(running.pid, signal.SIGINT)
        expected = (0, 130, -signal.SIGINT) if block.until else (block.exit_code,)
        assert running.returncode in expected, f"{self.name}:{block.line + 1}\n{shown}"
        return shown

    def showing(self, outputs: Mapping[Block, str]) -> str:
        """The page's text with these outputs, at the places that it has for them."""
        text = self.text
        for block in reversed(self.run):
            if block.shown:
                start, end = block.shown
                text = text[:start] + textwrap.indent(outputs[block], block.indent) + text[end:]
        return text

    def write(self, text: str) -> None:
        """Replace the page's text, unless somebody has edited it in the meantime."""
        path = REPOSITORY / self.name
        assert path.read_text(encoding="utf-8") == self.text, (
            f"{self.name} was edited: run it again"
        )
        path.write_text(text, encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--write-pages`."""
    parser.addoption("--write-pages", action="store_true", help="let pages show what they print")


def documents() -> list[Page]:
    """The README and every page of the documentation."""
    docs = sorted(str(p.relative_to(REPOSITORY)) for p in (REPOSITORY / "docs").rglob("*.md"))
    return [Page(name) for name in ("README.md", *docs)]


def on_minio(minio: S3Endpoint, bucket: str) -> dict[str, str]:
    """What stands for the addresses, the keys and the bucket that pages name: a MinIO's."""
    return {
        "http://minio:9000/lake": f"{minio.url}/{bucket}",
        "http://minio:9000": minio.url,
        "minio:9000": minio.url.partition("://")[2],
        '"writer"': f'"{minio.access_key}"',
        '"its-secret"': f'"{minio.secret_key}"',
        "s3a://lake": f"s3a://{bucket}",
        "my://bucket": f"my://{bucket}",
        "mine://bucket": f"mine://{bucket}",
    }
