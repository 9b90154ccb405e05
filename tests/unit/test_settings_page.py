"""Every key that is read is in a registry, and the page of settings is made from these."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.keys import ALL_KEYS, DELTA_PREFIX
from lakelog.logstores.keys import HADOOP_KEYS, LAKELOG_PREFIX, Key

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "settings_page.py"
SAMPLES = {"flag": ("true", True), "whole": ("7", 7), "number": ("0.5", 0.5), "seconds": ("2", 2.0)}


def test_the_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("key", ALL_KEYS.values(), ids=str)
def test_each_key_is_read_by_its_kind_and_has_its_default(key: Key[object]) -> None:
    assert DeltaConf().read(key) == key.default
    if key.kind == "text":
        assert DeltaConf({key.name: " As It Stands "}).read(key) == " As It Stands "
        return
    given, value = SAMPLES[key.kind]
    if key.least is not None:
        given, value = str(key.least), key.least
        for outside in (key.least - 1, key.most and key.most + 1):
            if outside is not None:
                with pytest.raises(DeltaAnalysisError, match=re.escape(key.name)):
                    DeltaConf({key.name: str(outside)}).read(key)
    assert DeltaConf({key.name: f" {given} "}).read(key) == value
    with pytest.raises(DeltaAnalysisError, match=re.escape(key.name)):
        DeltaConf({key.name: "rubbish"}).read(key)


def test_seconds_are_above_zero() -> None:
    key = next(key for key in ALL_KEYS.values() if key.kind == "seconds")
    for text in ("0", "-1", "inf", "nan"):
        with pytest.raises(DeltaAnalysisError):
            DeltaConf({key.name: text}).read(key)


def test_no_other_module_spells_a_key_out() -> None:
    """A key that stands anywhere else is one that the doctor, the docs and messages don't know."""
    names = {*ALL_KEYS, *(key.name for key in HADOOP_KEYS)}
    short = {name.removeprefix(DELTA_PREFIX) for name in names if name.startswith(DELTA_PREFIX)}
    found = set()
    for root in ("logstores", "core", "spark", "cli", "contrib"):
        for path in (REPOSITORY / root).rglob("*.py"):
            # The kit makes up keys of its own, to see what becomes of secrets.
            if path.name == "keys.py" or "conformance" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            where = path.relative_to(REPOSITORY).as_posix()
            for name in re.findall(r'"(spark\.(?:lakelog|databricks\.delta)\.[\w.]*\w)"', text):
                found.add((where, name))
            for name in re.findall(r'\.get_(?:bool|int|float|str)\(\s*"([\w.]+)"', text):
                if name in short | names:
                    found.add((where, name))
    assert {each for each in found if each[1].startswith(LAKELOG_PREFIX)} == set()
    assert found == set()
