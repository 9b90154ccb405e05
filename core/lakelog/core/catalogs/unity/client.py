"""Unity Catalog as a catalog of ours: its Delta API v1, table by table.

What a real server answers is not always what its specification says; what is relied on here is
what both say, or what is looked at again afterwards:

- 409 `CommitVersionConflict` may be about the commit itself, sent again after it was published.
- 409 `UpdateRequirementConflict` means another table of the same name, never to be tried again; or,
  of some servers, a lock that was not to be had.
- 429 `ResourceExhausted` means that commits wait to be published: ten at most.
- A report of a version that was never published is taken, and the version is lost. So only what was
  seen is reported.
"""

from __future__ import annotations

from dataclasses import fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.contract import (
    Catalog,
    CatalogCapabilities,
    CatalogTable,
    Credentials,
    NameTakenError,
    RatifiedCommit,
    StagedTable,
    TooManyUnpublishedError,
    UnansweredError,
    VersionTakenError,
)
from lakelog.core.catalogs.names import TableName
from lakelog.core.catalogs.unity.changes import new_table, updates_for
from lakelog.core.catalogs.unity.credentials import conf_of
from lakelog.core.catalogs.unity.requests import LISTING_API, UNNAMED, RefusedError, Requests
from lakelog.core.clock import SystemClock
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    DeltaError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.forks import lock_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakelog.core.catalogs.contract import CommitMetrics, MetadataChange
    from lakelog.core.clock import Clock

PROTOCOL: Final = "1.0"
_CAPABILITIES: Final = CatalogCapabilities(
    most_unpublished=10, allows_maintenance=False, replays_are_seen=True
)
_GOVERNED: Final = "delta.feature.catalogManaged"
_VIEWS: Final = frozenset({"VIEW", "MATERIALIZED_VIEW", "METRIC_VIEW"})
_FAR_AHEAD: Final = 5_000
"""Milliseconds that a server's clock may be ahead of ours before it counts: its answers have whole
seconds, and take their time."""
_DELTAS: Final = (None, "DELTA", "DELTA_UNIFORM_ICEBERG", "DELTA_UNIFORM_HUDI")
"""Formats whose tables have a log of Delta's."""
_TRIES: Final = 3
"""Of a request whose reply was lost, and that was not done."""


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
        self._clock = clock or SystemClock()
        self._requests = Requests(found, self._clock)
        self._is_agreed = False
        self._takes_metrics = False
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
        path = _path(name)
        self._agree()
        try:
            return self._table(name, self._requests.get(path))
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
                case 429, _:
                    raise TooManyUnpublishedError(str(exc)) from None
                case 401, _:  # which comes before anything is looked at
                    raise
                case _:
                    raise self._verdict(table, commit.version, exc) from None

    def _verdict(self, table: CatalogTable, version: int, refused: RefusedError) -> Exception:
        """What a refused commit has come to, by a look: a proxy may refuse what was done."""
        meant = self._meant(table.name, refused)
        try:
            found = self.load(table.name)
        except TableNotFoundError as exc:
            return exc
        except DeltaError as exc:
            return UnansweredError(f"{refused} And looking at the table failed: {exc}")
        if found.table_id != table.table_id:
            return self._other_table(table, refused)
        # Some servers say of a lock that they did not get what they say of another table.
        is_passing = refused.fields["status"] == 409 or isinstance(meant, TableNotFoundError)
        return UnansweredError(str(refused)) if is_passing or found.latest >= version else meant

    def report(self, table: CatalogTable, published: int) -> CatalogTable:
        """Say that a version's file is in the log."""
        try:
            return self._update(table, [_reporting(published)], may_repeat=True)
        except RefusedError as exc:
            if exc.fields["type"] == "UpdateRequirementConflict" and not self._is_there(
                table.name, table
            ):
                raise self._other_table(table, exc) from None
            raise self._meant(table.name, exc) from None

    def report_metrics(self, table: CatalogTable, metrics: CommitMetrics) -> None:
        """Send a report of a commit, where the server says that it takes them."""
        if not self._takes_metrics:
            return
        report = {
            f"num-{field.name.replace('_', '-')}": getattr(metrics, field.name)
            for field in fields(metrics)
        }
        kept = {key: value for key, value in report.items() if value is not None}
        body = {"table-id": table.table_id, "report": {"commit-report": kept}}
        try:
            self._requests.post(f"{_path(table.name)}/metrics", body)
        except RefusedError as exc:
            raise self._meant(table.name, exc) from None

    def credentials(self, table: CatalogTable | StagedTable, *, write: bool) -> Credentials:
        """What the server vends for the table's location."""
        query = {"operation": "READ_WRITE" if write else "READ"}
        try:
            if isinstance(table, StagedTable):
                staged = f"/staging-tables/{quote(table.table_id, safe='')}/credentials"
                try:
                    return self._vended(table.location, staged)
                except RefusedError as exc:
                    if exc.fields["status"] != 404:
                        raise
                    # It was made meanwhile, and has a name.
            return self._vended(table.location, f"{_path(table.name)}/credentials", query)
        except RefusedError as exc:
            raise self._meant(table.name, exc) from None

    def _vended(
        self, location: str, path: str, query: Mapping[str, str] | None = None
    ) -> Credentials:
        reply = self._requests.get(path, query)
        try:
            found = conf_of((reply or {}).get("storage-credentials") or (), location, self.name)
        except (KeyError, TypeError, AttributeError):
            # No word of what it was: it holds secrets.
            raise CatalogError(
                f"the catalog {self.name} vends credentials for {location} in a way that is "
                "not its API's."
            ) from None
        ahead = self._requests.is_ahead_by_ms
        if found.ends_at_ms is None or ahead < _FAR_AHEAD:
            return found
        # By our clock, which is behind, they end earlier than it says.
        ends = found.ends_at_ms - ahead
        return replace(found, ends_at_ms=ends) if ends > self._clock.now_ms() else found

    def stage_table(self, name: TableName) -> StagedTable:
        """Set a place aside; one that stays unused is seen by nobody."""
        _path(name)  # of a name that no request could have, no table is made
        self._agree()
        try:
            reply = self._requests.post(
                f"{_schema_path(name)}/staging-tables", {"name": name.table}, may_repeat=True
            )
        except RefusedError as exc:
            raise self._taken(name, exc) or self._meant(name, exc) from None
        try:
            protocol = reply["required-protocol"]
            asked = reply["required-properties"]
            return StagedTable(
                name=name,
                table_id=_text(reply["table-id"]),
                location=_place(reply["location"]),
                features=frozenset(
                    _text(each)
                    for kind in ("reader-features", "writer-features")
                    for each in protocol.get(kind, ())
                ),
                properties={key: _text(value) for key, value in asked.items() if value is not None},
            )
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            raise CatalogError(
                f"the catalog {self.name} set a place for {name} aside in a way that is not its "
                f"API's ({type(exc).__name__}: {exc}). Nothing was made."
            ) from None

    def create_table(
        self, staged: StagedTable, first: MetadataChange, timestamp: int
    ) -> CatalogTable:
        """Make the table, by one request that is never repeated here."""
        body = new_table(staged, first, timestamp)
        try:
            reply = self._requests.post(f"{_schema_path(staged.name)}/tables", body)
        except RefusedError as exc:
            if taken := self._taken(staged.name, exc):
                raise taken from None
            if exc.fields["status"] == 409:
                raise UnansweredError(str(exc)) from None
            raise self._meant(staged.name, exc) from None
        return self._table(staged.name, reply)

    def rename_table(self, table: CatalogTable, name: TableName) -> None:
        """Give the table another name; what the server leaves open is looked at."""
        _path(name)  # by a name that no request could have it would not be found again
        body = {"new-name": name.table}

        def ask() -> None:
            try:
                self._requests.post(f"{_path(table.name)}/rename", body)
            except RefusedError as exc:
                raise self._taken(name, exc) or self._meant(table.name, exc) from None

        self._settled(table, ask, lambda: self._is_there(name, table))

    def drop_table(self, table: CatalogTable) -> None:
        """Remove the table; what the server leaves open is looked at."""

        def ask() -> None:
            try:
                self._requests.delete(_path(table.name))
            except RefusedError as exc:
                raise self._meant(table.name, exc) from None

        self._settled(table, ask, lambda: not self._is_there(table.name, table))

    def _settled(
        self, table: CatalogTable, ask: Callable[[], None], is_done: Callable[[], bool]
    ) -> None:
        """Do what names no table but by its name, so long as that is the table that is meant."""
        said: CatalogError | None = None
        for _ in range(_TRIES):
            if not self._is_there(table.name, table):
                if said is not None and is_done():
                    break
                raise TableNotFoundError(
                    f"{table.name} is no more what was opened (id {table.table_id}): it was "
                    "renamed or dropped. Nothing was done here.",
                    table=str(table.name),
                )
            try:
                ask()
                break
            except UnansweredError as exc:
                said = exc
            except (TableNotFoundError, NameTakenError):
                # By the first request, perhaps, which came late.
                if said is None or not is_done():
                    raise
                break
            except RefusedError as exc:
                # A proxy may refuse what the server has done.
                try:
                    done = is_done()
                except CatalogError as failed:
                    raise _unknown(table, exc) from failed
                if not done:
                    raise
                break
        else:
            if not is_done():
                raise _unknown(table, said)

    def _is_there(self, name: TableName, table: CatalogTable) -> bool:
        try:
            return self.load(name).table_id == table.table_id
        except TableNotFoundError:
            return False

    def _taken(self, name: TableName, refused: RefusedError) -> NameTakenError | None:
        if refused.fields["type"] != "AlreadyExists":
            return None
        return NameTakenError(
            f"the catalog {self.name} has a table {name} already: {refused.fields['reason']}.",
            table=str(name),
        )

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
            said = self._requests.get("/config", query) or {}
            speaks = said.get("protocol-version")
            self._takes_metrics = "/metrics" in str(said.get("endpoints"))
        except RefusedError as exc:
            if exc.fields["type"] == "NoSuchCatalog":
                raise self._meant(TableName(self.name, "", ""), exc) from None
            if exc.fields["status"] not in (400, 404, 405, 501):
                raise
            speaks = None
        # Some servers name any version that they were asked for; the answer is what counts.
        if speaks != PROTOCOL:
            what = "has no Delta API" if speaks is None else f"speaks version {speaks} of it"
            raise UnsupportedFeatureError(
                f"the server of the catalog {self.name} ({self._requests.url}) {what}: lakelog "
                f"speaks Unity Catalog's Delta API, version {PROTOCOL}. Use a server from 0.6 on; "
                "the older API of commits (/delta/preview/commits) is not spoken here.",
            )
        self._is_agreed = True

    def _table(self, name: TableName, reply: Any) -> CatalogTable:
        try:
            metadata = reply["metadata"]
            properties = dict(metadata.get("properties") or {})
            governed = properties.get(_GOVERNED) == "supported"
            commits = dict[int, RatifiedCommit]()
            for each in map(_commit, reply.get("commits") or ()):
                if commits.setdefault(each.version, each) != each:
                    raise ValueError(f"two files of version {each.version}")
            latest = reply.get("latest-table-version") if governed else -1
            if latest is None:
                latest = max(commits, default=metadata["last-commit-version"])
            known = sorted(commits)
            if governed and _number(latest) < 0:
                raise ValueError(f"{latest} as its newest version")
            if governed and known != list(range(latest - len(known) + 1, latest + 1)):
                raise UnansweredError(
                    f"the catalog {self.name} names the commits {known} of {name}, and {latest} as "
                    "its newest version: some are missing in between. Nothing was read.",
                )
            return CatalogTable(
                name=name,
                table_id=_text(metadata["table-uuid"]),
                location=_place(metadata["location"]),
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

    def schema_names(self) -> Iterator[str]:
        """The catalog's schemas, page by page."""
        for found in self._listed("schemas", {}):
            yield found["name"]

    def table_names(self, schema: str | None = None) -> Iterator[TableName]:
        """The Delta tables of a schema, or of all, page by page."""
        if schema is None:
            for name in self.schema_names():
                yield from self.table_names(name)
            return
        for found in self._listed("tables", {"schema_name": schema}):
            is_view = str(found.get("table_type")) in _VIEWS
            if found.get("data_source_format") in _DELTAS and not is_view:
                yield TableName(self.name, schema, found["name"])

    def _listed(self, what: str, of: dict[str, str]) -> Iterator[dict[str, Any]]:
        # As many as the server likes: without that a large schema is refused by some.
        query = {"catalog_name": self.name, "max_results": "0", **of}
        tokens = set[str]()
        while True:
            try:
                reply = self._requests.get(f"/{what}", query, api=LISTING_API) or {}
            except RefusedError as exc:
                name = TableName(self.name, of.get("schema_name", "*"), "*")
                raise self._meant(name, exc) from None
            try:
                found = [each | {"name": _text(each["name"])} for each in reply.get(what) or ()]
            except (KeyError, TypeError, AttributeError, ValueError) as exc:
                raise self._odd_list(what, f"{type(exc).__name__}: {exc}") from None
            yield from found
            # Some servers end with an empty token, others with none.
            token = str(reply.get("next_page_token") or "")
            if not token:
                return
            if token in tokens:
                raise self._odd_list(what, f"the page {token[:40]!r} comes twice")
            tokens.add(token)
            query["page_token"] = token

    def _odd_list(self, what: str, why: str) -> CatalogError:
        return CatalogError(
            f"the catalog {self.name} ({self._requests.url}) lists {what} in a way that is not its "
            f"API's ({why})."
        )

    def _meant(self, name: TableName, refused: RefusedError) -> Exception:
        """What a refusal means for who asked for a table."""
        kind, status = refused.fields["type"], refused.fields["status"]
        # A 404 that is not the API's is of some other server: a proxy whose own is being restarted.
        if kind.startswith("NoSuch") or (status == 404 and kind == UNNAMED):
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


def _unknown(table: CatalogTable, said: CatalogError | None) -> CatalogError:
    return CatalogError(f"{said} It is not known whether it was done; look at {table.name}.")


def _schema_path(name: TableName) -> str:
    return f"/catalogs/{_quoted(name.catalog)}/schemas/{_quoted(name.schema)}"


def _path(name: TableName) -> str:
    return f"{_schema_path(name)}/tables/{_quoted(name.table)}"


def _quoted(part: str) -> str:
    """A part of a name as a request's path has it.

    Raises:
        DeltaAnalysisError: a server, or a proxy before it, may take the request for one about
            another table.
    """
    try:
        found = quote(part, safe="")
    except UnicodeEncodeError:
        found = ""
    # Some decode a path before they look at its folders, of which slashes make more, some take a
    # backslash for a slash, and some end a text at its first NUL. No server has such names.
    folders = part.split("\\")
    if not found or set(part) & {"/", "\0"} or any(each in ("", ".", "..") for each in folders):
        raise DeltaAnalysisError(
            f"{part!r} can't be a part of a name in a catalog: choose another one, without slashes "
            "and not of dots alone."
        )
    return found


def _reporting(published: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": published}


def _commit(value: Mapping[str, Any]) -> RatifiedCommit:
    version, name = _number(value["version"]), _text(value["file-name"])
    if not name.startswith(f"{version:020d}.") or "/" in name:
        raise ValueError(f"{name!r} is no file of version {version}")
    return RatifiedCommit(
        version=version,
        file_name=name,
        size=_number(value["file-size"]),
        timestamp=_number(value["timestamp"]),
        modification_time=_number(value["file-modification-timestamp"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"no text, but {type(value).__name__ if value else 'nothing'}")
    value.encode()  # or it has half of a character
    return value


def _place(value: Any) -> str:
    """A location. One without a beginning would be a folder of whoever asks."""
    text = _text(value)
    if not text.startswith("/") and ":" not in text.partition("/")[0]:
        raise ValueError(f"{text!r} is no URI")
    return text


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"no number, but {type(value).__name__}")
    return value
