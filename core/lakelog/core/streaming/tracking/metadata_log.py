"""The log of a stream's metadata, in the files that delta-spark's streams write.

A folder for each table and stream, a file for each change that the stream went past, numbered: a
line `v1`, and one of JSON.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyarrow.fs import FileSelector

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.paths import normalize_table_uri
from lakelog.core.schema import StructType
from lakelog.logstores import log_store_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Metadata, Protocol

_FORM: Final = "v1"
_NUMBER: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class TrackedMetadata:
    """What the table was like at the version that a stream has come to."""

    version: int
    table_id: str
    schema_string: str
    partition_columns: tuple[str, ...]
    source_path: str
    """Where Spark keeps what belongs to this source of the query."""
    configuration: Mapping[str, str] | None
    protocol: Mapping[str, Any] | None
    previous: int | None
    """The number of the entry with which a change of columns is compared; `None`: the one before.
    delta-spark says it where an entry takes several changes in one."""

    @classmethod
    def from_version(
        cls,
        version: int,
        metadata: Metadata,
        protocol: Protocol,
        source_path: str,
    ) -> TrackedMetadata:
        """The entry for a version's metadata and protocol."""
        return cls(
            version,
            metadata.id,
            metadata.schema_string,
            tuple(metadata.partition_columns),
            source_path,
            dict(metadata.configuration),
            protocol.to_json_value(),
            None,
        )

    @property
    def schema(self) -> StructType:
        """All columns, the partition columns among them."""
        return StructType.from_json(self.schema_string)

    def to_json(self) -> str:
        """As delta-spark writes it."""
        schema = self.schema
        by = [schema.get(name) for name in self.partition_columns]
        value = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": schema.to_json(),
            "partitionSchemaJson": StructType(tuple(each for each in by if each)).to_json(),
            "sourceMetadataPath": self.source_path,
            "tableConfigurations": self.configuration,
            "protocolJson": (
                None
                if self.protocol is None
                else json.dumps({"protocol": self.protocol}, separators=(",", ":"))
            ),
            "previousMetadataSeqNum": self.previous,
        }
        kept = {key: each for key, each in value.items() if each is not None}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TrackedMetadata:
        """Read an entry.

        Raises:
            ValueError: the text is not an entry.
        """
        try:
            value = json.loads(text)
            by = StructType.from_json(value["partitionSchemaJson"]).names
            protocol = value.get("protocolJson")
            return cls(
                int(value["deltaCommitVersion"]),
                str(value["tableId"]),
                str(value["dataSchemaJson"]),
                tuple(by),
                str(value["sourceMetadataPath"]),
                value.get("tableConfigurations"),
                None if protocol is None else json.loads(protocol)["protocol"],
                value.get("previousMetadataSeqNum"),
            )
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"no entry: {exc}") from exc


class TrackingLog:
    """The entries of one stream out of one table."""

    def __init__(
        self, location: str, table_id: str, tracking_id: str | None, conf: Mapping[str, str]
    ) -> None:
        """Nothing is read yet.

        Args:
            location: the option `schemaTrackingLocation`.
            table_id: the `id` of the table's metadata.
            tracking_id: tells two streams out of one table apart; `streamingSourceTrackingId`.
            conf: chooses the store.
        """
        name = f"_schema_log_{table_id}" + (f"_{tracking_id}" if tracking_id else "")
        self.location: str = normalize_table_uri(location)
        self.folder: str = posixpath.join(self.location, name)
        self._store = log_store_for(self.folder, conf)
        self._table_id = table_id

    def entries(self) -> dict[int, TrackedMetadata]:
        """Number -> entry, ascending.

        Raises:
            DeltaAnalysisError: a file that is not an entry, or is one of another table.
        """
        root = self._store.filesystem_path(self.folder)
        infos = self._store.filesystem.get_file_info(FileSelector(root, allow_not_found=True))
        numbers = sorted(int(each.base_name) for each in infos if _NUMBER.fullmatch(each.base_name))
        return {number: self._read(number) for number in numbers}

    def append(self, number: int, entry: TrackedMetadata) -> None:
        """Write the next entry.

        Raises:
            DeltaAnalysisError: another query has written it.
        """
        # By exclusive creation: of two queries that share the folder the second one notices, and
        # does not read on with columns that the first has chosen.
        self._store.create_folder(self.folder)
        try:
            self._store.write(self._path(number), [_FORM, entry.to_json()])
        except FileExistsError as exc:
            raise DeltaAnalysisError(
                "[DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT] Detected conflicting schema location "
                f"'{self.folder}' while streaming from the table {self._table_id}. Another stream "
                "may be reusing the same schema location, which is not allowed. Please provide a "
                "new unique `schemaTrackingLocation` path or `streamingSourceTrackingId` as a "
                "reader option for one of the streams from this table.",
                location=self.folder,
            ) from exc

    def _path(self, number: int) -> str:
        return posixpath.join(self.folder, str(number))

    def _read(self, number: int) -> TrackedMetadata:
        path = self._path(number)
        lines = [*self._store.read(path)]
        try:
            if len(lines) < 2 or lines[0] != _FORM:
                raise ValueError(f"it does not begin with {_FORM}")
            entry = TrackedMetadata.from_json(lines[1])
        except ValueError as exc:
            raise DeltaAnalysisError(
                "[DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED] Incomplete log file in the Delta "
                f"streaming source schema log at '{path}' ({exc}). The schema log may have been "
                "corrupted. Please pick a new schema location.",
                path=path,
            ) from exc
        if entry.table_id != self._table_id:
            raise DeltaAnalysisError(
                "[DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID] Detected incompatible "
                f"Delta table id when trying to read Delta stream. Persisted table id: "
                f"{entry.table_id}, Table id: {self._table_id}. The schema log might have been "
                "reused. Please pick a new schema location.",
                path=path,
            )
        return entry
