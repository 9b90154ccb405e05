"""This interpreter without some of its packages, as a worker's Python may be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OF_LAKELOG", "OTHER_LAKELOG", "bare_python"]

OF_LAKELOG = ("lakelog", "__editable__", "_lakelog")
"""What an installation of lakelog brings into `site-packages`."""
OTHER_LAKELOG = {
    f"lakelog/{name}/__init__.py": "raise AssertionError('the lakelog of the worker is used')"
    for name in ("core", "logstores", "spark")
}
"""Modules of a lakelog that no job of another one may use."""


def bare_python(folder: Path, *hidden: str, modules: Mapping[str, str] | None = None) -> str:
    """A program that is this Python, and finds all packages but some.

    Its site-packages is a folder of links to everything else.

    Args:
        folder: where it is made; it may hold others.
        hidden: what the names in `site-packages` begin with.
        modules: file -> text, of what it has instead.
    """
    home = folder / "-".join(("without", *hidden))
    site = home / "site"
    site.mkdir(parents=True)
    for entry in sys.path:
        if not entry.endswith("site-packages"):
            continue
        for each in Path(entry).iterdir():
            hide = each.name.lower().startswith(hidden) or each.suffix == ".pth"
            if not hide and not (site / each.name).exists():
                (site / each.name).symlink_to(each)
    for name, text in (modules or {}).items():
        (site / name).parent.mkdir(parents=True)
        (site / name).write_text(text)
    python = home / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o755)
    return str(python)
