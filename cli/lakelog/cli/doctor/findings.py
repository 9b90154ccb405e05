"""What the doctor found, as data. `docs/doctor.md` documents the JSON form."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.doctor.finding import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.engine.commit import LockChoice
    from lakelog.logstores import Capabilities, Resolution

FORMAT: Final = 1
"""Of the JSON form; a change that takes away or renames a field makes it 2."""


class Verdict(enum.StrEnum):
    """The result in one word."""

    NO_FAILURE_SEEN = "no-failure-seen"
    FAILED = "failed"
    NOT_PROBED = "not-probed"
    """Nothing failed, and nothing was written: `--read-only`."""


@dataclass(slots=True)
class Report:
    """Everything that `lakelog doctor` says about a URI, or a name in a catalog."""

    uri: str
    read_only: bool = False
    resolution: Resolution | None = None
    endpoint: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    capabilities: Capabilities | None = None
    lock: LockChoice | None = None
    table_version: int | None = None
    catalog: Mapping[str, str | int | bool] | None = None
    """Of a name: what the catalog is and promises, and where the table is."""
    findings: list[Finding] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, finding: Finding) -> Finding:
        """Keep a finding and return it; one with an earlier one's cause is only named there."""
        if finding.status is Status.FAILED:
            for at, earlier in enumerate(self.findings):
                if earlier.status is Status.FAILED and _cause(earlier) == _cause(finding):
                    also = [*earlier.measured.get("also", ()), finding.check]
                    self.findings[at] = replace(
                        earlier, measured={**earlier.measured, "also": also}
                    )
                    return finding
        self.findings.append(finding)
        return finding

    def has_failed(self, *checks: str) -> bool:
        """Whether one of these checks failed, even if for the cause of another."""
        return any(
            name in checks
            for each in self.failures
            for name in (each.check, *each.measured.get("also", ()))
        )

    @property
    def failures(self) -> list[Finding]:
        """What has to be fixed."""
        return [each for each in self.findings if each.status is Status.FAILED]

    @property
    def verdict(self) -> Verdict:
        """The result in one word."""
        if self.failures:
            return Verdict.FAILED
        return Verdict.NOT_PROBED if self.read_only else Verdict.NO_FAILURE_SEEN

    def as_json(self) -> dict[str, Any]:
        """The documented form. Not scrubbed."""
        from importlib.metadata import version

        return {
            "format": FORMAT,
            "lakelog": version("lakelog"),
            "uri": self.uri,
            "verdict": self.verdict.value,
            "store": self._store(),
            "endpoint": self.endpoint,
            "settings": dict(self.settings),
            "capabilities": self.capabilities.as_json() if self.capabilities else None,
            "commit_lock": self.lock and {"kind": self.lock.kind.value, "reason": self.lock.reason},
            "table_version": self.table_version,
            "catalog": self.catalog and dict(self.catalog),
            "findings": [
                {
                    "check": each.check,
                    "status": each.status.value,
                    "summary": each.summary,
                    "remedy": each.remedy,
                    "measured": dict(each.measured),
                }
                for each in self.findings
            ],
            "left_behind": list(self.left_behind),
            "seconds": round(self.seconds, 2),
        }

    def _store(self) -> dict[str, Any] | None:
        chosen = self.resolution
        if chosen is None:
            return None
        return {
            "class": chosen.class_path,
            "key": chosen.key,
            "value": chosen.value,
            "reason": chosen.reason,
        }


_DOING: Final = re.compile(r"^can't [^:]*: ")
_NAMES: Final = re.compile(r"\S+://\S+|\S*/\.lakelog-probe-\S+|\b[0-9a-f-]{32,36}\b")


def _cause(finding: Finding) -> tuple[str, str]:
    """What two findings with one cause share: everything but what was tried, and where."""
    return _NAMES.sub("", _DOING.sub("", finding.summary)), _NAMES.sub("", finding.remedy)
