"""Which endpoints passed the probe lately, kept in the user's cache folder.

One small file per endpoint, so that processes that probe different ones never meet. It is a note
and no more: what is missing, broken, from the future or too old counts as absent, and a folder
that can't be written costs the next process a probe.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Final

__all__ = ["KEPT_SECONDS", "passed_lately", "remember"]

KEPT_SECONDS: Final = 7 * 24 * 3600.0
_FORMAT: Final = 1


def passed_lately(endpoint: str) -> bool:
    """Whether the endpoint passed within the last seven days, as far as this host's user knows."""
    try:
        found = json.loads(_file(endpoint).read_text(encoding="utf-8"))
        age = time.time() - float(found["passed_at"])
        same = found["format"] == _FORMAT and found["endpoint"] == endpoint
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return False
    return bool(same) and 0 <= age < KEPT_SECONDS


def remember(endpoint: str) -> None:
    """Note that the endpoint passed just now; do nothing where that can't be written."""
    note = {"format": _FORMAT, "endpoint": endpoint, "passed_at": time.time()}
    with contextlib.suppress(OSError, RuntimeError):  # no home folder is a RuntimeError
        file = _file(endpoint)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=".draft-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(note, stream)
            Path(draft).replace(file)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def _file(endpoint: str) -> Path:
    # The XDG base directory specification: a relative path is to be ignored.
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if named.startswith("/") else Path.home() / ".cache"
    digest = hashlib.sha256(endpoint.encode()).hexdigest()[:32]
    return base / "lakelog" / "endpoints" / f"{digest}.json"
