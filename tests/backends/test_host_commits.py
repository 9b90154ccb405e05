"""Processes of one host that commit as one to object stores, whoever is killed when.

Those who lead and those who wait are killed at the steps that they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.backends import backend_of
from support.examples import SEED
from support.host_writers import play

if TYPE_CHECKING:
    from pathlib import Path


_LONG = bool(SEED)
"""With a seed, as in `make soak`, each step; else some."""


_CASES = [("minio", "leader"), ("minio", "late"), ("minio", "member")]
_CASES += [("azurite", "leader"), ("fake GCS", "leader")]
_MORE = [(each, mode) for each in ("azurite", "fake GCS") for mode in ("late", "member")]


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("storage", "mode"), _CASES + _MORE if _LONG else _CASES)
def test_kills_lose_no_append_and_double_none(
    storage: str, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = backend_of(storage, request)
    # Some of the steps at which it says what it sends, sends it, and says what came of it.
    numbers = range(1, 100) if _LONG else range(4, 100, 9)
    assert play(tmp_path, mode, numbers, backend.uri("killed"), backend.conf) == []
