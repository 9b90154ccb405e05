"""A table's terms: what its metadata and protocol require of a writer, worked out once.

A commit asks the same dozen questions as the one before it, and the answers change only with
metadata or protocol. So a snapshot has its terms, and passes them on to the next one for as long as
both stay as they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core.features.in_commit_timestamps import enabled_since
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.protocol import check_writable, supported_features
from lakelog.core.features.redirects import REDIRECTS
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import read_schema_of

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol


class TableTerms:
    """Metadata, protocol, and all that follows from the two of them alone.

    Each answer is worked out when it is first needed, and any error is raised then: a table with
    one bad property can still be written where nothing depends on that property.
    """

    def __init__(self, metadata: Metadata, protocol: Protocol) -> None:
        """Keep both; work out nothing."""
        self.metadata = metadata
        self.protocol = protocol
        self.is_writable: bool = False
        """Whether `check_writable` has passed."""

    def check_writable(self, table: str) -> None:
        """Refuse a table that this client may not write.

        Raises:
            UnsupportedFeatureError: a version or feature that we do not have.
            CorruptLogError: versions and lists that do not go together.
        """
        check_writable(self.protocol, self.metadata, table)
        self.is_writable = True

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties as values."""
        return TableProperties(self.metadata.configuration)

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that the protocol names, or implies by its versions."""
        return frozenset(supported_features(self.protocol))

    @cached_property
    def schema(self) -> StructType:
        """The table's schema."""
        return StructType.from_json(self.metadata.schema_string)

    @cached_property
    def read_schema(self) -> StructType:
        """The schema, with the names and ids that data files know its fields by."""
        return read_schema_of(self.schema, self.column_mapping_mode)

    @cached_property
    def column_mapping_mode(self) -> str:
        """`none`, `name` or `id`."""
        return self.properties.column_mapping_mode

    @cached_property
    def isolation_level(self) -> IsolationLevel:
        """`delta.isolationLevel`."""
        return IsolationLevel(self.properties.isolation_level)

    @cached_property
    def is_append_only(self) -> bool:
        """Whether commits may not remove rows."""
        return self.properties.append_only

    @cached_property
    def is_redirected(self) -> bool:
        """Whether the table is being moved, or was."""
        return any(self.metadata.configuration.get(name) for name in REDIRECTS)

    @cached_property
    def iceberg_compat(self) -> int | None:
        """The version of IcebergCompat that the table promises."""
        return self.properties.iceberg_compat

    @cached_property
    def keeps_symlink_manifest(self) -> bool:
        """Whether commits keep lists of files for readers that know no log."""
        return self.properties.symlink_manifest

    @cached_property
    def checkpoint_interval(self) -> int:
        """Commits from one checkpoint to the next."""
        return self.properties.checkpoint_interval

    @cached_property
    def expires_transactions(self) -> bool:
        """Whether an application's progress expires."""
        return self.properties.set_transaction_retention_ms is not None

    @cached_property
    def in_commit_timestamps(self) -> bool:
        """The property of that name, whether the protocol has the feature or not."""
        return self.properties.in_commit_timestamps

    @cached_property
    def assigns_row_ids(self) -> bool:
        """Whether a writer must give ids to the files that it adds."""
        supported = "rowTracking" in self.features
        return supported and not self.properties.get("delta.rowTrackingSuspended")

    @cached_property
    def is_row_tracking_enabled(self) -> bool:
        """Whether readers may rely on row ids: every live file has them."""
        supported = "rowTracking" in self.features
        return supported and bool(self.properties.get("delta.enableRowTracking"))

    @cached_property
    def names_type_versions(self) -> bool:
        """Whether type changes record the version of their commit: only with the preview."""
        return "typeWidening-preview" in self.features and "typeWidening" not in self.features

    @cached_property
    def commits_carry_time(self) -> bool:
        """Whether a commit must carry its time inside."""
        return "inCommitTimestamp" in self.features and self.in_commit_timestamps

    @cached_property
    def in_commit_since(self) -> tuple[int, int] | None:
        """The version and time from which commits carry their time; `None` if they do not."""
        return enabled_since(self.properties)
