"""Sail, a Spark Connect server without a JVM, in a virtual environment of its own.

It takes clients of PySpark up to 4.1, and PySpark's pure client has no JVM either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.tools import tool
from support.venvs import OURS, kept_environment

if TYPE_CHECKING:
    from pathlib import Path

SAIL = "0.7.2"


@tool("sail")
def sail_python() -> Path:
    """The Python of an environment that has Sail and a client of it.

    Raises:
        PeerUnavailableError: a download failed.
    """
    packages = (f"pysail=={SAIL}", "pyspark-client==4.1.*", "pandas<3")
    return kept_environment(f"sail-{SAIL}", *packages, *OURS)
