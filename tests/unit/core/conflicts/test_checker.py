"""The matrix of what may go by and what may not, one case a line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.actions.file_table import from_add_files
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.conf import DeltaConf
from lakelog.core.conflicts.checker import PendingCommit, check_conflicts
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.conflicts.winner import WinningCommit
from lakelog.core.data.partition_keys import partition_keys
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
    UnsupportedFeatureError,
)
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.features.identity_columns import with_marks
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.schema import StructType
from support.tables import add_file, schema_json

S = IsolationLevel.SERIALIZABLE
WS = IsolationLevel.WRITE_SERIALIZABLE
SI = IsolationLevel.SNAPSHOT_ISOLATION

SCHEMA = schema_json(id="long", day="date", country="string")
METADATA = Metadata(id="t", schema_string=SCHEMA, partition_columns=["day", "country"])
PROTOCOL = Protocol(
    min_reader_version=1, min_writer_version=7, writer_features=["appendOnly", "domainMetadata"]
)
ALL = StructType.from_json(SCHEMA)
PARTITIONS = StructType(ALL.fields[1:])


def reads(
    *predicates: str | None,
    files: list[AddFile] | None = None,
    whole: bool = False,
    apps: tuple[str, ...] = (),
) -> ReadSet:
    out = ReadSet()
    for text in predicates:
        out.add_predicate(normalize_filter(text, ALL))
    if files:
        out.add_files(from_add_files(files))
    if whole:
        out.whole_table = True
        out.add_predicate(None)
    out.app_ids.update(apps)
    return out


def pending(read: ReadSet | None = None, **changes: Any) -> PendingCommit:
    read = read or ReadSet()
    base = PendingCommit(
        table="/t",
        read_version=4,
        partition_schema=PARTITIONS,
        metadata=METADATA,
        protocol=PROTOCOL,
        reads=read,
        isolation=S,
        is_blind_append=False,
        changes_metadata=False,
        changes_protocol=False,
        removed_paths={},
        domains=frozenset(),
    )
    return replace(base, **changes)


def joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def won(
    *actions: Action,
    blind: bool | None = False,
    version: int = 5,
    operation: str = "WRITE",
    tags: dict[str, str] | None = None,
) -> WinningCommit:
    info = CommitInfo(
        timestamp=0, operation=operation, is_blind_append=blind, txn_id="theirs", tags=tags
    )
    lines = [action.to_json() for action in (info, *actions)]
    return WinningCommit(parse_commit(joined(lines), version, f"/t/_delta_log/{version}.json"))


def here(path: str = "new", *, data_change: bool = True) -> AddFile:
    return add_file(path, data_change=data_change, day="2024-01-01", country="DE")


def elsewhere(path: str = "far") -> AddFile:
    return add_file(path, day="2024-02-01", country="DE")


def outcome(current: PendingCommit, winner: WinningCommit) -> str:
    try:
        check_conflicts(current, winner)
    except (DeltaConcurrentModificationException, UnsupportedFeatureError) as exc:
        return type(exc).__name__
    return "-"


APPEND = "ConcurrentAppendException"


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (None, APPEND),
        ("day = '2024-01-01'", APPEND),
        ("day = '2024-01-02'", "-"),
        ("country = 'DE' AND day < '2024-01-02'", APPEND),
        ("country IN ('FR', 'IT')", "-"),
        ("country IS NULL", "-"),
        # A condition on data never narrows.
        ("id > 10", APPEND),
        ("day = '2024-01-01' AND id > 10", APPEND),
        ("day = '2024-01-02' AND id > 10", "-"),
        ("day = '2024-01-02' OR id > 10", APPEND),
        # Nor does what we can't evaluate.
        ("country RLIKE '(?i)FR'", APPEND),
        ("country RLIKE '(?i)FR' AND day = '2024-01-02'", "-"),
        # What we can, does.
        ("upper(country) = 'FR'", "-"),
        ("lower(country) = 'de'", APPEND),
    ],
)
def test_files_added_to_a_partition_that_was_read_conflict(
    predicate: str | None, expected: str
) -> None:
    assert outcome(pending(reads(predicate)), won(here())) == expected


@pytest.mark.parametrize("level", [S, WS, SI])
@pytest.mark.parametrize("blind", [True, False, None])
@pytest.mark.parametrize("changes_metadata", [True, False])
def test_the_level_decides_about_blind_appends(
    level: IsolationLevel, blind: bool | None, changes_metadata: bool
) -> None:
    current = pending(reads(None), isolation=level, changes_metadata=changes_metadata)
    ignored = level is SI or (level is WS and blind is True and not changes_metadata)
    assert outcome(current, won(here(), blind=blind)) == ("-" if ignored else APPEND)


def test_files_that_only_moved_rows_count_as_added() -> None:
    assert outcome(pending(reads(None)), won(here(data_change=False))) == APPEND


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (pending(is_blind_append=True), "-"),
        (pending(), "-"),  # partitioned, nothing read: only removes
        (pending(partition_schema=StructType()), APPEND),
        (pending(partition_schema=StructType(), is_blind_append=True), "-"),
        (pending(reads(whole=True)), APPEND),
        (pending(reads("day = '2024-03-01'", "day = '2024-01-01'")), APPEND),
    ],
)
def test_what_was_read_decides_about_added_files(current: PendingCommit, expected: str) -> None:
    assert outcome(current, won(here())) == expected


def test_a_dynamic_overwrite_conflicts_only_in_its_own_partitions() -> None:
    read = ReadSet()
    read.add_partitions(partition_keys([here()], PARTITIONS))
    assert outcome(pending(read), won(elsewhere())) == "-"
    assert outcome(pending(read), won(elsewhere(), here())) == APPEND


@pytest.mark.parametrize("level", [S, WS, SI])
def test_a_removed_file_that_was_read_conflicts_at_every_level(level: IsolationLevel) -> None:
    current = pending(reads("day = '2024-01-01'", files=[here("a"), here("b")]), isolation=level)
    assert outcome(current, won(RemoveFile(path="b"))) == "ConcurrentDeleteReadException"
    assert outcome(current, won(RemoveFile(path="c"))) == "-"


def test_any_removed_file_conflicts_with_a_read_of_the_whole_table() -> None:
    current = pending(reads(whole=True), isolation=SI)
    assert outcome(current, won(RemoveFile(path="x"))) == "ConcurrentDeleteReadException"


@pytest.mark.parametrize("level", [S, WS, SI])
def test_a_file_removed_by_both_conflicts_at_every_level(level: IsolationLevel) -> None:
    current = pending(removed_paths={"a": {"day": "2024-01-01", "country": None}}, isolation=level)
    winner = won(RemoveFile(path="a"))
    with pytest.raises(ConcurrentDeleteDeleteException, match="country=null"):
        check_conflicts(current, winner)
    assert outcome(current, won(RemoveFile(path="b"))) == "-"


def test_a_file_with_a_new_deletion_vector_counts_as_removed() -> None:
    current = pending(reads(files=[here("a")]), isolation=SI)
    winner = won(RemoveFile(path="a"), here("a"))
    assert outcome(current, winner) == "ConcurrentDeleteReadException"


def test_a_file_added_by_both_under_one_path_is_not_looked_at() -> None:
    assert outcome(pending(is_blind_append=True), won(here("same"))) == "-"


@pytest.mark.parametrize(
    ("apps", "expected"),
    [(("etl",), "ConcurrentTransactionException"), (("other",), "-"), ((), "-")],
)
def test_progress_of_an_application_conflicts_where_it_was_read(
    apps: tuple[str, ...], expected: str
) -> None:
    winner = won(SetTransaction(app_id="etl", version=7))
    assert outcome(pending(reads(apps=apps), is_blind_append=True), winner) == expected


def domain(name: str) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration="{}", removed=False)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (frozenset({"a"}), "ConcurrentTransactionException"),
        (frozenset({"b"}), "-"),
        (frozenset(), "-"),
    ],
)
def test_one_domain_set_by_both_conflicts(ours: frozenset[str], expected: str) -> None:
    assert outcome(pending(domains=ours), won(domain("a"))) == expected


def test_row_tracking_s_own_domain_never_conflicts() -> None:
    current = pending(domains=frozenset({"delta.rowTracking"}))
    assert outcome(current, won(domain("delta.rowTracking"))) == "-"


BACKFILL, UNBACKFILL = "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"


@pytest.mark.parametrize("name", [BACKFILL, UNBACKFILL])
def test_files_that_get_row_ids_are_not_taken_for_new_ones(name: str) -> None:
    again = won(here(data_change=False), operation=name)
    assert outcome(pending(reads(None, whole=True)), again) == "-"
    assert outcome(pending(reads(None), operation=name), won(here())) == "-"
    assert outcome(pending(reads(None)), won(here(data_change=False))) == APPEND


def test_a_backfill_leaves_out_files_that_are_gone() -> None:
    gone = won(RemoveFile(path="a"))
    read = reads(files=[here("a")])
    assert outcome(pending(read, operation=BACKFILL), gone) == "-"
    assert outcome(pending(read), gone) == "ConcurrentDeleteReadException"


KNOWN = ["appendOnly", "domainMetadata"]


@pytest.mark.parametrize(
    ("added", "strict", "expected"),
    [
        ("checkConstraints", True, "ProtocolChangedException"),
        ("checkConstraints", False, "-"),
        ("inCommitTimestamp", True, "-"),
    ],
)
def test_a_feature_that_writers_must_have_known_of_conflicts_where_the_session_asks(
    added: str, strict: bool, expected: str
) -> None:
    key = "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled"
    rules = CommitSettings(DeltaConf.from_mapping({key: str(strict)})).rules
    winner = won(replace(PROTOCOL, writer_features=[*KNOWN, added]))
    assert outcome(pending(is_blind_append=True, rules=rules), winner) == expected


@pytest.mark.parametrize(
    ("resolves", "tags", "expected"),
    [
        ("true", None, "-"),
        ("false", None, "MetadataChangedException"),
        ("false", {"rowTrackingEnablementOnly": "true"}, "-"),
    ],
)
def test_the_session_may_ask_that_no_enablement_is_gone_by(
    resolves: str, tags: dict[str, str] | None, expected: str
) -> None:
    conf = {"spark.databricks.delta.featureEnablement.conflictResolution.enabled": resolves}
    tracked = replace(PROTOCOL, writer_features=[*KNOWN, "rowTracking"])
    enabled = replace(METADATA, configuration={"delta.enableRowTracking": "true"})
    current = pending(protocol=tracked, rules=CommitSettings(DeltaConf.from_mapping(conf)).rules)
    assert outcome(current, won(enabled, tags=tags)) == expected


RETYPED = replace(METADATA, schema_string=schema_json(id="long", day="date", country="long"))
COUNTED = with_marks(METADATA, {"id": 7})


def test_identity_columns_that_counted_on_conflict_only_with_a_change_of_the_metadata() -> None:
    winner = won(COUNTED, tags={"delta.identity.schemaUpdate": "true"})
    assert check_conflicts(pending(), winner).metadata == COUNTED
    assert outcome(pending(changes_metadata=True), winner) == "MetadataChangedException"
    untrue = won(COUNTED, tags={"delta.identity.schemaUpdate": "false"})
    assert outcome(pending(), untrue) == "MetadataChangedException"
    more = won(RETYPED, tags={"delta.identity.schemaUpdate": "true"})
    assert outcome(pending(), more) == "MetadataChangedException"


GROWN = replace(PROTOCOL, writer_features=["appendOnly", "domainMetadata", "invariants"])


def test_a_protocol_that_grew_is_adopted() -> None:
    assert check_conflicts(pending(), won(GROWN)).protocol == GROWN


def test_a_protocol_changed_by_both_conflicts() -> None:
    assert outcome(pending(changes_protocol=True), won(GROWN)) == "ProtocolChangedException"


def test_a_feature_that_went_away_conflicts() -> None:
    shrunk = replace(PROTOCOL, writer_features=["appendOnly"])
    with pytest.raises(ProtocolChangedException, match="domainMetadata"):
        check_conflicts(pending(is_blind_append=True), won(shrunk))


def test_a_protocol_that_we_cannot_write_stops_the_commit() -> None:
    strange = replace(
        PROTOCOL, writer_features=[*(PROTOCOL.writer_features or ()), "fromTheFuture"]
    )
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        check_conflicts(pending(is_blind_append=True), won(strange))


def test_two_creators_of_a_table_conflict_with_a_word_about_it() -> None:
    current = pending(read_version=-1, changes_protocol=True, changes_metadata=True)
    with pytest.raises(
        ProtocolChangedException, match="created the table at the same moment"
    ) as caught:
        check_conflicts(current, won(PROTOCOL, METADATA, version=0))
    assert caught.value.winning_version == 0


@pytest.mark.parametrize(
    "theirs",
    [
        replace(METADATA, schema_string=schema_json(id="long")),
        replace(METADATA, partition_columns=["day"]),
        replace(METADATA, configuration={"delta.appendOnly": "true"}),
        replace(METADATA, configuration={"owner": "me"}),
        replace(METADATA, description="new"),
        replace(METADATA, id="another"),
    ],
)
def test_metadata_that_changed_conflicts_even_with_a_blind_append(theirs: Metadata) -> None:
    assert outcome(pending(is_blind_append=True), won(theirs)) == "MetadataChangedException"


def test_metadata_changed_by_both_conflicts_even_if_it_stays_the_same() -> None:
    assert outcome(pending(changes_metadata=True), won(METADATA)) == "MetadataChangedException"


def test_metadata_written_again_as_it_was_does_not_conflict() -> None:
    assert outcome(pending(), won(METADATA)) == "-"


def test_a_property_that_went_away_conflicts() -> None:
    ours = replace(METADATA, configuration={"delta.checkpointInterval": "5"})
    assert outcome(pending(metadata=ours), won(METADATA)) == "MetadataChangedException"


def test_the_first_rule_that_fails_names_the_conflict() -> None:
    changed = replace(METADATA, configuration={"a": "b"})
    current = pending(
        reads(None, files=[here("a")], apps=("etl",)),
        removed_paths={"a": None},
        domains=frozenset({"d"}),
    )
    actions: list[Action] = [RemoveFile(path="a"), here(), SetTransaction(app_id="etl", version=1)]
    seen = []
    for extra in ([changed], [domain("d")], [], None):
        if extra is None:
            seen += [outcome(current, won(*actions[:2])), outcome(current, won(actions[0]))]
        else:
            seen.append(outcome(current, won(*extra, *actions)))
    assert seen == [
        "MetadataChangedException",
        "ConcurrentTransactionException",
        "ConcurrentTransactionException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
    ]


def test_the_message_says_who_won_when_where_and_what_to_do() -> None:
    current = pending(reads("day = '2024-01-01'"))
    with pytest.raises(ConcurrentAppendException) as caught:
        check_conflicts(current, won(here()))
    text = str(caught.value)
    for part in (
        "[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] /t:",
        "[day=2024-01-01, country=DE]",
        "version 5 (WRITE at 1970-01-01T00:00:00.000+00:00)",
        "after this transaction read version 4",
        "Nothing of this transaction was committed",
        "separate the jobs by partition (day, country)",
    ):
        assert part in text
    assert caught.value.sub_condition == "WITH_PARTITION_HINT"
    assert caught.value.files == ["new"]
    assert caught.value.partition_values == {"day": "2024-01-01", "country": "DE"}
    assert caught.value.commit_info["txnId"] == "theirs"


def test_a_commit_without_provenance_is_taken_for_one_that_read() -> None:
    lines = [here().to_json()]
    winner = WinningCommit(parse_commit(joined(lines), 5, "/t/5.json"))
    assert outcome(pending(reads(None), isolation=WS), winner) == APPEND
    assert winner.operation == "an unnamed operation"


def test_a_large_winner_is_searched_as_columns() -> None:
    lines = [RemoveFile(path=f"gone-{n}", deletion_timestamp=1).to_json() for n in range(1500)]
    winner = WinningCommit(parse_commit(joined(lines), 5, "/t/5.json"))
    assert isinstance(winner.commit.removes, pa.Table)
    current = pending(reads(files=[here("gone-1400")]))
    with pytest.raises(ConcurrentDeleteReadException, match="gone-1400"):
        check_conflicts(current, winner)


@pytest.mark.parametrize(
    "error",
    [ConcurrentTransactionException, MetadataChangedException, ConcurrentAppendException],
)
def test_conflicts_are_one_family(error: type[Exception]) -> None:
    assert issubclass(error, DeltaConcurrentModificationException)
