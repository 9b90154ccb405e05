"""DuckDB as a client of Unity Catalog; `unity_judges.py` says what it is told.

It runs in an environment of its own, so it imports nothing of the project's.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class Client:
    """A table by its name on the server.

    A connection keeps the table as it first knew it, or as its own commit left it.
    """

    def __init__(self, url: str, token: str, catalog: str, schema: str, table: str) -> None:
        self._place = url, token, catalog, schema
        self._table = f"{catalog}.{schema}.{table}"
        self._connection = connected(*self._place)

    def append(self, number: int) -> None:
        """Insert a row; DuckDB leaves lost races to its users."""
        while True:
            try:
                self._connection.execute(f"INSERT INTO {self._table} VALUES ({number})")
            except Exception as exc:
                if "CommitVersionConflict" not in str(exc):
                    raise
                self._connection = connected(*self._place)
            else:
                return

    def rows(self) -> list[int]:
        """All ids."""
        self._connection = connected(*self._place)
        found = self._connection.execute(f"SELECT id FROM {self._table}").fetchall()
        return [row[0] for row in found]


def connected(url: str, token: str, catalog: str, schema: str) -> Any:
    """A connection that has the catalog under its name."""
    import duckdb

    connection = duckdb.connect()
    for name in ("httpfs", "delta", "unity_catalog"):
        spec = find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        (file,) = Path(spec.origin).parent.glob("extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    connection.execute(
        f"CREATE SECRET (TYPE UNITY_CATALOG, TOKEN '{token}', ENDPOINT '{url}', "
        "AWS_REGION 'us-east-1')"
    )
    connection.execute(
        f"ATTACH '{catalog}' AS {catalog} (TYPE UNITY_CATALOG, DEFAULT_SCHEMA '{schema}')"
    )
    return connection


def main() -> None:
    """Serve until the input ends."""
    client = Client(*sys.argv[1:])
    for line in sys.stdin:
        said: dict[str, Any]
        try:
            match line.split():
                case ["append", number]:
                    client.append(int(number))
                    said = {"done": None}
                case ["rows"]:
                    said = {"done": client.rows()}
                case _:
                    said = {"error": f"no command: {line}"}
        except Exception as exc:
            said = {"error": f"{type(exc).__name__}: {exc}"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
