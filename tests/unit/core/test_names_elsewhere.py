"""Names that others' libraries have are answered with what to write, and that works."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from lakelog import core
from lakelog.core import DeltaLog, scan, schema, write_arrow
from lakelog.core.names_elsewhere import LOG, MODULE, SNAPSHOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    write_arrow(tmp_path, {"id": [1, 2]})
    return DeltaLog.for_table(tmp_path)


@pytest.mark.parametrize("name", MODULE)
def test_the_module_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'") as caught:
        getattr(core, name)
    assert str(caught.value).endswith(f". Write {MODULE[name]}")
    words = set(re.findall(r"\w+", MODULE[name].partition(";")[0]))
    assert words & ({*core.__all__} | {*schema.__all__}), "none of it is ours"


@pytest.mark.parametrize("name", SNAPSHOT)
def test_what_is_said_of_a_snapshot_works(log: DeltaLog, name: str) -> None:
    for owner in (log, log.snapshot):
        if hasattr(owner, name):
            continue
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. Write ") as caught:
            getattr(owner, name)
        line = str(caught.value).partition(". Write ")[2]
        given: dict[str, Any] = {
            "log": log,
            "snapshot": log.snapshot,
            "uri": log.table,
            "DeltaLog": DeltaLog,
        }
        assert eval(line, given) is not None


@pytest.mark.parametrize("name", LOG)
def test_what_is_said_of_a_log_works(log: DeltaLog, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^a DeltaLog has no attribute '{name}'. Write ") as e:
        getattr(log, name)
    line = str(e.value).partition(". Write ")[2]
    if line.startswith("log."):
        eval(line, {"log": log, "version": 0})
    else:
        assert line.partition("(")[0] in core.__all__


def test_other_names_are_only_not_there(log: DeltaLog) -> None:
    owners: list[tuple[Any, str]] = [
        (core, "module"),
        (log, "a DeltaLog"),
        (log.snapshot, "a Snapshot"),
    ]
    for owner, message in owners:
        with pytest.raises(AttributeError, match=f"^{message}.* has no attribute 'nonsense'$"):
            _ = owner.nonsense
    assert scan(log).count() == 2
