"""Arrow's S3 file system gets what its version knows, and is made without the rest."""

from __future__ import annotations

from typing import Any

import pyarrow.fs
import pytest

from lakelog.logstores.s3.conf import S3Settings
from lakelog.logstores.s3.filesystem import arrow_filesystem

NEWER = ["allow_delayed_open", "tls_ca_file_path"]


@pytest.mark.parametrize("known", [0, 1, 2])
def test_options_that_arrow_does_not_know_are_left_out(
    monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    made: list[set[str]] = []

    def file_system(**options: Any) -> object:
        if set(NEWER[known:]) & set(options):
            raise TypeError("unexpected keyword argument")
        made.append(set(options))
        return object()

    monkeypatch.setattr(pyarrow.fs, "S3FileSystem", file_system)
    monkeypatch.setenv("AWS_CA_BUNDLE", f"/bundle-of-{known}")
    arrow_filesystem(S3Settings(region="eu-west-1"))
    assert len(made) == 1
    assert made[0] & set(NEWER) == set(NEWER[:known])
