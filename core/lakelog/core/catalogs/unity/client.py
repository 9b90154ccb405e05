"""Unity Catalog as a catalog of ours: its Delta API v1, table by table.

What a real server answers is not always what its specification says; what is relied on here is
what both say, or what is looked at again afterwards:

- 409 `CommitVersionConflict` may be about the commit itself, sent again after it was published.
- 409 `UpdateRequirementConflict` means another table of the same name: never to be tried again.
- 429 `ResourceExhausted` means that commits wait to be published: ten at most.
- A report of a version that was never published is taken, and the version is lost. So only what was
  seen is reported.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.contract import (
    Catalog,
    CatalogCapabilities,
    CatalogTable,
    Credentials,
    RatifiedCommit,
    TooManyUnpublishedError,
    UnansweredError,
    VersionTakenError,
)
from lakelog.core.catalogs.names import TableName
from lakelog.core.catalogs.unity.changes import updates_for
from lakelog.core.catalogs.unity.credentials import conf_of
from lakelog.core.catalogs.unity.requests import RefusedError, Requests
from lakelog.core.clock import SystemClock
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.forks import lock_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.catalogs.contract import MetadataChange
    from lakelog.core.clock import Clock

PROTOCOL: Final = "1.0"
_CAPABILITIES: Final = CatalogCapabilities(
    most_unpublished=10, allows_maintenance=False, replays_are_seen=True
)
_GOVERNED: Final = "delta.feature.catalogManaged"


class UnityCatalog(Catalog):
    """One catalog of a server of Unity Catalog."""

    def __init__(self, name: str, conf: Mapping[str, str], clock: Clock | None = None) -> None:
        """Ask nothing yet.

        Args:
            name: of the catalog, here and on the server.
            conf: the user's whole Spark conf.
            clock: the machine's if None.

        Raises:
            DeltaAnalysisError: the conf lacks the server's URL, or says two things.
        """
        super().__init__(name, conf)
        found = CatalogConf(name, conf)
        if (found.get("deltaRestApi.enabled") or "true").lower() == "false":
            key = found.spark_key("deltaRestApi.enabled")
            raise DeltaAnalysisError(
                f"{key} = false asks for the older API of commits (/delta/preview/commits), which "
                "lakelog does not speak. Unset it, and use a server from 0.6 on.",
                key=key,
            )
        self._requests = Requests(found, clock or SystemClock())
        self._is_agreed = False
        self._lock = lock_of(self)

    def __repr__(self) -> str:
        """The name and the server."""
        return f"UnityCatalog({self.name}, {self._requests.url})"

    @property
    def capabilities(self) -> CatalogCapabilities:
        """What the API's version 1 promises."""
        return _CAPABILITIES

    def load(self, name: TableName) -> CatalogTable:
        """The table as it is now."""
        self._agree()
        try:
            return self._table(name, self._requests.get(_path(name)))
        except RefusedError as exc:
            raise self._meant(name, exc) from None

    def commit(
        self,
        table: CatalogTable,
        commit: RatifiedCommit,
        change: MetadataChange | None,
        published: int | None,
    ) -> CatalogTable:
        """Make a version of a staged file, by one request that is never repeated."""
        added = {
            "version": commit.version,
            "timestamp": commit.timestamp,
            "file-name": commit.file_name,
            "file-size": commit.size,
            "file-modification-timestamp": commit.modification_time,
        }
        updates: list[dict[str, Any]] = [{"action": "add-commit", "commit": added}]
        if published is not None:
            updates.append(_reporting(published))
        if change is not None:
            updates += updates_for(change, table.details or {})
        try:
            return self._update(table, updates)
        except RefusedError as exc:
            match exc.fields["status"], exc.fields["type"]:
                case 409, "CommitVersionConflict" | "AlreadyExists":
                    raise VersionTakenError(str(exc)) from None
                case 409, "UpdateRequirementConflict":
                    raise self._other_table(table, exc) from None
                case 409, _:
                    raise UnansweredError(str(exc)) from None
                case 429, _:
                    raise TooManyUnpublishedError(str(exc)) from None
                case _:
                    raise self._meant(table.name, exc) from None

    def report(self, table: CatalogTable, published: int) -> CatalogTable:
        """Say that a version's file is in the log."""
        try:
            return self._update(table, [_reporting(published)], may_repeat=True)
        except RefusedError as exc:
            if exc.fields["type"] == "UpdateRequirementConflict":
                raise self._other_table(table, exc) from None
            raise self._meant(table.name, exc) from None

    def credentials(self, table: CatalogTable, *, write: bool) -> Credentials:
        """What the server vends for the table's location."""
        operation = "READ_WRITE" if write else "READ"
        try:
            reply = self._requests.get(f"{_path(table.name)}/credentials", {"operation": operation})
        except RefusedError as exc:
            raise self._meant(table.name, exc) from None
        try:
            vended = (reply or {}).get("storage-credentials") or ()
            return conf_of(vended, table.location, self.name)
        except (KeyError, TypeError, AttributeError):
            # No word of what it was: it holds secrets.
            raise CatalogError(
                f"the catalog {self.name} vends credentials for {table.location} in a way that is "
                "not its API's."
            ) from None

    def close(self) -> None:
        """Release the connections."""
        self._requests.close()

    def _update(
        self, table: CatalogTable, updates: list[dict[str, Any]], *, may_repeat: bool = False
    ) -> CatalogTable:
        body = {
            "requirements": [{"type": "assert-table-uuid", "uuid": table.table_id}],
            "updates": updates,
        }
        reply = self._requests.post(_path(table.name), body, may_repeat=may_repeat)
        return self._table(table.name, reply)

    def _agree(self) -> None:
        """Ask once which version of the API the server speaks.

        Raises:
            UnsupportedFeatureError: none that is known here.
        """
        if self._is_agreed:
            return
        query = {"catalog": self.name, "protocol-versions": PROTOCOL}
        try:
            speaks = (self._requests.get("/config", query) or {}).get("protocol-version")
        except RefusedError as exc:
            if exc.fields["type"] == "NoSuchCatalog":
                raise self._meant(TableName(self.name, "", ""), exc) from None
            if exc.fields["status"] not in (400, 404, 405, 501):
                raise
            speaks = None
        # Some servers name any version that they were asked for; the answer is what counts.
        if speaks != PROTOCOL:
            said = "has no Delta API" if speaks is None else f"speaks version {speaks} of it"
            raise UnsupportedFeatureError(
                f"the server of the catalog {self.name} ({self._requests.url}) {said}: lakelog "
                f"speaks Unity Catalog's Delta API, version {PROTOCOL}. Use a server from 0.6 on; "
                "the older API of commits (/delta/preview/commits) is not spoken here.",
            )
        self._is_agreed = True

    def _table(self, name: TableName, reply: Any) -> CatalogTable:
        try:
            metadata = reply["metadata"]
            properties = dict(metadata.get("properties") or {})
            governed = properties.get(_GOVERNED) == "supported"
            commits = {each["version"]: _commit(each) for each in reply.get("commits") or ()}
            latest = reply.get("latest-table-version") if governed else -1
            if latest is None:
                latest = max(commits, default=metadata["last-commit-version"])
            known = sorted(commits)
            if governed and known != list(range(latest - len(known) + 1, latest + 1)):
                raise UnansweredError(
                    f"the catalog {self.name} names the commits {known} of {name}, and {latest} as "
                    "its newest version: some are missing in between. Nothing was read.",
                )
            return CatalogTable(
                name=name,
                table_id=metadata["table-uuid"],
                location=metadata["location"],
                is_governed=governed,
                latest=latest,
                commits=MappingProxyType(commits),
                details=metadata,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            # Of a reply to a commit this leaves the outcome open; a load is tried again by whoever
            # asks.
            raise UnansweredError(
                f"the catalog {self.name} described {name} in a way that is not its API's: "
                f"{sorted(reply or ())} ({type(exc).__name__}: {exc})."
            ) from None

    def _meant(self, name: TableName, refused: RefusedError) -> Exception:
        """What a refusal means for who asked for a table."""
        kind, status = refused.fields["type"], refused.fields["status"]
        if kind.startswith("NoSuch") or (status == 404 and not kind):
            what = {"NoSuchCatalog": "catalog", "NoSuchSchema": "schema"}.get(kind, "table")
            shown = {"catalog": name.catalog, "schema": f"{name.catalog}.{name.schema}"}
            return TableNotFoundError(
                f"the catalog {self.name} ({self._requests.url}) has no {what} "
                f"{shown.get(what, name)}: {refused.fields['reason']}. If it was renamed, open it "
                "by its new name.",
                table=str(name),
            )
        if kind == "UnsupportedTableFormat":
            return DeltaAnalysisError(
                f"{name} is no Delta table that the catalog {self.name} serves by its Delta API: "
                f"{refused.fields['reason']}. A view, or a table of another format, can't be "
                "read here.",
                table=str(name),
            )
        return refused

    def _other_table(self, table: CatalogTable, refused: RefusedError) -> TableNotFoundError:
        return TableNotFoundError(
            f"{table.name} is no more what was opened (id {table.table_id}): it was dropped, and "
            f"another table has its name. Nothing was committed; open it again by its name. "
            f"({refused.fields['reason']})",
            table=str(table.name),
        )


def _path(name: TableName) -> str:
    catalog, schema, table = (quote(part, safe="") for part in name)
    return f"/catalogs/{catalog}/schemas/{schema}/tables/{table}"


def _reporting(published: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": published}


def _commit(value: Mapping[str, Any]) -> RatifiedCommit:
    return RatifiedCommit(
        version=value["version"],
        file_name=value["file-name"],
        size=value["file-size"],
        timestamp=value["timestamp"],
        modification_time=value["file-modification-timestamp"],
    )
