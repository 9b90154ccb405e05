"""A strict double of Unity Catalog's server: its Delta API v1, over loopback, in memory.

What it answers was recorded from a real server (`unity_exchanges.json`, replayed by
`tests/unit/core/catalogs/test_unity_double.py`). Where it is stricter than that server it says so
by a 400, so that no client passes by its leniency; what servers do differently is in `Ways`.
"""

from __future__ import annotations

import json
import posixpath
import re
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

BASE = "/api/2.1/unity-catalog"
_FEATURES = ("catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors")
_WRITER = (*_FEATURES, "inCommitTimestamp")
_MOST = 10
_TABLE = re.compile(
    r"/delta/v1/catalogs/(?P<c>[^/]+)/schemas/(?P<s>[^/]+)/tables/(?P<t>[^/]+)(?P<rest>/[a-z]+)?"
)
_STAGED = re.compile(r"/delta/v1/staging-tables/(?P<id>[^/]+)/credentials")
_NEW = re.compile(r"/delta/v1/catalogs/(?P<c>[^/]+)/schemas/(?P<s>[^/]+)/(?P<what>[a-z-]+)")
_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.enableDeletionVectors": "true",
}
_SUGGESTED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": None,
    "delta.columnMapping.maxColumnId": None,
    "delta.randomizeFilePrefixes": "true",
    "delta.parquet.compression.codec": "zstd",
    "delta.rowTracking.materializedRowCommitVersionColumnName": None,
    "delta.columnMapping.mode": "name",
}
_ENDPOINTS = [
    "POST /v1/catalogs/{catalog}/schemas/{schema}/staging-tables",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables",
    "GET /v1/catalogs/{catalog}/schemas/{schema}/tables",
    "GET /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "DELETE /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "HEAD /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/rename",
    "GET /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/credentials",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/metrics",
    "GET /v1/staging-tables/{table_id}/credentials",
    "GET /v1/temporary-path-credentials",
]
_COMMIT = {
    "version": int,
    "timestamp": int,
    "file-name": str,
    "file-size": int,
    "file-modification-timestamp": int,
}
_UPDATES = {
    "add-commit": {"commit"},
    "set-latest-backfilled-version": {"latest-published-version"},
    "set-properties": {"updates"},
    "remove-properties": {"removals"},
    "set-columns": {"columns"},
    "set-protocol": {"protocol"},
    "set-partition-columns": {"partition-columns"},
    "set-domain-metadata": {"updates"},
    "remove-domain-metadata": {"domains"},
    "set-table-comment": {"comment"},
}
_ALONE = {"add-commit", "set-latest-backfilled-version"}
_TYPE_TEXTS = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_TYPE_NAMES = {"integer": "INT"}


@dataclass
class Ways:
    """What servers do differently."""

    any_protocol: bool = True
    """0.6.0 agrees to a version of the API that it does not have; the specification says 400."""
    replays_conflict: bool = False
    """Whether a commit sent again is 409 although its record is there; 0.6.0 says 200."""
    checks_published: bool = False
    """Whether a report of a version is refused whose file is not in the log; 0.6.0 takes it."""
    checks_staged: bool = True
    """Whether the staged file has to be there, of the size that was said. No server looks."""
    has_api: bool = True
    """Whether it is new enough to have this API."""
    most_listed: int = 100
    """Schemas or tables in one answer; where more follow, it has a token."""
    decodes_first: bool = False
    """Whether a proxy before it decodes paths, and goes along their dots and through empty folders,
    before the server sees them."""
    folds_case: bool = False
    """Whether names of another case are the same, and those of tables are kept in lower case; so on
    Databricks."""
    wants_pages: bool = False
    """Whether a list is refused that is asked for without `max_results`: where it is long, by
    Databricks' server."""


@dataclass
class Table:
    """One table."""

    id: str
    location: str
    columns: Any
    partition_columns: list[str]
    properties: dict[str, str]
    latest: int = 0
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    last_metadata: tuple[int, int] = (0, 0)
    """The version and the time of the last change of metadata."""
    etag: int = 0
    created: int = 0
    domains: dict[str, Any] = field(default_factory=dict)
    comment: str | None = None
    kind: str = "MANAGED"
    format: str = "DELTA"


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


def _bad(message: str) -> RefusedError:
    return RefusedError(400, "InvalidParameterValueException", message)


class FaultError(Exception):
    """What a rule of `UnityServer.before` raises: an answer in place of the real one, or none."""

    def __init__(self, status: int | None, kind: str = "InternalServerErrorException") -> None:
        """`None`: the connection is closed without an answer."""
        super().__init__(str(status))
        self.status, self.kind = status, kind


@dataclass
class Request:
    """One request, for `UnityServer.seen` and the rules of `before`."""

    method: str
    path: str
    body: Any
    headers: dict[str, str] = field(repr=False, default_factory=dict)

    @property
    def action(self) -> str:
        """The first of its updates, such as `add-commit`; else the method."""
        updates = self.body.get("updates") if isinstance(self.body, dict) else None
        return updates[0]["action"] if isinstance(updates, list) and updates else self.method


class UnityServer:
    """State and answers; `serving` puts it behind a port."""

    def __init__(
        self, root: Path | str, ways: Ways | None = None, token: str | None = None
    ) -> None:
        self.root = str(root)
        self.ways = ways or Ways()
        self.token = token
        self.schemas: set[tuple[str, str]] = set()
        self.catalogs: dict[str, str] = {}
        self.tables: dict[tuple[str, str, str], Table] = {}
        self.staging: dict[str, str] = {}
        """Location -> id."""
        self.seen: list[Request] = []
        self.before: Callable[[Request], None] | None = None
        """Called with a request before anything is done; may raise `FaultError`."""
        self.after: Callable[[Request], None] | None = None
        """The same once it is done: the answer is lost."""
        self.credentials: Callable[[Table, str], list[dict[str, Any]]] | None = None
        self.read_file: Callable[[str], bytes] = lambda path: Path(path).read_bytes()
        self.url = ""
        self._lock = threading.RLock()
        self._clock = 0

    def now(self) -> int:
        """Milliseconds; never twice the same, so that an etag changes with each change."""
        self._clock = max(self._clock + 1, time.time_ns() // 1_000_000)
        return self._clock

    def conf(self, catalog: str = "lake") -> dict[str, str]:
        """What reaches it."""
        found = {
            f"spark.sql.catalog.{catalog}": "io.unitycatalog.spark.UCSingleCatalog",
            f"spark.sql.catalog.{catalog}.uri": self.url,
        }
        if self.token is not None:
            found |= {
                f"spark.sql.catalog.{catalog}.auth.type": "static",
                f"spark.sql.catalog.{catalog}.auth.token": self.token,
            }
        return found

    # -- what tests do past the API --------------------------------------------------------------

    def add_schema(self, catalog: str, schema: str) -> None:
        """Make a schema, and its catalog."""
        self.catalogs.setdefault(catalog, str(uuid.uuid4()))
        self.schemas.add((catalog, schema))

    def table(self, name: str) -> Table:
        """By `catalog.schema.table`."""
        catalog, schema, table = name.split(".")
        return self.tables[catalog, schema, table]

    def drop(self, name: str) -> None:
        """Remove a table; its files stay."""
        catalog, schema, table = name.split(".")
        del self.tables[catalog, schema, table]

    # -- requests --------------------------------------------------------------------------------

    def answer(
        self, method: str, target: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, Any]:
        """The status, and the JSON of the answer."""
        parts = urlsplit(target)
        if self.ways.decodes_first:
            clean = posixpath.normpath(unquote(parts.path).partition("\0")[0])
            parts = parts._replace(path="/".join(quote(each, safe="") for each in clean.split("/")))
        try:
            value = json.loads(body) if body else None
        except ValueError:
            return _error(_bad("no JSON"))
        request = Request(method, unquote(parts.path).removeprefix(BASE), value, headers)
        with self._lock:
            self.seen.append(request)
            try:
                if self.before is not None:
                    self.before(request)
                if (
                    self.token is not None
                    # Names of headers are spelt in any case.
                    and {k.lower(): v for k, v in headers.items()}.get("authorization")
                    != f"Bearer {self.token}"
                ):
                    raise RefusedError(401, "NotAuthorizedException", "Invalid token")
                found = self._route(request, parts.path.removeprefix(BASE), parse_qs(parts.query))
                if self.after is not None:
                    self.after(request)
                return found
            except RefusedError as exc:
                return _error(exc)

    def _route(self, request: Request, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        method, body = request.method, request.body
        if path.startswith("/delta/v1") and not self.ways.has_api:
            return 404, None
        if (method, path) == ("POST", "/catalogs"):
            return 200, self._new_catalog(body)
        if (method, path) == ("POST", "/schemas"):
            return 200, self._new_schema(body)
        if (method, path) == ("GET", "/schemas"):
            return 200, self._schemas(query)
        if (method, path) == ("GET", "/tables"):
            return 200, self._tables(query)
        if (method, path) == ("GET", "/metastore_summary"):
            return 200, {"metastore_id": str(uuid.uuid4())}
        if (method, path) == ("GET", "/delta/v1/config"):
            return 200, self._config(query)
        if found := _TABLE.fullmatch(path):
            name = self._kept(unquote(found["c"]), unquote(found["s"]), unquote(found["t"]))
            return self._of_table(method, name, found["rest"] or "", body, query)
        if (found := _STAGED.fullmatch(path)) and method == "GET":
            return 200, {"storage-credentials": self._of_staging(found["id"])}
        if (found := _NEW.fullmatch(path)) and method == "POST":
            name = self._kept(unquote(found["c"]), unquote(found["s"]), body.get("name", ""))
            if found["what"] == "staging-tables":
                return 200, self._new_staging(name, body)
            if found["what"] == "tables":
                return 200, self._new_table(name, body)
        raise RefusedError(404, "EndpointNotFound", f"no such endpoint: {method} {path}")

    def _kept(self, catalog: str, schema: str, table: str) -> tuple[str, str, str]:
        if self.ways.folds_case:
            return catalog.lower(), schema.lower(), table.lower()
        return catalog, schema, table

    def _of_table(
        self,
        method: str,
        name: tuple[str, str, str],
        rest: str,
        body: Any,
        query: dict[str, list[str]],
    ) -> tuple[int, Any]:
        if method == "HEAD":
            return (204 if name in self.tables else 404), None
        table = self._found(name)
        match method, rest:
            case "GET", "":
                return 200, self._shown(table)
            case "POST", "":
                self._update(table, body)
                return 200, self._shown(table)
            case "DELETE", "":
                del self.tables[name]
                return 204, None
            case "POST", "/rename":
                _exact(body, {"new-name"})
                new = self._kept(*name[:2], body["new-name"])
                if new in self.tables:
                    text = f"Table already exists: {'.'.join(new)}"
                    raise RefusedError(409, "AlreadyExistsException", text)
                self.tables[new] = self.tables.pop(name)
                return 204, None
            case "GET", "/credentials":
                operation = query.get("operation", ["?"])[0]
                if operation not in ("READ", "READ_WRITE"):
                    raise _bad(f"operation: {operation}")
                given = self.credentials or (lambda t, o: [_no_credentials(t.location, o)])
                return 200, {"storage-credentials": given(table, operation)}
            case "POST", "/metrics":
                _exact(body, {"table-id", "report"})
                return 204, None
        raise RefusedError(404, "EndpointNotFound", f"no such endpoint: {method} {rest}")

    def _found(self, name: tuple[str, str, str]) -> Table:
        if name not in self.tables:
            text = ".".join(name)
            if name[0] not in self.catalogs:
                raise RefusedError(404, "NoSuchCatalogException", f"Catalog not found: {name[0]}")
            if name[:2] not in self.schemas:
                raise RefusedError(
                    404, "NoSuchSchemaException", f"Schema not found: {'.'.join(name[:2])}"
                )
            raise RefusedError(404, "NoSuchTableException", f"Table not found: {text}")
        table = self.tables[name]
        if table.kind == "VIEW":
            raise RefusedError(
                400, "UnsupportedTableFormatException", f"Not a Delta table: {'.'.join(name)}"
            )
        return table

    def _new_catalog(self, body: Any) -> Any:
        now, made = self.now(), str(uuid.uuid4())
        self.catalogs[body["name"]] = made
        return {
            "name": body["name"],
            "comment": None,
            "properties": {},
            "owner": None,
            "created_at": now,
            "created_by": None,
            "updated_at": now,
            "updated_by": None,
            "id": made,
            "storage_root": body["storage_root"],
            "storage_location": f"{body['storage_root']}/__unitystorage/catalogs/{made}",
        }

    def _new_schema(self, body: Any) -> Any:
        if body["catalog_name"] not in self.catalogs:
            raise RefusedError(404, "NoSuchCatalogException", body["catalog_name"])
        now = self.now()
        self.schemas.add((body["catalog_name"], body["name"]))
        return {
            "name": body["name"],
            "catalog_name": body["catalog_name"],
            "comment": None,
            "properties": {},
            "full_name": f"{body['catalog_name']}.{body['name']}",
            "owner": None,
            "created_at": now,
            "created_by": None,
            "updated_at": now,
            "updated_by": None,
            "schema_id": str(uuid.uuid4()),
            "storage_root": None,
            "storage_location": None,
        }

    # Both lists are of the API that is older than Delta's. They were not recorded: they are as its
    # specification has them.

    def _schemas(self, query: dict[str, list[str]]) -> Any:
        (catalog,) = query["catalog_name"]
        if catalog not in self.catalogs:
            raise RefusedError(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        names = sorted(schema for of, schema in self.schemas if of == catalog)
        found = [
            {"name": each, "catalog_name": catalog, "full_name": f"{catalog}.{each}"}
            for each in names
        ]
        return self._page("schemas", found, query)

    def _tables(self, query: dict[str, list[str]]) -> Any:
        (catalog,), (schema,) = query["catalog_name"], query["schema_name"]
        if (catalog, schema) not in self.schemas:
            raise RefusedError(404, "NoSuchSchemaException", f"Schema not found: {schema}")
        found = [
            {
                "name": name,
                "catalog_name": catalog,
                "schema_name": schema,
                "table_type": table.kind,
                "data_source_format": table.format,
                "columns": [_column(*each) for each in enumerate(table.columns["fields"])],
                "storage_location": table.location,
                "comment": table.comment,
                "properties": table.properties,
                "created_at": table.created,
                "updated_at": table.etag,
                "table_id": table.id,
            }
            for (*place, name), table in self.tables.items()
            if place == [catalog, schema]
        ]
        return self._page("tables", found, query)

    def _page(self, what: str, found: list[Any], query: dict[str, list[str]]) -> Any:
        if self.ways.wants_pages and "max_results" not in query:
            raise _bad(f"The result set of {what} is too large to return in a single response.")
        first = int(query.get("page_token", ["0"])[0])
        after = first + self.ways.most_listed
        token = str(after) if after < len(found) else None
        return {what: found[first:after], "next_page_token": token}

    def _config(self, query: dict[str, list[str]]) -> Any:
        if query.get("catalog", [""])[0] not in self.catalogs:
            raise RefusedError(404, "NoSuchCatalogException", "Catalog not found")
        asked = query.get("protocol-versions", [""])[0].split(",")
        if "1.0" not in asked and not self.ways.any_protocol:
            raise _bad(f"no common version: {asked}")
        return {"endpoints": _ENDPOINTS, "protocol-version": "1.0"}

    def _new_staging(self, name: tuple[str, str, str], body: Any) -> Any:
        _exact(body, {"name"})
        if name[:2] not in self.schemas:
            raise RefusedError(404, "NoSuchSchemaException", ".".join(name[:2]))
        made = str(uuid.uuid4())
        root = self.root if "://" in self.root else f"file://{self.root}"
        location = f"{root}/__unitystorage/catalogs/{self.catalogs[name[0]]}/tables/{made}"
        self.staging[location] = made
        return {
            "table-id": made,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": [_no_credentials(location, "READ_WRITE")],
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": list(_FEATURES),
                "writer-features": list(_WRITER),
            },
            "suggested-protocol": {
                "reader-features": ["columnMapping"],
                "writer-features": ["columnMapping", "domainMetadata", "rowTracking"],
            },
            "required-properties": {**_PROPERTIES, "io.unitycatalog.tableId": made},
            "suggested-properties": _SUGGESTED,
        }

    def _of_staging(self, made: str) -> list[dict[str, Any]]:
        for location, each in self.staging.items():
            if each == made:
                given = self.credentials or (lambda t, o: [_no_credentials(t.location, o)])
                return given(Table(made, location, {}, [], {}), "READ_WRITE")
        raise RefusedError(404, "NotFoundException", f"Staging table not found: {made}")

    def _new_table(self, name: tuple[str, str, str], body: Any) -> Any:
        needed = {"name", "location", "table-type", "columns", "protocol", "properties"}
        needed |= {"partition-columns", "last-commit-timestamp-ms"}
        _exact(body, needed, {"domain-metadata", "uniform", "comment"})
        for kind, features in (("reader", _FEATURES), ("writer", _WRITER)):
            for feature in features:
                if feature not in body["protocol"][f"{kind}-features"]:
                    raise _bad(f"MANAGED table missing required {kind}-feature '{feature}'.")
        if name in self.tables:
            text = f"Table already exists: {'.'.join(name)}"
            raise RefusedError(409, "AlreadyExistsException", text)
        made = self.staging.get(body["location"])
        if made is None:
            raise _bad(f"no staging table at {body['location']}")
        for key, value in {**_PROPERTIES, "io.unitycatalog.tableId": made}.items():
            if body["properties"].get(key) != value:
                raise _bad(f"MANAGED table missing required property '{key}'.")
        if self.ways.checks_staged:
            self._file(body["location"], "00000000000000000000.json")
        del self.staging[body["location"]]
        now, time_of = self.now(), body["last-commit-timestamp-ms"]
        properties = {**body["properties"], **_shown_protocol(body["protocol"])}
        table = Table(
            made,
            body["location"],
            body["columns"],
            body["partition-columns"],
            properties,
            last_metadata=(0, time_of),
            etag=now,
            created=now,
            domains=dict(body.get("domain-metadata") or {}),
            comment=body.get("comment"),
        )
        self.tables[name] = table
        return self._shown(table)

    def _shown(self, table: Table) -> Any:
        version, time_of = table.last_metadata
        last = {"delta.lastUpdateVersion": str(version), "delta.lastCommitTimestamp": str(time_of)}
        return {
            "metadata": {
                "etag": f"etag-{table.etag}",
                "table-type": table.kind,
                "table-uuid": table.id,
                "location": table.location,
                "created-time": table.created,
                "updated-time": table.etag,
                "columns": table.columns,
                "partition-columns": table.partition_columns,
                "properties": {**table.properties, **last},
                "last-commit-version": version,
                "last-commit-timestamp-ms": time_of,
            },
            "commits": [table.commits[each] for each in sorted(table.commits, reverse=True)],
            "latest-table-version": table.latest,
        }

    def _update(self, table: Table, body: Any) -> None:
        _exact(body, {"requirements", "updates"})
        for each in body["requirements"]:
            kind = each.get("type")
            if kind == "assert-table-uuid":
                _exact(each, {"type", "uuid"})
                _require(kind, each["uuid"], table.id)
            elif kind == "assert-etag":
                _exact(each, {"type", "etag"})
                _require(kind, each["etag"], f"etag-{table.etag}")
            else:
                raise _bad(f"unknown requirement {kind}")
        if not any(each["type"] == "assert-table-uuid" for each in body["requirements"]):
            raise _bad("assert-table-uuid is missing")
        updates: dict[str, Any] = {}
        for each in body["updates"]:
            action = each.get("action")
            if action not in _UPDATES or action in updates:
                raise _bad(f"update {action}: unknown, or given twice")
            _exact(
                each, {"action", *_UPDATES[action]}, {"uniform"} if action == "add-commit" else ()
            )
            updates[action] = each
        if not updates:
            raise _bad("no updates")
        if "add-commit" not in updates and set(updates) - _ALONE:
            raise _bad("a change of metadata must ride with the commit that carries it")
        added = updates.get("add-commit", {}).get("commit")
        report = updates.get("set-latest-backfilled-version", {}).get("latest-published-version")
        is_new = added is not None and self._check_commit(table, added)
        if report is not None:
            self._report(table, report)
        if added is not None and is_new:
            if len(table.commits) >= _MOST:
                text = f"Max number of commits per table reached: {table.id}"
                raise RefusedError(429, "ResourceExhaustedException", text)
            table.commits[added["version"]] = dict(added)
            table.latest = added["version"]
            self._change(table, added, updates)
        if report is not None:
            self._prune(table, report)

    def _check_commit(self, table: Table, commit: Any) -> bool:
        """Whether it is new; what was ratified before is no change."""
        _exact(commit, set(_COMMIT))
        for key, kind in _COMMIT.items():
            if type(commit[key]) is not kind:
                raise _bad(f"commit: {key} = {commit[key]!r}")
        version, name = commit["version"], commit["file-name"]
        if not re.fullmatch(rf"{version:020d}\.[0-9a-f-]{{36}}\.json", name):
            raise _bad(f"commit: file-name {name} of version {version}")
        if version <= table.latest:
            known = table.commits.get(version)
            if known and known["file-name"] == name and not self.ways.replays_conflict:
                return False
            text = f"Commit version already accepted. Current table version is {table.latest}"
            raise RefusedError(409, "CommitVersionConflictException", text)
        if version != table.latest + 1:
            raise _bad(
                "Commit version must be the next version after the latest commit "
                f"{table.latest}, but got {version}"
            )
        if self.ways.checks_staged:
            data = self._file(table.location, f"_staged_commits/{name}")
            info = json.loads(data.split(b"\n", 1)[0])["commitInfo"]
            if len(data) != commit["file-size"] or not data.endswith(b"\n"):
                raise _bad(f"commit: {name} has {len(data)} bytes, not {commit['file-size']}")
            if info.get("inCommitTimestamp") != commit["timestamp"] or not info.get("txnId"):
                raise _bad(f"commit: timestamp {commit['timestamp']}, but commitInfo is {info}")
        return True

    def _report(self, table: Table, version: Any) -> None:
        if type(version) is not int or version > table.latest:
            raise _bad(
                f"Should not backfill version {version} while the last version committed is "
                f"{table.latest}"
            )
        if self.ways.checks_published:
            for each in (v for v in table.commits if v <= version):
                self._file(table.location, f"{each:020d}.json")

    def _prune(self, table: Table, version: int) -> None:
        # The newest stays, whatever was reported.
        table.commits = {v: c for v, c in table.commits.items() if v > version or v == table.latest}

    def _change(self, table: Table, commit: Any, updates: dict[str, Any]) -> None:
        rest = {action: each for action, each in updates.items() if action not in _ALONE}
        if not rest:
            return
        for action, each in rest.items():
            match action:
                case "set-properties":
                    table.properties |= each["updates"]
                case "remove-properties":
                    for key in each["removals"]:
                        table.properties.pop(key, None)
                case "set-columns":
                    table.columns = each["columns"]
                case "set-partition-columns":
                    table.partition_columns = each["partition-columns"]
                case "set-protocol":
                    table.properties |= _shown_protocol(each["protocol"])
                case "set-domain-metadata":
                    table.domains |= each["updates"]
                case "remove-domain-metadata":
                    for key in each["domains"]:
                        table.domains.pop(key, None)
                case "set-table-comment":
                    table.comment = each["comment"]
        table.last_metadata = commit["version"], commit["timestamp"]
        table.etag = self.now()

    def _file(self, location: str, name: str) -> bytes:
        path = f"{location.removeprefix('file://')}/_delta_log/{name}"
        try:
            return self.read_file(path)
        except FileNotFoundError:
            raise _bad(f"{path} does not exist") from None


def _exact(value: Any, needed: set[str], more: Any = ()) -> None:
    if not isinstance(value, dict):
        raise _bad(f"no object: {value!r}")
    if set(value) - needed - set(more) or needed - set(value):
        raise _bad(f"keys {sorted(value)}, but {sorted(needed)} are needed")


def _require(kind: str, expected: str, found: str) -> None:
    if expected != found:
        text = f"{kind} failed: expected {expected} but table has {found}"
        raise RefusedError(409, "UpdateRequirementConflictException", text)


def _shown_protocol(protocol: Any) -> dict[str, str]:
    features = {*protocol.get("reader-features", ()), *protocol.get("writer-features", ())}
    return {
        "delta.minReaderVersion": str(protocol["min-reader-version"]),
        "delta.minWriterVersion": str(protocol["min-writer-version"]),
        **{f"delta.feature.{each}": "supported" for each in sorted(features)},
    }


def _column(position: int, field: dict[str, Any]) -> dict[str, Any]:
    kind = field["type"] if isinstance(field["type"], str) else field["type"]["type"]
    return {
        "name": field["name"],
        "type_text": _TYPE_TEXTS.get(kind, kind),
        "type_json": json.dumps(field["type"]),
        "type_name": _TYPE_NAMES.get(kind, kind.upper()),
        "position": position,
        "comment": field["metadata"].get("comment"),
        "nullable": field["nullable"],
        "partition_index": None,
    }


def _no_credentials(location: str, operation: str) -> dict[str, Any]:
    return {"prefix": location, "operation": operation, "config": {}, "expiration-time-ms": None}


def _error(refused: RefusedError) -> tuple[int, Any]:
    error = {
        "message": refused.message,
        "type": refused.kind,
        "code": refused.status,
        "stack": None,
    }
    return refused.status, {"error": error}


@contextmanager
def serving(server: UnityServer, tls: ssl.SSLContext | None = None) -> Iterator[UnityServer]:
    """Put it behind a port of loopback, by TLS with the context's certificate."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two segments, and the second would wait for a delayed acknowledgement.
        disable_nagle_algorithm = True

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, value = server.answer(
                    self.command, self.path, body, dict(self.headers.items())
                )
            except FaultError as fault:
                if fault.status is None:
                    self.close_connection = True
                    return
                status, value = _error(RefusedError(fault.status, fault.kind, "made by a test"))
            data = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_HEAD = _do  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as http:
        if tls is not None:
            http.socket = tls.wrap_socket(http.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        server.url = f"{scheme}://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
