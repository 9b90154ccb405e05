"""`lakelog serve --listen` in a process of its own, and writers that let it commit for them.

    python tests/support/commit_services.py TABLE NAME STOP

A writer appends one file after the other, and prints each with the version that it heard of, or
with `unknown`. It ends where there is a file STOP. A conf comes as JSON in `LAKELOG_TEST_CONF`.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lakelog.core import DeltaLog, Operation
from lakelog.core.errors import CommitOutcomeUnknownError
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction import service_commit
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVICE = "spark.lakelog.commit.service"
CONF_VARIABLE = "LAKELOG_TEST_CONF"
ROLES = ("service", "client")
WRITERS = 3


@contextlib.contextmanager
def serving_commits(
    root: Path | str, token: Path, *options: str, listen: str = "127.0.0.1:0"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and its URL; it is killed at the end."""
    command = [
        *(sys.executable, "-c", "from lakelog.cli import main; main()", "serve"),
        *("--listen", listen, "--table", str(root), "--token-file", str(token), *options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline().rstrip() for _ in range(3)]
            yield process, lines[1].rpartition(" ")[2]
        finally:
            process.kill()


class Killed:
    """Writers and their service, of which one role is killed time and again."""

    def __init__(self, folder: Path, root: str, conf: Mapping[str, str]) -> None:
        """Make the table.

        Args:
            folder: an empty one, for what belongs to the test.
            root: where the table is to be.
            conf: leads there.
        """
        self._table, self._conf = f"{root}/t", dict(conf)
        self._log = new_table(self._table, conf=self._conf)
        self._stop, self._token = folder / "stop", folder / "token"
        self._settings = folder / "service.conf"
        self._settings.write_text("".join(f"{key} {conf[key]}\n" for key in conf))
        self._names = itertools.count()
        self._running: list[subprocess.Popen[str]] = []
        self._told: dict[str, str] = {}
        self._listen = "127.0.0.1:0"

    def play(self, role: str, kills: int) -> list[str]:
        """Kill one of them, or `both` in turn, so often, and say what was wrong in the end."""
        while kills > 0:
            with self._serving() as (service, url):
                while len(self._running) < WRITERS:
                    self._running.append(self._writer(url))
                self._until_it_commits(1 + kills % 3)
                for number in range({"client": kills, "both": 1}.get(role, 0)):
                    self._kill_a_writer(1 + (kills - number - 1) % 5)
                    self._running.append(self._writer(url))
                service.kill()
                kills -= kills if role == "client" else 1
        with self._serving():  # the last ones are to hear of theirs
            self._until_it_commits(1)
            self._stop.touch()
            for writer in self._running:
                self._hear(writer, writer.communicate()[0])
        codes = [each.returncode for each in self._running]
        return self._complaints() + [f"writers ended {codes}" for _ in [0] if any(codes)]

    @contextlib.contextmanager
    def _serving(self) -> Iterator[tuple[subprocess.Popen[str], str]]:
        more, root = ("--conf-file", str(self._settings)), self._table
        with serving_commits(root, self._token, *more, listen=self._listen) as (service, url):
            self._listen = urlsplit(url).netloc  # the next one is where its clients look for it
            yield service, url

    def _writer(self, url: str) -> subprocess.Popen[str]:
        conf = {**self._conf, SERVICE: url, f"{SERVICE}.token.file": str(self._token)}
        name = f"w{next(self._names)}"
        return subprocess.Popen(
            [sys.executable, __file__, self._table, name, str(self._stop)],
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[1]),
                CONF_VARIABLE: json.dumps(conf),
            },
            stdout=subprocess.PIPE,
            text=True,
        )

    def _until_it_commits(self, versions: int) -> None:
        while versions > 0:
            known = self._log.snapshot.version
            info = self._log.update().commit_info
            is_new = self._log.snapshot.version > known
            versions -= is_new and info is not None and "lakelog.groupTxnIds" in (info.tags or {})

    def _kill_a_writer(self, appends: int) -> None:
        writer = self._running.pop(0)
        assert writer.stdout is not None
        for _ in range(appends):
            self._hear(writer, writer.stdout.readline())
        writer.kill()
        self._hear(writer, writer.communicate()[0])

    def _hear(self, writer: subprocess.Popen[str], text: str) -> None:
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):  # else it died while it wrote
                name, outcome = line.split()
                self._told[name] = outcome

    def _complaints(self) -> list[str]:
        there: dict[str, list[str]] = collections.defaultdict(list)
        for version in range(1, self._log.update().version + 1):
            for line in self._log.store.read(commit_path(self._log.table, version)):
                if "add" in (action := json.loads(line)):
                    there[action["add"]["path"]].append(str(version))
        said = [f"{name} is in {places}" for name, places in there.items() if len(places) > 1]
        said += [
            f"{name} heard {outcome}, and is in {there[name]}"
            for name, outcome in self._told.items()
            if outcome != "unknown" and there[name] != [outcome]
        ]
        return said if self._told else [*said, "nobody heard of anything"]


def main() -> None:
    """Append."""
    table, name, stop = sys.argv[1:]
    service_commit.__dict__["_AWAY_SECONDS"] = 0.05
    log = DeltaLog.for_table(table, json.loads(os.environ[CONF_VARIABLE]))
    for number in itertools.count():
        if Path(stop).exists():
            return
        file = add_file(f"{name}-{number}")
        try:
            said = str(log.start_transaction().commit([file], Operation.write("Append")))
        except CommitOutcomeUnknownError:
            said = "unknown"
        sys.stdout.write(f"{file.path} {said}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
