"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lakelog.core.names_elsewhere import MODULE, home_of, refuse_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Lazy = tuple["Callable[[str], Any]", "Callable[[], list[str]]"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Lazy:
    """`__getattr__` and `__dir__` of a package, which import a name's module at its first use.

        __getattr__, __dir__ = lazy_names(__name__, {"errors": "DeltaError TableNotFoundError"})

    A store, or an executor, needs few of the names, and each costs what its module imports.

    Args:
        package: its `__name__`.
        homes: module below the package -> the public names that it has.
    """
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            # `from package import module` asks for an attribute first, in the middle of imports.
            if name.startswith("_") or find_spec(f"{package}.{name}") is not None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            refuse_name(f"module {package!r}", name, home_of(name, package) or MODULE.get(name))
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, names
