"""The collector of garbage, kept away from what is measured."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Let garbage lie.

    A collection runs the finalizers of whatever the process has dropped, that of other tests too
    (Py4J has one for each object of the JVM), in whichever thread asks for memory at that moment:
    its calls and lines would be taken for those of the work that is watched there.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
