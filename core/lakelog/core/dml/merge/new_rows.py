"""What a clause gives each column of a row: a small tree that every engine can evaluate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from lakelog.core.schema import StructField


@dataclass(frozen=True, slots=True)
class Kept:
    """The value that the target's row has at a path."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """The value that the source's row has at a path."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """What the user's expression gives, or a field within that."""

    expression: Any
    path: tuple[str, ...] = ()
    evolves: bool = field(default=False, compare=False)
    """Whether it may lack fields of the column's structs, which then are null."""


@dataclass(frozen=True, slots=True)
class Default:
    """The column's DEFAULT."""

    sql: str


@dataclass(frozen=True, slots=True)
class Generated:
    """What the column's generation expression gives for the other columns of the new row."""

    sql: str


@dataclass(frozen=True, slots=True)
class Numbered:
    """The next number of the identity column."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Null."""


@dataclass(frozen=True, slots=True)
class Built:
    """A struct of other values."""

    fields: tuple[tuple[StructField, Value], ...]
    """In the order of the struct; each value is cast to the type of its field."""
    null_where: tuple[Kept | Taken | Given, ...] = ()
    """The struct is null where all of these are; never where there are none."""


Value: TypeAlias = Kept | Taken | Given | Default | Generated | Numbered | Nothing | Built


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column of the new row."""

    field: StructField
    """Of the table's schema as it will be; the value is cast to its type."""
    value: Value
    is_assigned: bool
    """Whether the clause sets the column itself. A generated column that it sets is checked."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the row keeps its value, in the same type."""
        return self.value == Kept((self.field.name,))
