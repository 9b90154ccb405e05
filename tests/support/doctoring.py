"""Run `lakelog doctor` in this process, and read what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from lakelog.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Diagnosis:
    """The JSON report, and how the program ended."""

    exit_code: int
    report: dict[str, Any]

    def __getitem__(self, check: str) -> dict[str, Any]:
        """The first finding of a check."""
        (first, *_) = [each for each in self.report["findings"] if each["check"] == check]
        return dict(first)

    @property
    def failed(self) -> list[str]:
        """The checks that failed."""
        return [each["check"] for each in self.report["findings"] if each["status"] == "failed"]

    @property
    def failures(self) -> str:
        """Summary and remedy of all that failed."""
        return "\n".join(
            f"{each['check']}: {each['summary']} -> {each['remedy']}"
            for each in self.report["findings"]
            if each["status"] == "failed"
        )


def doctor(uri: str, conf: Mapping[str, str], *options: str) -> Diagnosis:
    """Run it with `--json`."""
    code, output = doctor_text(uri, conf, "--json", *options)
    return Diagnosis(code, json.loads(output))


def doctor_text(uri: str, conf: Mapping[str, str], *options: str) -> tuple[int, str]:
    """Run it, and give its exit code and standard output."""
    argv = ["doctor", uri, *options]
    for key, value in conf.items():
        argv += ["--conf", f"{key}={value}"]
    result = CliRunner().invoke(app, argv, catch_exceptions=False)
    return result.exit_code, result.stdout
