"""What `lakelog.spark` shows."""

from __future__ import annotations

import importlib

import pytest

from lakelog import spark

# A name that goes from here is a name that breaks somebody's import: keep it as a deprecated one.
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


def test_the_unwrapping_of_errors_has_an_old_name() -> None:
    told = r"spark\.original_error is deprecated\. Write: from lakelog\.spark import unwrap_error"
    with pytest.warns(DeprecationWarning, match=told) as caught:
        assert spark.original_error is spark.unwrap_error
    assert caught[0].filename == __file__
