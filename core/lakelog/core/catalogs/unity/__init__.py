"""Unity Catalog, by its Delta API v1."""

from lakelog.core.catalogs.unity.client import UnityCatalog

__all__ = ["UnityCatalog"]
