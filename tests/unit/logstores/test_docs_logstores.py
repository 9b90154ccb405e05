"""What docs/logstores.md shows works as shown."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import log_store_for
from lakelog.logstores.conformance import LogStoreConformance, run_conformance

if TYPE_CHECKING:
    from types import ModuleType

PAGE = Path(__file__).parents[3] / "docs" / "logstores.md"
BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
STORE = next(code for code in BLOCKS if "class ArrowLogStore" in code)


class Quick(LogStoreConformance):
    large_megabytes = 5
    race_rounds = 10
    model_examples = 10


@pytest.fixture
def my_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "my_stores.py").write_text(STORE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_stores", raising=False)
    return importlib.import_module("my_stores")


def test_the_store_of_the_page_keeps_the_contract(my_stores: Any, tmp_path: Path) -> None:
    report = run_conformance(my_stores.ArrowLogStore, f"arrow:{tmp_path}/root", suite=Quick)
    assert report.ok, str(report)


def test_the_store_of_the_page_is_used_by_conf_alone(my_stores: Any) -> None:
    conf = {"spark.delta.logStore.arrow.impl": "my_stores.ArrowLogStore"}
    assert type(log_store_for("arrow:/t", conf)) is my_stores.ArrowLogStore
