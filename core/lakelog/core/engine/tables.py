"""Tables: how they are named, made, altered and found as they were.

`lakelog.core` opens and makes a table (`DeltaLog`, `create_table`, `clone`), and
`lakelog.core.alter` changes its columns and properties. Here is what an engine needs beside that,
to do the same within a commit of its own (`define_table`, on a `log_to_make`), by the words of its
own SQL (`ColumnChange`, `Addition`), or for rows that it checks itself (`add_checked_constraint`).
`travelling_conf` leaves the secrets of other storages out of what is sent to executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.alter.check_constraints import add_checked_constraint, new_violation
    from lakelog.core.alter.clustered_by import shown_columns
    from lakelog.core.alter.columns import ColumnChange, change_columns
    from lakelog.core.alter.new_columns import Addition, add_columns_at
    from lakelog.core.alter.property_changes import KEPT_BY_THE_TABLE, planned_properties
    from lakelog.core.arguments import checked_progress
    from lakelog.core.catalogs.catalog_conf import CatalogConf
    from lakelog.core.catalogs.listing import listed_by, schemas_in, tables_in
    from lakelog.core.catalogs.names import TableName, known_catalogs, spelled_name, table_name
    from lakelog.core.catalogs.one_call import one_call
    from lakelog.core.catalogs.refusals import governed
    from lakelog.core.catalogs.renewed_files import ended_credentials
    from lakelog.core.conf import illegal_option, option, travelling_conf
    from lakelog.core.conf_file import parse_properties
    from lakelog.core.create.clone.clone_table import OF_ITS_LOG
    from lakelog.core.create.table import CreateMode, TableDefined, define_table
    from lakelog.core.delta_log import log_of, log_to_make
    from lakelog.core.input.given_types import schema_from
    from lakelog.core.log.commit_history import read_history
    from lakelog.core.metadata.column_mapping_changes import MAX_ID
    from lakelog.core.paths import (
        ENGINE_FOLDER,
        EngineFolder,
        data_path,
        encode_path,
        normalize_table_uri,
    )
    from lakelog.core.progress import GivenProgress
    from lakelog.core.state.version_at_time import parse_timestamp, version_at
    from lakelog.core.transaction.recording import record_commits
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "alter.clustered_by": "shown_columns",
            "alter.columns": "ColumnChange change_columns",
            "alter.check_constraints": "add_checked_constraint new_violation",
            "alter.new_columns": "Addition add_columns_at",
            "alter.property_changes": "KEPT_BY_THE_TABLE planned_properties",
            "arguments": "checked_progress",
            "catalogs.catalog_conf": "CatalogConf",
            "catalogs.listing": "listed_by schemas_in tables_in",
            "catalogs.names": "TableName known_catalogs spelled_name table_name",
            "catalogs.one_call": "one_call",
            "catalogs.refusals": "governed",
            "catalogs.renewed_files": "ended_credentials",
            "conf": "illegal_option option travelling_conf",
            "conf_file": "parse_properties",
            "create.clone.clone_table": "OF_ITS_LOG",
            "create.table": "CreateMode TableDefined define_table",
            "delta_log": "log_of log_to_make",
            "input.given_types": "schema_from",
            "log.commit_history": "read_history",
            "metadata.column_mapping_changes": "MAX_ID",
            "paths": ("ENGINE_FOLDER EngineFolder data_path encode_path normalize_table_uri"),
            "progress": "GivenProgress",
            "state.version_at_time": "parse_timestamp version_at",
            "transaction.recording": "record_commits",
        },
        below="lakelog.core",
    )
