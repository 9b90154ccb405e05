"""What `lakelog.spark` shows."""

from __future__ import annotations

import importlib

import pytest

# A name that goes from here is a name that breaks somebody's import.
SURFACE = {
    "lakelog.spark": """
        DeltaMergeBuilder DeltaReader DeltaStreamReader DeltaStreamWriter DeltaTable
        DeltaTableBuilder DeltaWriter DeltaWriterV2 IdentityGenerator bridge disable enable
        once_per_batch read read_stream register sql sql_script
        unwrap_error write write_stream write_to
    """,
}


@pytest.mark.parametrize("module", SURFACE)
def test_the_public_names_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(SURFACE[module].split())
    assert not [name for name in found.__all__ if not hasattr(found, name)]
