"""Names of a module that are imported from where they are made when they are used."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Lazy = tuple["Callable[[str], Any]", "Callable[[], list[str]]"]


def lazy_names(module: str, homes: Mapping[str, str], *, below: str | None = None) -> Lazy:
    """`__getattr__` and `__dir__` of a module, which import a name's home where it is used.

        __getattr__, __dir__ = lazy_names(__name__, {"errors": "DeltaError TableNotFoundError"})

    A store, or an executor, needs few of the names, and each costs what its home imports.

    Args:
        module: its `__name__`.
        homes: module -> the names that it has, separated by spaces.
        below: the package that these modules are in; default: this one, which is a package.
    """
    home = {name: place for place, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            # `from package import module` asks for an attribute first, in the middle of imports.
            is_own = name.startswith("_") or below is not None
            if is_own or find_spec(f"{module}.{name}") is not None:
                raise AttributeError(f"module {module!r} has no attribute {name!r}")
            from lakelog.core.names_elsewhere import MODULE, home_of, refuse_name

            refuse_name(f"module {module!r}", name, home_of(name, module) or MODULE.get(name))
        # Not kept: where a test replaces a name in its home, it is replaced here as well.
        return getattr(importlib.import_module(f"{below or module}.{home[name]}"), name)

    def names() -> list[str]:
        return sorted(getattr(sys.modules[module], "__all__", home))

    return get, names
