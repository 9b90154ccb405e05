"""The page of delta-spark's Python methods is made from what its package has."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from support.delta_spark import python_package

SCRIPT = Path(__file__).parents[2] / "scripts" / "delta_tables_page.py"


@pytest.mark.needs("delta_tables")
def test_the_record_has_the_methods_of_the_package(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    names = runpy.run_path(str(SCRIPT))
    recorded = json.loads(names["RECORD"].read_text("utf-8"))
    assert names["read_package"](python_package()) == recorded
    assert {"DeltaTable", "DeltaMergeBuilder", "IdentityGenerator"} <= {*recorded}
