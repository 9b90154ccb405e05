"""The version of lakelog that is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lakelog")
except PackageNotFoundError:
    # Shipped to a cluster as a bare zip: the code came without its metadata.
    __version__ = "unknown"
