"""Tables in the double of Unity Catalog, made as a client of it makes them: in the Delta protocol's
own words, without lakelog."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from support.unity_server import UnityServer

SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}
BASE = "/api/2.1/unity-catalog/delta/v1"


def ask(server: UnityServer, method: str, path: str, body: Any = None) -> Any:
    """One request, past any port; its answer has to be good."""
    status, value = server.answer(
        method,
        BASE + path,
        b"" if body is None else json.dumps(body).encode(),
        {} if server.token is None else {"Authorization": f"Bearer {server.token}"},
    )
    assert status < 300, value
    return value


def make_table(
    server: UnityServer, name: str = "lake.s.t", properties: dict[str, str] | None = None
) -> Path:
    """A table of one column, `id`, without rows. Gives its folder."""
    catalog, schema, table = name.split(".")
    server.add_schema(catalog, schema)
    base = f"/catalogs/{catalog}/schemas/{schema}"
    staged = ask(server, "POST", f"{base}/staging-tables", {"name": table})
    given = {**staged["required-properties"], **(properties or {})}
    protocol, now = staged["required-protocol"], time.time_ns() // 1_000_000
    folder = Path(staged["location"].removeprefix("file://"))
    # As the JVM's client makes it: where folders are real, its next commit fails without.
    (folder / "_delta_log/_staged_commits").mkdir(parents=True)
    write_commit(
        folder / "_delta_log/00000000000000000000.json",
        now,
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": protocol["reader-features"],
                "writerFeatures": protocol["writer-features"],
            }
        },
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(SCHEMA),
                "partitionColumns": [],
                "configuration": given,
                "createdTime": now,
            }
        },
    )
    body = {
        "name": table,
        "location": staged["location"],
        "table-type": "MANAGED",
        "columns": SCHEMA,
        "partition-columns": [],
        "protocol": protocol,
        "properties": given,
        "last-commit-timestamp-ms": now,
    }
    ask(server, "POST", f"{base}/tables", body)
    return folder


def write_commit(path: Path, time_of: int, *actions: dict[str, Any]) -> bytes:
    """Write a file of commits; gives its bytes."""
    info = {
        "inCommitTimestamp": time_of,
        "timestamp": time_of,
        "operation": "WRITE",
        "operationParameters": {},
        "txnId": str(uuid.uuid4()),
    }
    data = b"".join(json.dumps(each).encode() + b"\n" for each in ({"commitInfo": info}, *actions))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return data


def rows_file(folder: Path, *ids: int) -> dict[str, Any]:
    """Write a data file; gives its `add`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = f"part-{uuid.uuid4()}.parquet"
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / name)
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": (folder / name).stat().st_size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": json.dumps({"numRecords": len(ids)}),
        }
    }


def other_client_commits(
    server: UnityServer, folder: Path, *ids: int, name: str = "lake.s.t"
) -> dict[str, Any]:
    """Stage and ratify an append, and leave it unpublished. Gives the commit as the API has it."""
    table = server.table(name)
    version = table.latest + 1
    file_name = f"{version:020d}.{uuid.uuid4()}.json"
    now = max(time.time_ns() // 1_000_000, newest_time(server, name) + 1)
    data = write_commit(
        folder / f"_delta_log/_staged_commits/{file_name}", now, rows_file(folder, *ids)
    )
    commit = {
        "version": version,
        "timestamp": now,
        "file-name": file_name,
        "file-size": len(data),
        "file-modification-timestamp": now,
    }
    body = {
        "requirements": [{"type": "assert-table-uuid", "uuid": table.id}],
        "updates": [{"action": "add-commit", "commit": commit}],
    }
    catalog, schema, last = name.split(".")
    ask(server, "POST", f"/catalogs/{catalog}/schemas/{schema}/tables/{last}", body)
    return commit


def newest_time(server: UnityServer, name: str) -> int:
    """The newest commit's inCommitTimestamp."""
    table = server.table(name)
    newest = table.commits.get(table.latest)
    return table.last_metadata[1] if newest is None else int(newest["timestamp"])


def rows_in_log(folder: Path) -> Counter[int]:
    """The ids that the published commits have added, by their data files."""
    import pyarrow.parquet as pq

    found = Counter[int]()
    commits = (each for each in (folder / "_delta_log").glob("*.json") if each.stem.isdigit())
    for commit in commits:
        for line in commit.read_text().splitlines():
            if add := json.loads(line).get("add"):
                found.update(pq.read_table(folder / unquote(add["path"]))["id"].to_pylist())
    return found
