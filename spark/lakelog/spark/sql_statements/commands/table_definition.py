"""What a CREATE TABLE says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.named_tables import path_in

if TYPE_CHECKING:
    from lakelog.core.create.table import CreateMode
    from lakelog.spark.sql_statements.commands.columns import ColumnDefinition
    from lakelog.spark.sql_statements.cursor import Name
    from lakelog.spark.sql_statements.statement import Statement


@dataclass(slots=True)
class NewTable:
    """The table that is to be made, part by part."""

    name: Name
    mode: CreateMode
    columns: list[ColumnDefinition] = field(default_factory=list)
    provider: str | None = None
    partition_by: list[str] = field(default_factory=list)
    cluster_by: list[str] = field(default_factory=list)
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    query: Statement | None = None

    @property
    def path(self) -> str | None:
        """The folder, if the statement has it."""
        return path_in(self.name.parts) or self.location
