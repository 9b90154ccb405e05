"""What may be wrong with a table, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass

from lakelog.core.shown.notebook import ShownFields


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One thing that is wrong."""

    kind: str
    """`torn commit`, `commit`, `gap`, `hint`, `checkpoint`, `checksum`, `missing file`,
    `wrong size`, `statistics`, `damaged file`, `deletion vector` or `leftover`."""
    path: str
    """The file: one of the log, or a data file as the storage has it."""
    problem: str
    mend: str | None
    """What `repair` does about it; `None` where it would have to guess, so that only a backup
    helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRepaired(ShownFields):
    """What a repair found, and did."""

    table: str
    dry_run: bool
    defects: tuple[Defect, ...]
    version: int | None = None
    """Of the commit that took files out of the table or gave them other sizes and statistics;
    `None` where none was needed."""
    backup: str | None = None
    """The folder with all that was replaced or removed, for `undo_repair`; `None` where nothing
    was changed."""

    @property
    def left(self) -> tuple[Defect, ...]:
        """The defects that are still there: those that can't be mended, or all after a dry run."""
        if self.dry_run:
            return self.defects
        return tuple(each for each in self.defects if each.mend is None)
