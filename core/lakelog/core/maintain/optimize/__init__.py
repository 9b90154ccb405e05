"""OPTIMIZE and REORG: the same rows in fewer, larger or better ordered files."""

from __future__ import annotations
