"""Which columns the clauses of a MERGE, or the SET of an UPDATE, assign."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.core.dml.merge.names import find_named, unresolved
from lakelog.core.dml.merge.new_rows import Taken
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.core.schema.column_fills import generation_of, identity_of
from lakelog.core.schema.column_paths import dotted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.dml.merge.clauses import MergeClause


@dataclass(frozen=True, slots=True)
class Assignment:
    """A new value for a column, or for a field within one."""

    path: tuple[str, ...]
    """In the spelling of the table, or of the source where the table does not have it."""
    value: Any
    """An expression, or `Taken` for what `*` takes."""
    keeps: bool = field(default=False, compare=False)
    """Whether fields of a struct that the value lacks stay as they are."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Finds the columns that the keys of assignments name."""

    target: StructType
    source: StructType
    target_alias: str | None
    source_alias: str | None
    evolves: bool

    def assignments(self, clause: MergeClause) -> list[Assignment]:
        """Those of a clause.

        Raises:
            DeltaAnalysisError: an unknown name, or a column that an INSERT can't name so.
        """
        if clause.action == "delete":
            return []
        if clause.takes_all:
            return list(self._all(clause))
        assert clause.values is not None  # or it would take all
        from_source = clause.when != "not matched by source"
        what = f"{clause.name} clause"
        found = [
            self.assignment(key, each, what, from_source=from_source)
            for key, each in clause.values.items()
        ]
        if clause.action == "insert":
            _check_inserted(found)
        return found

    def assignment(
        self, key: str, value: Any, what: str, *, from_source: bool = False
    ) -> Assignment:
        """The one of a key.

        Args:
            key: column or field, as the user wrote it.
            value: its new value.
            what: where it stands, for messages.
            from_source: whether it may be a column that only the source has.

        Raises:
            DeltaAnalysisError: an unknown name, or a field of something that is not a struct.
        """
        known = find_named(key, self.target, self.target_alias)
        if known is None and self.evolves and from_source:
            known = find_named(key, self.source, self.source_alias)
        if known is None:
            _refuse_field_of_no_struct(key, self.target, self.target_alias)
            raise unresolved(key, what, self.target)
        return Assignment(known[0], value)

    def _all(self, clause: MergeClause) -> Iterator[Assignment]:
        updates = clause.action == "update"
        if self.evolves:
            for each in self.source:
                ours = self.target.get(each.name)
                name = each.name if ours is None else ours.name
                yield Assignment((name,), Taken((each.name,)), keeps=updates)
            return
        for ours in self.target:
            theirs = self.source.get(ours.name)
            if theirs is not None:
                yield Assignment((ours.name,), Taken((theirs.name,)))
            elif generation_of(ours) is None and identity_of(ours) is None:
                # These two have a value of their own, which no source needs to bring.
                raise unresolved(quoted(ours.name), f"{clause.name} clause", self.source)


def _check_inserted(found: Sequence[Assignment]) -> None:
    seen: set[str] = set()
    for each in found:
        name = each.path[0]
        if len(each.path) > 1:
            raise DeltaAnalysisError(
                "[DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION] Nested field is not supported in "
                f"the INSERT clause of MERGE operation (field = {dotted(each.path)}). Give the "
                f"struct {quoted(name)} as a whole.",
                column=dotted(each.path),
            )
        if name in seen:
            raise DeltaAnalysisError(
                f"[DELTA_DUPLICATE_COLUMNS_ON_INSERT] Duplicate column names in INSERT clause: "
                f"{quoted(name)} is given twice.",
                column=name,
            )
        seen.add(name)


def _refuse_field_of_no_struct(key: str, schema: StructType, alias: str | None) -> None:
    """A path through an array, a map or a number has an error of its own."""
    from lakelog.core.schema.edits import column_path

    path = column_path(key)
    for parts in range(len(path) - 1, 0, -1):
        found = find_named(dotted(path[:parts]), schema, alias)
        if found is not None and not isinstance(found[1], StructType):
            raise DeltaAnalysisError(
                "[DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE] Updating nested fields is only "
                f"supported for StructType, but {dotted(found[0])} is of type {found[1]}: set it "
                "as a whole.",
                column=dotted(found[0]),
            )
