"""Version checksums, `N.crc`: a summary of version N beside its commit.

It shows whether two clients agree on what the log says (PROTOCOL.md, "Version Checksum File"). It
is never needed: if it is missing, torn or wrong, the state is still what the log gives.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core import keys
from lakelog.core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from lakelog.core.compute import pc, total
from lakelog.core.errors import CorruptLogError
from lakelog.core.features.terms import TableTerms
from lakelog.core.log.file_names import checksum_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lakelog.core.conf import DeltaConf
    from lakelog.core.state.replay import State
    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")

# Delta leaves longer lists out, so that the file stays small.
_MOST_TRANSACTIONS = 100
_MOST_DOMAINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """The content of a checksum file; `None` for what it leaves out."""

    table_size_bytes: int
    num_files: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txn_id: str | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None
    in_commit_timestamp: int | None = None
    transactions: tuple[SetTransaction, ...] | None = None
    domains: tuple[DomainMetadata, ...] | None = None

    def to_json(self) -> str:
        """The content of the file, in Delta's order of fields."""
        value = {
            "txnId": self.txn_id,
            "tableSizeBytes": self.table_size_bytes,
            "numFiles": self.num_files,
            "numDeletedRecordsOpt": self.num_deleted_records,
            "numDeletionVectorsOpt": self.num_deletion_vectors,
            "numMetadata": 1,
            "numProtocol": 1,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": _values(self.transactions),
            "domainMetadata": _values(self.domains),
            "metadata": self.metadata and self.metadata.to_json_value(),
            "protocol": self.protocol and self.protocol.to_json_value(),
        }
        return orjson.dumps({k: v for k, v in value.items() if v is not None}).decode()

    @classmethod
    def from_json(cls, data: bytes) -> VersionChecksum:
        """Parse the content of a file.

        Raises:
            ValueError: it is not a checksum.
        """
        value = orjson.loads(data)
        if not isinstance(value, dict):
            raise ValueError("it is not a JSON object")
        try:
            transactions, domains = value.get("setTransactions"), value.get("domainMetadata")
            protocol, metadata = value.get("protocol"), value.get("metadata")
            return cls(
                table_size_bytes=_number(value["tableSizeBytes"]),
                num_files=_number(value["numFiles"]),
                protocol=protocol and Protocol.from_json_value(protocol),
                metadata=metadata and Metadata.from_json_value(metadata),
                txn_id=None if value.get("txnId") is None else str(value["txnId"]),
                num_deleted_records=_number_if_any(value, "numDeletedRecordsOpt"),
                num_deletion_vectors=_number_if_any(value, "numDeletionVectorsOpt"),
                in_commit_timestamp=_number_if_any(value, "inCommitTimestampOpt"),
                transactions=None
                if transactions is None
                else tuple(map(SetTransaction.from_json_value, transactions)),
                domains=None
                if domains is None
                else tuple(map(DomainMetadata.from_json_value, domains)),
            )
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"it is not a version checksum ({exc!r})") from exc


def read_checksum(store: LogStore, table: str, version: int) -> VersionChecksum | None:
    """Read a checksum; `None`, with a warning in the log, where it can't be used."""
    path = checksum_path(table, version)
    try:
        return VersionChecksum.from_json(store.read_bytes(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        _log.warning("ignoring the version checksum %s: %s", path, exc)
        return None


def checksum_of(
    state: State, txn_id: str | None, terms: TableTerms | None = None
) -> VersionChecksum:
    """The checksum of a state, by counting its live files; `terms` are those of the state."""
    terms = terms or TableTerms(state.metadata, state.protocol)
    few = state.files.few_live()
    counted = _count(state.files.live) if few is None else _count_few(few)
    if has_vectors(state.protocol):
        vectors = _count_vectors(state.files.live) if few is None else _count_few_vectors(few)
        counted = replace(counted, num_deletion_vectors=vectors[0], num_deleted_records=vectors[1])
    return completed_checksum(counted, state, terms, txn_id)


def _count(files: pa.Table) -> VersionChecksum:
    return VersionChecksum(table_size_bytes=total(files["size"]), num_files=files.num_rows)


def _count_few(adds: list[dict[str, Any]]) -> VersionChecksum:
    # Some clients write 1.0; here and below.
    sizes = [int(each["size"]) for each in adds]
    return VersionChecksum(table_size_bytes=sum(sizes), num_files=len(sizes))


def _count_vectors(files: pa.Table) -> tuple[int, int]:
    """How many files have a deletion vector, and how many rows these hide."""
    found = files["deletion_vector"].combine_chunks()
    hidden = int(pc.sum(pc.struct_field(found, "cardinality")).as_py() or 0)
    return len(found) - found.null_count, hidden


def _count_few_vectors(adds: list[dict[str, Any]]) -> tuple[int, int]:
    found = [vector for each in adds if (vector := each.get("deletionVector")) is not None]
    return len(found), sum(int(vector["cardinality"]) for vector in found)


def has_vectors(protocol: Protocol) -> bool:
    """Whether the files of a table may have deletion vectors, so that a checksum counts them."""
    return "deletionVectors" in (protocol.reader_features or ())


def completed_checksum(
    counted: VersionChecksum, state: State, terms: TableTerms, txn_id: str | None
) -> VersionChecksum:
    """Numbers of files, with all that a state says besides its files."""
    transactions: tuple[SetTransaction, ...] | None = None
    if not terms.expires_transactions and len(state.transactions) <= _MOST_TRANSACTIONS:
        transactions = tuple(state.transactions.values())
    domains = tuple(state.domains.values()) if len(state.domains) <= _MOST_DOMAINS else None
    time = state.info.in_commit_timestamp if state.info is not None else None
    return VersionChecksum(
        table_size_bytes=counted.table_size_bytes,
        num_files=counted.num_files,
        num_deleted_records=counted.num_deleted_records,
        num_deletion_vectors=counted.num_deletion_vectors,
        protocol=state.protocol,
        metadata=state.metadata,
        txn_id=txn_id,
        in_commit_timestamp=time if terms.in_commit_timestamps else None,
        transactions=transactions,
        domains=domains,
    )


def check_state(store: LogStore, table: str, state: State, conf: DeltaConf) -> None:
    """Compare a state, whose files are loaded, with the checksum of its version.

    Does nothing where the listing showed none. Differences are logged as an error, and the state
    stays what the log says.

    Raises:
        CorruptLogError: they differ, and `spark.databricks.delta.checksum.mismatch.fatal` is set.
    """
    if state.segment.checksum is None or state.segment.version != state.version:
        return
    recorded = read_checksum(store, table, state.version)
    if recorded is None:
        return
    found = list(differences(recorded, checksum_of(state, None)))
    if not found:
        return
    path = state.segment.checksum.path
    text = (
        f"{table} at version {state.version} does not match its checksum {path}: "
        f"{'; '.join(found)}. Either the log was changed since, or a writer computed the checksum "
        "wrongly. Compare with a backup; if the log is right, delete the checksum."
    )
    # Delta fails here by default. A checksum that a writer got wrong would make the table
    # unreadable then, though all of it is there.
    if conf.read(keys.CHECKSUM_FATAL):
        raise CorruptLogError(text, table=table, path=path, version=state.version)
    _log.error("%s", text)


def differences(recorded: VersionChecksum, counted: VersionChecksum) -> Iterator[str]:
    """What two checksums of a version say differently, as text."""
    for name in (
        "num_files",
        "table_size_bytes",
        "num_deleted_records",
        "num_deletion_vectors",
        "in_commit_timestamp",
    ):
        theirs, ours = getattr(recorded, name), getattr(counted, name)
        if theirs is not None and ours is not None and theirs != ours:
            yield f"{name.replace('_', ' ')} is {ours}, but the checksum has {theirs}"
    if recorded.protocol is not None and _protocol(recorded.protocol) != _protocol(
        counted.protocol
    ):
        yield "the protocol differs"
    if recorded.metadata is not None and _metadata(recorded.metadata) != _metadata(
        counted.metadata
    ):
        yield "the metadata differs"
    if recorded.transactions is not None and counted.transactions is not None:
        theirs = {txn.app_id: txn.version for txn in recorded.transactions}
        if theirs != {txn.app_id: txn.version for txn in counted.transactions}:
            yield "the application transactions differ"
    if recorded.domains is not None and counted.domains is not None:
        theirs = {d.domain: d.configuration for d in recorded.domains if not d.removed}
        if theirs != {domain.domain: domain.configuration for domain in counted.domains}:
            yield "the domain metadata differs"


def _protocol(protocol: Protocol | None) -> tuple[Any, ...] | None:
    if protocol is None:
        return None
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )


def _metadata(metadata: Metadata | None) -> tuple[Any, ...] | None:
    if metadata is None:
        return None
    return (
        metadata.id,
        metadata.schema_string,
        tuple(metadata.partition_columns),
        dict(metadata.configuration),
    )


def _values(actions: tuple[SetTransaction | DomainMetadata, ...] | None) -> list[Any] | None:
    return None if actions is None else [action.to_json_value() for action in actions]


def _number_if_any(value: dict[str, Any], key: str) -> int | None:
    return None if value.get(key) is None else _number(value[key])


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value
