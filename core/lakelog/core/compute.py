"""`pyarrow.compute`, loaded at its first use.

It is a fifth of what importing the core would cost, and a blind append needs none of it. Its
functions are made while it is imported, where no type checker sees them: hence `Any`.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["pc"]


class _Late:
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("pyarrow.compute"), name)
        setattr(self, name, value)
        return value


pc: Any = _Late()
