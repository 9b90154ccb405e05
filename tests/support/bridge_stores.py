"""A local store whose writes can be made to go wrong around the moment at which they land."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores import LocalLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

hooks: dict[str, Callable[[str], None]] = {}
"""What the next write does `before` it begins and `after` it has landed, with its path; once."""


class HookedStore(LocalLogStore):
    """Local files."""

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        held = list(lines)
        _run("before", path)
        super().write(path, held, overwrite=overwrite)
        _run("after", path)


CLASS = f"{__name__}.{HookedStore.__name__}"


def _run(name: str, path: str) -> None:
    hook = hooks.pop(name, None)
    if hook is not None:
        hook(path)
