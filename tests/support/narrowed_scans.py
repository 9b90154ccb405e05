"""Which scans an engine makes of the one that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core import Scan

if TYPE_CHECKING:
    import pytest


def narrowed_scans(monkeypatch: pytest.MonkeyPatch) -> list[Scan]:
    """A list that gets each scan which another one is narrowed to, from now on."""
    seen: list[Scan] = []
    narrowed = Scan.narrowed

    def noted(self: Scan, *args: Any) -> Scan:
        seen.append(found := narrowed(self, *args))
        return found

    monkeypatch.setattr(Scan, "narrowed", noted)
    return seen
