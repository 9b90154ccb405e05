"""What `lakelog.logstores` shows, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from lakelog import logstores


def test_the_public_surface_is_what_it_says() -> None:
    public = {
        name
        for name, value in vars(logstores).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public | set(logstores._LAZY) == set(logstores.__all__)


@pytest.mark.parametrize("name", sorted(logstores._LAZY))
def test_a_store_that_is_loaded_late_is_a_store(name: str) -> None:
    assert issubclass(getattr(logstores, name), logstores.LogStore)
    assert name in dir(logstores)


@pytest.mark.parametrize("heavy", ["pyarrow", "pyspark", "asyncio", "hypothesis", "pytest"])
def test_importing_it_imports_nothing_heavy(heavy: str) -> None:
    script = f"import sys, lakelog.logstores; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_conformance_kit_is_importable_without_test_tools() -> None:
    script = (
        "import sys, lakelog.logstores.conformance; "
        "sys.exit('pytest' in sys.modules or 'hypothesis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_lost_outcome_survives_a_process_boundary() -> None:
    import pickle

    error = logstores.CommitOutcomeUnknownError("/t/_delta_log/0.json", "the link broke")
    twin = pickle.loads(pickle.dumps(error))
    assert (twin.path, twin.evidence, str(twin)) == (error.path, error.evidence, str(error))
