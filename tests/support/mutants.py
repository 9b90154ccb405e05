"""Code of ours with one thing wrong, to see that a test notices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@dataclass(frozen=True)
class Mutant:
    """One thing wrong. A subclass says which test must show it."""

    name: str
    """Ends the sentence that the name of its test begins."""
    owner: Any
    """The module or class that has the right one."""
    attribute: str
    instead: Any

    def __str__(self) -> str:
        return self.name

    def patched(self) -> AbstractContextManager[object]:
        """The wrong one in the place of the right one, in this process, while the block lasts."""
        # What only instances have is made; what nobody has changes nothing, and survives its test.
        return mock.patch.object(self.owner, self.attribute, self.instead, create=True)
