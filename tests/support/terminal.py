"""Run a command of the program in this process, and read what it says."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from click.testing import CliRunner, Result

from lakelog.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping


def runner() -> CliRunner:
    """A runner that keeps standard error apart, as that of click 8.1 does only when asked to."""
    options: dict[str, Any] = {}
    if "mix_stderr" in inspect.signature(CliRunner).parameters:
        options["mix_stderr"] = False
    return CliRunner(**options)


def said(result: Result) -> str:
    """All that a command said to a terminal."""
    return result.stdout + result.stderr


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it said, without blank lines."""
        return [line for line in self.out.splitlines() if line.strip()]


def lakelog(*args: str, conf: Mapping[str, str] | None = None) -> Outcome:
    """Run `lakelog …`."""
    argv = list(args)
    for key, value in (conf or {}).items():
        argv += ["--conf", f"{key}={value}"]
    result = runner().invoke(app, argv, catch_exceptions=False)
    return Outcome(result.exit_code, result.stdout, result.stderr)


def lakelog_json(*args: str, conf: Mapping[str, str] | None = None, code: int = 0) -> Any:
    """Run it with `--json`; nothing but the document may be said."""
    outcome = lakelog(*args, "--json", conf=conf)
    assert (outcome.code, outcome.err) == (code, "")
    return json.loads(outcome.out)
