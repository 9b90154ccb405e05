"""The page of PySpark's methods under `enable` is made from the code, and has them all."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
HOMES = {
    "SparkSession": "pyspark.sql.session",
    "DataFrame": "pyspark.sql.dataframe",
    "DataFrameReader": "pyspark.sql.readwriter",
    "DataFrameWriter": "pyspark.sql.readwriter",
    "DataFrameWriterV2": "pyspark.sql.readwriter",
    "DataStreamReader": "pyspark.sql.streaming.readwriter",
    "DataStreamWriter": "pyspark.sql.streaming.readwriter",
    "Catalog": "pyspark.sql.catalog",
}


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("enabled_methods_page")
    sys.modules.pop("enabled_methods_page", None)


def test_the_page_is_what_the_code_says(script):
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


@pytest.mark.parametrize("kind", ["", "connect", "classic"])
@pytest.mark.parametrize("name", HOMES)
def test_every_method_of_pyspark_is_named(script, name, kind):
    home = HOMES[name].replace("pyspark.sql", f"pyspark.sql.{kind}".rstrip("."))
    if kind == "classic" and name != "DataFrame":
        return  # the classes without a kind are those of classic sessions
    cls = getattr(importlib.import_module(home), name)
    public = {each for each in dir(cls) if not each.startswith("_")}
    wrapped, own = set(script.WRAPPERS[name]), set(script.SPARKS_OWN[name].split())
    new = public - wrapped - own
    assert not new, f"say in {script.__file__} what enable does with {name}: {sorted(new)}"
    assert not wrapped & own


def test_every_statement_is_named_here_and_in_the_guide(script):
    assert set(script.STATEMENT_NOTES) == script.statements()
    guide = (script.PAGE.parent / "sql.md").read_text(encoding="utf-8")
    missing = [
        each
        for each in script.statements()
        if not re.search(r"`[^`\n]*\b" + each.replace(" ", r"\b[^`\n]*\b") + r"\b", guide)
    ]
    assert not missing, f"docs/sql.md has no line about {missing}"


def test_what_is_said_of_a_method_is_said_of_one_that_is_there(script):
    known = {f"{name}.{each}" for name, all_ in script.WRAPPERS.items() for each in all_}
    assert set(script.DIFFERS) <= known


def test_mergeintowriter_has_the_same_methods_here():
    from pyspark.sql.merge import MergeIntoWriter

    from lakelog.spark.table import merge_into

    pairs = [(MergeIntoWriter, merge_into.TableMerge)]
    for name in ("WhenMatched", "WhenNotMatched", "WhenNotMatchedBySource"):
        pairs.append((getattr(MergeIntoWriter, name), getattr(merge_into, name)))
    for theirs, ours in pairs:
        public = {each for each in dir(theirs) if each[0].islower()}
        assert public <= set(dir(ours)), theirs
