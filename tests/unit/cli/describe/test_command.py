"""`lakelog describe`: what a table is, the tables that we can't read among them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.cli.describe.description import feature_support
from lakelog.cli.describe.schema_tree import schema_tree
from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import Metadata, SetTransaction
from lakelog.core.features.registry import FEATURES, Support
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from lakelog.logstores import Capabilities, MemoryLogStore, Scope
from support.aged_tables import age
from support.raw_log import RawLog, add, metadata
from support.tables import add_file, new_table
from support.terminal import lakelog, lakelog_json

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = StructType(
    (
        StructField("id", LONG, nullable=False, metadata={"comment": "the\nkey"}),
        StructField("day", TEXT),
        StructField(
            "items",
            ArrayType(
                StructType((StructField("sku", TEXT), StructField("tags", MapType(TEXT, LONG)))),
                contains_null=False,
            ),
        ),
        StructField("flags", ArrayType(LONG, contains_null=False)),
    )
)


class Reckless(MemoryLogStore):
    """Excludes nobody."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            exclusive_create=Scope.NONE,
            partial_write_visible=False,
            atomic_overwrite=True,
            consistent_listing=True,
            ordered_listing=True,
            durable=False,
        )


@pytest.fixture
def table(tmp_path: Path) -> str:
    log = DeltaLog.for_table(str(tmp_path / "t"))
    txn = log.start_transaction()
    txn.update_metadata(
        Metadata(
            id="7",
            name="flights",
            description="all of\nthem",
            schema_string=SCHEMA.to_json(),
            partition_columns=["day"],
            configuration={"delta.checkpointInterval": "2", "delta.appendOnly": "true", "own": "x"},
        )
    )
    txn.commit([], Operation.create_table(["day"]))
    for version in (1, 2, 3):
        log.start_transaction().commit(
            [SetTransaction(app_id="stream", version=version), add_file(f"f{version}", day="1")],
            Operation.write("Append"),
        )
    return log.table


def test_the_json_describes_the_newest_version(table: str) -> None:
    found = lakelog_json("describe", table)
    assert (found["table"], found["name"], found["version"]) == (table, "flights", 3)
    assert (found["files"], found["bytes"], found["rows"]) == (3, 3, 3)
    assert found["files_without_row_count"] == 0
    assert found["partition_columns"] == ["day"]
    assert found["schema"] == SCHEMA.json_value()
    assert found["earliest_version"] == 0
    assert found["properties"]["delta.checkpointInterval"] == {"value": "2", "default": "10"}
    assert found["properties"]["own"] == {"value": "x", "default": None}
    assert found["last_checkpoint"]["version"] == 2
    assert found["last_checkpoint"]["commits_since"] == 1
    assert found["last_checkpoint"]["files"] == [f"{2:020d}.checkpoint.parquet"]
    [stream] = found["transactions"]
    assert (stream["app_id"], stream["version"]) == ("stream", 3)
    assert found["store"]["class"] == "lakelog.logstores.LocalLogStore"
    assert found["store"]["commit_lock"] == "none"


def test_the_text_tells_the_same(table: str) -> None:
    outcome = lakelog("describe", table)
    assert (outcome.code, outcome.err) == (0, "")
    said = [" ".join(line.split()) for line in outcome.lines]
    assert said[0] == f"{table}, version 3"
    for line in (
        "name flights",
        "description all of them",
        "files 3",
        "partitioned by day",
        "id bigint not null the key",
        "day string partition column 1",
        "delta.checkpointInterval 2 10",
        "own x",
        "stream 3",
        "store lakelog.logstores.LocalLogStore",
    ):
        assert any(each.startswith(line) for each in said), line
    assert any(each.startswith("last checkpoint version 2, ") for each in said)
    assert any(each.endswith(", 1 commit since") for each in said)


def test_an_older_version_by_number_and_by_time(table: str) -> None:
    commits = sorted(Path(table).glob("_delta_log/*.json"))
    for hours, commit in enumerate(reversed(commits)):
        age(commit, hours)  # a quick machine makes two in one millisecond
    second = lakelog_json("describe", table, "--version", "1")
    assert (second["version"], second["files"], second["last_checkpoint"]) == (1, 1, None)
    by_time = lakelog_json("describe", table, "--timestamp", second["timestamp"])
    assert by_time["version"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--version", "9"), "version 9 of"),
        (("--timestamp", "2001-01-01"), "is before the first commit"),
        (("--timestamp", "2999-01-01"), "is after the last commit"),
        (("--timestamp", "yesterday"), "'yesterday' is not a time"),
        (("--version", "1", "--timestamp", "2999-01-01"), "not both"),
    ],
)
def test_what_does_not_exist_is_reported_with_what_does(
    table: str, options: tuple[str, ...], said: str
) -> None:
    outcome = lakelog("describe", table, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_version_that_cleanup_took_is_reported_with_those_that_are_left(table: str) -> None:
    for version in (0, 1):
        RawLog.path(_raw(table), version).unlink()
    outcome = lakelog("describe", table, "--version", "1")
    assert outcome.code == 2
    assert "versions 2 to 3 can be read" in outcome.err
    assert lakelog_json("describe", table)["earliest_version"] == 2


def _raw(table: str) -> RawLog:
    from pathlib import Path

    return RawLog(Path(table))


def test_a_table_that_we_refuse_is_described_with_the_reason(tmp_path: Path) -> None:
    names = ["fromTheFuture", "timestampNtz"]
    strange = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": names,
            "writerFeatures": [*names, "appendOnly"],
        }
    }
    log = RawLog(tmp_path).commit(
        strange, metadata(), add("a", stats='{"numRecords": 4}'), add("b")
    )
    found = lakelog_json("describe", log.table)
    protocol = found["protocol"]
    by_name = {each["name"]: each for each in protocol["features"]}
    assert (by_name["fromTheFuture"]["read"], by_name["fromTheFuture"]["write"]) == (
        "refused",
        "refused",
    )
    assert by_name["timestampNtz"]["read"] == "yes"
    assert by_name["appendOnly"]["read"] == "not needed"
    assert "fromTheFuture" in protocol["cannot_read"]
    assert "fromTheFuture" in protocol["cannot_write"]
    assert (found["rows"], found["files_without_row_count"]) == (4, 1)
    text = lakelog("describe", log.table).out
    assert "4 and those of 1 file without statistics" in text
    assert protocol["cannot_read"] in text


@pytest.mark.parametrize("name", sorted(FEATURES))
@pytest.mark.parametrize("write", [False, True])
def test_what_is_said_of_a_feature_is_what_the_table_of_features_says(
    name: str, write: bool
) -> None:
    support = FEATURES[name].write if write else FEATURES[name].read
    idle = feature_support(name, frozenset(), write=write)
    used = feature_support(name, frozenset({name}), write=write)
    expected = {
        None: ("not needed", "not needed"),
        Support.YES: ("yes", "yes"),
        Support.INACTIVE: ("yes, while it is not in use", "refused"),
        Support.NO: ("refused", "refused"),
    }
    assert (idle, used) == expected[support]


def test_the_schema_is_a_tree() -> None:
    assert [tuple(row) for row in schema_tree(SCHEMA, ["day"])] == [
        ("id", "bigint", "not null", "the key"),
        ("day", "string", "", "partition column 1"),
        ("items", "array<struct>", "", ""),
        ("└─ element", "struct", "not null", ""),
        ("   ├─ sku", "string", "", ""),
        ("   └─ tags", "map<string,bigint>", "", ""),
        ("flags", "array<bigint not null>", "", ""),
    ]


def test_defaults_and_generated_columns_are_marked() -> None:
    fields = (
        StructField("a", LONG, metadata={"CURRENT_DEFAULT": "7"}),
        StructField("b", LONG, metadata={"delta.generationExpression": "a + 1"}),
        StructField("c", LONG, metadata={"delta.identity.start": 1}),
        StructField("m", MapType(LONG, StructType((StructField("x", LONG),)), False)),
    )
    assert [(row.name, row.remark) for row in schema_tree(StructType(fields))[:3]] == [
        ("a", "default 7"),
        ("b", "generated as a + 1"),
        ("c", "identity"),
    ]
    assert [tuple(row)[:3] for row in schema_tree(StructType(fields))[3:]] == [
        ("m", "map<bigint,struct>", ""),
        ("├─ key", "bigint", "not null"),
        ("└─ value", "struct", "not null"),
        ("   └─ x", "bigint", ""),
    ]


def test_a_store_that_refuses_commits_is_reported_and_described() -> None:
    MemoryLogStore.forget("describe")
    conf = {"spark.delta.logStore.memory.impl": f"{__name__}.Reckless"}
    new_table("memory://describe/t", conf={**conf, "spark.lakelog.unsafe.singleWriter": "true"})
    store = lakelog_json("describe", "memory://describe/t", conf=conf)["store"]
    assert store["class"] == f"{__name__}.Reckless"
    assert store["commit_lock"] == "refused"
    assert "spark.lakelog.unsafe.singleWriter" in store["commit_lock_reason"]


def test_no_secret_of_the_conf_is_printed(tmp_path: Path) -> None:
    log = new_table(str(tmp_path / "t"), properties={"own.note": "key hunter2hunter2"})
    conf = {"spark.hadoop.fs.s3a.secret.key": "hunter2hunter2"}
    for option in ((), ("--json",)):
        out = lakelog("describe", log.table, *option, conf=conf).out
        assert "hunter2hunter2" not in out
        assert "******" in out


def test_an_empty_uri_is_wrong_usage() -> None:
    outcome = lakelog("describe", "")
    assert outcome.code == 2
    assert "can't be empty" in outcome.err


def test_rows_that_deletion_vectors_take_out_do_not_count(tmp_path: Path) -> None:
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "x",
        "sizeInBytes": 4,
        "cardinality": 3,
    }
    log = RawLog(tmp_path).create(add("a", stats='{"numRecords": 10}', deletionVector=vector))
    assert lakelog_json("describe", log.table)["rows"] == 7


def test_a_table_of_real_files_is_counted(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"id": [1, 2, 3]}), mode="append")
    found = lakelog_json("describe", uri)
    [file] = DeltaLog.for_table(uri).snapshot.files()
    assert (found["files"], found["rows"], found["bytes"]) == (1, 3, file.size)
