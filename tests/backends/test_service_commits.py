"""Writers of other processes, and the service that commits for them, of which some are killed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.backends import Backend, backend_of
from support.commit_services import ROLES, Killed

if TYPE_CHECKING:
    from pathlib import Path

_KILLS = int(os.environ.get("LAKELOG_KILLS", "50"))
_STORAGES = ("local files", "minio", "azurite", "fake GCS")


def _backend(storage: str, tmp_path: Path, request: pytest.FixtureRequest) -> Backend:
    if storage == "local files":
        return Backend(str(tmp_path / "tables"), {}, "", {})
    return backend_of(storage, request)


@pytest.mark.one_day_in(2, 1)
@pytest.mark.parametrize("storage", ["minio"])
def test_kills_lose_no_append_and_double_none(
    storage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = _backend(storage, tmp_path, request)
    assert Killed(tmp_path, backend.root, backend.conf).play("both", 1) == []


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("storage", _STORAGES)
@pytest.mark.parametrize("role", ROLES)
def test_many_kills_lose_no_append_and_double_none(
    role: str, storage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = _backend(storage, tmp_path, request)
    assert Killed(tmp_path, backend.root, backend.conf).play(role, _KILLS) == []
