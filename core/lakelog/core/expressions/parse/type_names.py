"""The SQL names of column types, as sqlglot spells them."""

from __future__ import annotations

from typing import Final

SQL_TYPES: Final = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "TEXT": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "VARIANT": "variant",
}
"""Type of sqlglot -> name of ours. Types with parameters are not among them."""
