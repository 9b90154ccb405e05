"""The page of metrics and spans is made from the catalogue, and the catalogue is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from lakelog.core.telemetry.catalogue import ATTRIBUTES, COMMANDS, METRICS, SPANS

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "metrics_page.py"


def test_the_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_names_are_of_one_kind_and_each_attribute_is_used() -> None:
    names = [each.name for each in (*METRICS, *SPANS)]
    assert len({*names}) == len(names)
    assert all(re.fullmatch(r"lakelog(\.[a-z]+)+", name) for name in names)
    used = {word for each in (*METRICS, *SPANS) for word in each.attributes}
    assert used == ATTRIBUTES.keys()
    assert {each.duration for each in SPANS} - {None} == {
        each for each in METRICS if each.is_duration
    }


def test_each_command_is_some_functions() -> None:
    found = set()
    for root in ("core", "spark"):
        for path in (REPOSITORY / root).rglob("*.py"):
            found |= set(re.findall(r'(?:@command\(|command=)"([a-z ]+)"', path.read_text()))
    assert found == set(COMMANDS)
    assert sorted(COMMANDS) == list(COMMANDS)
