"""What only some operating systems have: asked for by name, and never while a module is imported.

lakelog is for POSIX. Elsewhere, on Windows, tables on object stores and in memory are left: what
needs more says which call it misses.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from lakelog.logstores.errors import UnsafeLogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def after_fork(work: Callable[[], object]) -> None:
    """Do some work first thing in each forked child of this process, where there are forks.

    Args:
        work: takes nothing; what it returns is dropped.
    """
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=work)


def before_fork(work: Callable[[], object]) -> None:
    """Do some work in this process before each of its forks, where there are forks.

    Args:
        work: takes nothing; what it returns is dropped.
    """
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(before=work)


def need(module: ModuleType, name: str, what: str) -> None:
    """Refuse what an operating system without some call can't do.

    Args:
        module: of the standard library, where the call or the constant would be.
        name: of it there.
        what: the subject of the error: what can't be had.

    Raises:
        UnsafeLogStoreError: it is not there.
    """
    if not hasattr(module, name):
        raise UnsafeLogStoreError(
            f"{what} can't be had on this system ({sys.platform}): its Python has no "
            f"{module.__name__}.{name}. Use Linux, macOS or WSL, or a table on an object store"
        )
