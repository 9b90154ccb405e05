"""The page of the SQL that is evaluated without Spark is made from the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lakelog.core.expressions.function_names import AGGREGATES, SCALARS
from lakelog.core.expressions.values.functions import FUNCTIONS

SCRIPT = Path(__file__).parents[2] / "scripts" / "functions_page.py"


def test_the_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_function_is_one_of_sparks() -> None:
    assert [name for name in FUNCTIONS if name not in SCALARS] == []
    assert AGGREGATES.isdisjoint(FUNCTIONS)
