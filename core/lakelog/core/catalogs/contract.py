"""What a catalog does for a table that it governs, and what it declares about itself.

A commit asks for one thing: make version v of these lines, or say who has it. For a table that
lies at a path, the store decides: its exclusive create of `<v>.json` has one winner. A catalog is
the other way to decide. `GovernedStore` puts it below the same create, so that the core's loop,
its fence, its conflict checks and its settling of lost replies are one for both.

A catalog is a class with six members, chosen by `spark.lakelog.catalog.<name>.class`; four more
make, rename and drop tables, and two list what there is. lakelog's own speaks Unity Catalog's Delta
API.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakelog.core.catalogs.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCapabilities:
    """What a catalog guarantees; the core acts on each."""

    most_unpublished: int
    """How many ratified commits may wait to be published; a commit beyond is refused."""
    allows_maintenance: bool
    """Whether clients may run VACUUM, OPTIMIZE, RESTORE and clean up the log."""
    replays_are_seen: bool
    """Whether the same version with the same file, sent again, is known to be the same commit.

    For information: an outcome is settled by looking, whatever the reply was.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A staged file that the catalog has made a version of."""

    version: int
    file_name: str
    """Within `_delta_log/_staged_commits`."""
    size: int
    """Bytes."""
    timestamp: int
    """The inCommitTimestamp: milliseconds since the epoch."""
    modification_time: int
    """Of the staged file, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """What a commit changes beside files; the catalog keeps a copy of each."""

    metadata: Mapping[str, Any] | None = None
    """The `metaData` action, as JSON has it."""
    protocol: Mapping[str, Any] | None = None
    domains: Sequence[Mapping[str, Any]] = ()
    """The `domainMetadata` actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table as its catalog knows it at one moment."""

    name: TableName
    table_id: str
    """Never given to another table, not even to one of the same name."""
    location: str
    """Where the table is, as the catalog spells it."""
    is_governed: bool
    """Whether the catalog decides what its versions are; else its log alone does."""
    latest: int
    """The newest version; nothing above it counts. -1 of a table that is not governed."""
    commits: Mapping[int, RatifiedCommit] = field(default_factory=lambda: MappingProxyType({}))
    """Version -> its file, of those that need not be published yet; without gaps up to `latest`."""
    details: Any = None
    """The catalog's own: what it wants back with the next request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable:
    """A place that a catalog has set aside for a table, which nobody sees until it is made."""

    name: TableName
    table_id: str
    """That of the table, once it is made."""
    location: str
    """Where its first commit and its files go, as the catalog spells it."""
    features: frozenset[str]
    """The table features that it has to have."""
    properties: Mapping[str, str]
    """The properties that it has to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What opens a table's storage."""

    conf: Mapping[str, str] = field(repr=False)
    """Keys of a Spark conf, for the store; empty where the user's own do."""
    ends_at_ms: int | None = None
    """When they end: milliseconds since the epoch; None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics:
    """What a commit did, for the catalog's statistics; None where that is not known."""

    files_added: int
    bytes_added: int
    files_removed: int
    bytes_removed: int | None = None
    rows_inserted: int | None = None
    rows_removed: int | None = None
    rows_updated: int | None = None


class VersionTakenError(CatalogError):
    """The catalog says that the version exists. Whose it is, it may not say: it may be ours."""


class TooManyUnpublishedError(CatalogError):
    """So many commits wait to be published that this one was not taken. Nothing was ratified."""


class UnansweredError(CatalogError):
    """The catalog did not say whether it took the commit: it may have, or may still."""


class NameTakenError(CatalogError):
    """The catalog has a table of that name, of another id. Nothing was made."""


class Catalog(ABC):
    """Decides which commit becomes which version of the tables that it governs.

    Constructed as `Class(name, conf)`: the catalog's name and the user's whole Spark conf. Safe for
    threads. Its `repr` and its errors hold no secret, and it is not pickled.

    A catalog promises:

    1. *One winner.* Of all commits that are proposed for a version, at most one is ratified, and
       never another one in its place.
    2. *In order.* Version v is ratified only where v - 1 was.
    3. *Seen by all.* After `commit` returned, every `load` includes it, until it was published and
       that was reported.
    """

    def __init__(self, name: str, conf: Mapping[str, str]) -> None:
        """Keep both; ask nothing yet."""
        self.name = name
        self._conf = conf

    @property
    @abstractmethod
    def capabilities(self) -> CatalogCapabilities:
        """What it guarantees; the same for the life of the instance."""

    @abstractmethod
    def load(self, name: TableName) -> CatalogTable:
        """The table as it is now.

        Raises:
            TableNotFoundError: the catalog has no such table.
            CatalogError: it can't be reached, or refuses; or what has the name is no Delta table.
        """

    @abstractmethod
    def commit(
        self,
        table: CatalogTable,
        commit: RatifiedCommit,
        change: MetadataChange | None,
        published: int | None,
    ) -> CatalogTable:
        """Make a version of a staged file.

        Args:
            table: as it was known last.
            commit: the version and its file, which is whole.
            change: what it changes beside files; None for nothing.
            published: the newest version whose file was seen in the log, as were those before it;
                None where there is nothing to report.

        Returns:
            The table, with the version.

        Raises:
            VersionTakenError: the version exists; whose it is has to be looked at.
            TooManyUnpublishedError: others have to be published first.
            UnansweredError: whether it was ratified is not known.
            TableNotFoundError: the table is gone, or another one has its name; nothing was done.
            CatalogError: it was refused, for good; nothing was done.
        """

    @abstractmethod
    def report(self, table: CatalogTable, published: int) -> CatalogTable:
        """Say that a version's file is in the log, as are those before it; may be said again.

        Raises:
            CatalogError: it was not taken. Nothing depends on it but the number of commits that
                may wait.
        """

    def report_metrics(self, table: CatalogTable, metrics: CommitMetrics) -> None:  # noqa: B027
        """Say what a commit of this client did. A catalog that wants none has nothing to do here.

        Raises:
            CatalogError: it was not taken. Nothing depends on it.
        """

    @abstractmethod
    def credentials(self, table: CatalogTable | StagedTable, *, write: bool) -> Credentials:
        """What opens the table's storage.

        Raises:
            CatalogError: the catalog gives none.
        """

    def stage_table(self, name: TableName) -> StagedTable:
        """Set a place aside for a table that is not there.

        Raises:
            TableNotFoundError: the catalog has no such schema.
            NameTakenError: there is such a table.
            CatalogError: it was refused, or the catalog makes no tables.
        """
        raise self._makes_none(name)

    def create_table(
        self,
        staged: StagedTable,
        first: MetadataChange,  # noqa: ARG002  # an override's
        timestamp: int,  # noqa: ARG002
    ) -> CatalogTable:
        """Make the table whose version 0 is in its log.

        Args:
            staged: where it is.
            first: what the commit says of metadata and protocol, which are both given.
            timestamp: its inCommitTimestamp.

        Raises:
            NameTakenError: there is a table of that name; whose it is has to be looked at.
            UnansweredError: whether it was made is not known.
            CatalogError: it was refused, for good; nothing was made.
        """
        raise self._makes_none(staged.name)

    def rename_table(self, table: CatalogTable, name: TableName) -> None:  # noqa: ARG002
        """Give a table another name in its schema; afterwards the old one leads nowhere.

        Raises:
            TableNotFoundError: the table is gone, or another one has its name.
            NameTakenError: another table has the new name.
            CatalogError: it was refused, or it is not known whether it was done.
        """
        raise self._makes_none(table.name)

    def drop_table(self, table: CatalogTable) -> None:
        """Remove a table from the catalog, which may delete its files now or later.

        Raises:
            TableNotFoundError: the table is gone, or another one has its name.
            CatalogError: it was refused, or it is not known whether it was done.
        """
        raise self._makes_none(table.name)

    def schema_names(self) -> Iterator[str]:
        """The names of the catalog's schemas.

        Raises:
            CatalogError: the catalog lists none, as here, or can't be reached, or refuses.
        """
        raise CatalogError(
            f"the catalog {self.name} ({type(self).__name__}) lists no schemas. Name each of them."
        )

    def table_names(self, schema: str | None = None) -> Iterator[TableName]:
        """The tables of Delta's format; views, and tables of other formats, are left out.

        Args:
            schema: its name within the catalog; all schemas where none is given.

        Raises:
            TableNotFoundError: there is no such schema.
            CatalogError: the catalog lists none, as here, or can't be reached, or refuses.
        """
        raise CatalogError(
            f"{self.name}{f'.{schema}' if schema else ''}: the catalog {self.name} "
            f"({type(self).__name__}) lists no tables. Name each of them."
        )

    def _makes_none(self, name: TableName) -> CatalogError:
        return CatalogError(
            f"{name}: the catalog {self.name} ({type(self).__name__}) makes, renames and drops no "
            "tables. Use its own tools, and open the table here by its name."
        )

    def close(self) -> None:  # noqa: B027  # most hold nothing open
        """Release connections. Closing twice is not an error."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse: it would carry a token.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the catalog {self.name} can't be pickled: open the table there by name")
