from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.actions.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA
from lakelog.core.actions.json_reader import read_file_actions
from lakelog.core.errors import CorruptCommitError
from lakelog.core.log import commit_file
from lakelog.core.log.budget import LogBudget
from lakelog.core.log.commit_file import parse_commit, read_commit
from lakelog.logstores import LocalLogStore
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove


def joined(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def parse(*actions):
    return parse_commit(joined(json.dumps(each) for each in actions), 7, "/t/7.json")


def test_every_kind_of_action_finds_its_place():
    commit = parse(
        {"commitInfo": {"operation": "WRITE", "txnId": "x"}},
        PROTOCOL,
        metadata(),
        {"txn": {"appId": "a", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        add("f"),
        remove("g"),
        {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"future": {"x": 1}},
        {},
    )
    assert commit.info is not None
    assert commit.info.txn_id == "x"
    assert commit.protocol is not None
    assert commit.protocol.min_writer_version == 2
    assert commit.metadata is not None
    assert commit.metadata.id == "table-1"
    assert commit.transactions["a"].version == 1
    assert commit.domains["d"].configuration == "{}"
    assert commit.added()["path"].to_pylist() == ["f"]
    assert commit.removed()["path"].to_pylist() == ["g"]


def test_unknown_fields_and_null_actions_are_ignored():
    commit = parse({"add": {**add("f")["add"], "new": {"x": 1}}, "remove": None})
    assert commit.added()["path"].to_pylist() == ["f"]


@pytest.mark.parametrize("count", [1, 300])
def test_whole_numbers_may_be_written_as_floats(count):
    times = {"modificationTime": 5.0, "size": 3.0}
    gone = {"deletionTimestamp": 7.0, "size": 4.0}
    commit = parse(
        {"txn": {"appId": "a", "version": 2.0}},
        *({"add": {**add(f"f{n}")["add"], **times}} for n in range(count)),
        *({"remove": {**remove(f"g{n}")["remove"], **gone}} for n in range(count)),
    )
    assert repr(commit.transactions["a"].version) == "2"
    added, removed = commit.added(), commit.removed()
    assert added["modification_time"].to_pylist() == [5] * count
    assert added["size"].to_pylist() == [3] * count
    assert removed["deletion_timestamp"].to_pylist() == [7] * count


def test_blank_lines_are_ignored():
    assert parse_commit(joined(["", json.dumps(PROTOCOL), "  "]), 0, "p").protocol is not None


def test_a_commit_of_unknown_actions_only_is_a_commit():
    assert parse({"future": {}}).adds == []


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", None, "it is empty"),
        ("\n\n", None, "it is empty"),
        ('{"commitInfo":{}}\n{"add":{"path":"x', 2, "is not JSON"),
        ("\0\0\0\0", 1, "is not JSON"),
        ('{"commitInfo":{}}\n[]', 2, "is not a JSON object"),
        ('{"commitInfo":{}}\n"x"', 2, "is not a JSON object"),
        ('{"add":{}}', 1, "malformed add"),
        ('{"add":5}', 1, "malformed add"),
        ('{"add":{"path":1,"size":1}}', 1, "malformed add"),
        ('{"add":{"path":"x","size":"1"}}', 1, "malformed add"),
        ('{"remove":{}}', 1, "malformed remove"),
        ('{"metaData":{}}', 1, "malformed metaData"),
        ('{"protocol":[]}', 1, "malformed protocol"),
        ('{"txn":{"appId":"x"}}', 1, "malformed txn"),
        ('{"commitInfo":{}}garbage', 1, "is not JSON"),
    ],
)
def test_a_damaged_commit_is_named_with_its_line(tmp_path, text, line, why):
    log = RawLog(tmp_path).write(text)
    with pytest.raises(CorruptCommitError, match=why) as caught:
        read_commit(LocalLogStore(), log.table, 0)
    assert caught.value.path == str(log.path(0))
    assert (caught.value.version, caught.value.line) == (0, line)
    assert "Restore it" in str(caught.value)


def test_a_commit_that_is_no_utf8_is_damaged(tmp_path):
    log = RawLog(tmp_path).write(b'{"commitInfo":{"a":"\xff"}}\n')
    with pytest.raises(CorruptCommitError, match="UTF-8"):
        read_commit(LocalLogStore(), log.table, 0)


def test_a_missing_commit_is_missing_and_not_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_commit(LocalLogStore(), RawLog(tmp_path).table, 0)


@pytest.mark.parametrize(
    "action",
    [
        add("f", partitionValues=[1]),
        add("f", modificationTime="x"),
        add("f", deletionVector=1),
        remove("f", size="x"),
    ],
)
def test_a_file_action_with_a_value_of_a_wrong_type_is_damaged(action):
    with pytest.raises(CorruptCommitError, match="malformed") as caught:
        parse(action)
    assert caught.value.line == 1


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.fixed_dictionaries({"p": st.none() | texts, "q r": st.none() | texts})
vectors = st.fixed_dictionaries(
    {
        "storageType": st.sampled_from("uip"),
        "pathOrInlineDv": texts,
        "sizeInBytes": st.integers(0, 99),
        "cardinality": st.integers(0, 99),
    },
    optional={"offset": st.integers(0, 99)},
)
longs = st.integers(-(2**63), 2**63 - 1)
paths = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
adds = st.fixed_dictionaries(
    {
        "path": paths,
        "partitionValues": values,
        "size": longs,
        "modificationTime": longs,
        "dataChange": st.booleans(),
    },
    optional={
        "stats": st.none() | texts,
        "tags": st.fixed_dictionaries({"t": texts}),
        "deletionVector": vectors,
        "baseRowId": longs,
        "clusteringProvider": texts,
    },
)
removes = st.fixed_dictionaries(
    {"path": paths},
    optional={
        "deletionTimestamp": longs,
        "dataChange": st.booleans(),
        "extendedFileMetadata": st.booleans(),
        "partitionValues": values,
        "size": longs,
        "deletionVector": vectors,
    },
)


def compact(action):
    return json.dumps(action, separators=(",", ":"))


def rows(table):
    """The order of a map's entries means nothing."""
    found = table.to_pylist()
    for row in found:
        if row["partition_values"] is not None:
            row["partition_values"] = dict(row["partition_values"])
    return found


@given(st.lists(adds, min_size=1, max_size=5), st.lists(removes, max_size=5))
def test_both_ways_of_parsing_give_the_same(some_adds, some_removes):
    lines = [compact({"add": each}) for each in some_adds]
    lines += [compact({"remove": each}) for each in some_removes]
    slow = parse_commit(joined(lines), 1, "p")
    fast = commit_file.Commit(1, "p")
    rest = commit_file._take_many(fast, joined(lines))
    commit_file._take_lines(fast, rest)
    assert rows(fast.added()) == rows(slow.added())
    assert rows(fast.removed()) == rows(slow.removed())


@given(st.lists(adds.filter(lambda a: "tags" not in a), min_size=1, max_size=5))
def test_usual_adds_take_the_fast_way(some):
    rows = read_file_actions("add", joined(compact({"add": each}) for each in some), len(some))
    assert rows is not None
    assert rows.schema.equals(FILE_SCHEMA)
    rows.validate(full=True)


def test_usual_removes_take_the_fast_way():
    lines = [compact(remove(f"f{i}", partitionValues={"p": "x"})) for i in range(3)]
    rows = read_file_actions("remove", joined(lines), len(lines))
    assert rows is not None
    assert rows.schema.equals(TOMBSTONE_SCHEMA)


@pytest.mark.parametrize(
    "lines",
    [
        ['{"add":{"path":"a","size":1}}', '{"add":{"path":"b","size":1}} {"add":{"path":"c"}}'],
        ['{"add":{"path":"a","size":1}}', '{"add":{"path":"b'],
        ['{"add":{"path":"a","size":1}}', '{"add":{"size":1}}'],
        ['{"add":{"path":"a","size":1}}', '{"add":{"path":"b"}}'],
        ['{"add":{"path":"a","size":1,"unknown":1}}'],
        ['{"add":{"path":"a","size":1,"partitionValues":{}}}'] * 1
        + ['{"add":{"path":"b","size":1,"partitionValues":{"p":"x"}}}'],
        ['{"add":{"path":"a","size":1.5}}'],
        ['{"add":{"path":1,"size":1}}'],
        ['{"add":{"path":"a","size":1,"partitionValues":null,"partitionValues":[]}}'],
    ],
)
def test_anything_unusual_is_left_to_the_careful_way(lines):
    assert read_file_actions("add", joined(lines), len(lines)) is None


@pytest.fixture
def few_lines_are_many(monkeypatch):
    monkeypatch.setattr(commit_file, "_MANY_LINES", 2)


def test_a_torn_line_of_a_large_commit_is_named(few_lines_are_many):
    lines = [compact(add(f"f{i}")) for i in range(9)]
    lines[4] = lines[4][:20]
    with pytest.raises(CorruptCommitError, match="line 5 is not JSON"):
        parse_commit(joined(lines), 1, "p")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("small", [[], [PROTOCOL], [PROTOCOL, metadata()]])
def test_adds_at_the_end_are_taken_whole_however_the_file_ends(few_lines_are_many, small, end):
    lines = [compact(a) for a in [*small, *(add(f"f{i}") for i in range(4))]]
    commit = parse_commit(("\n".join(lines) + end).encode(), 1, "p")
    assert commit.added()["path"].to_pylist() == [f"f{i}" for i in range(4)]
    assert (commit.protocol is not None) == bool(small)
    assert (commit.metadata is not None) == (len(small) == 2)


def test_fields_that_only_later_adds_have_are_kept(few_lines_are_many):
    lines = [compact(add("a")), compact(add("b", baseRowId=7)), compact(add("c"))]
    commit = parse_commit(joined(lines), 1, "p")
    assert commit.added()["base_row_id"].to_pylist() == [None, 7, None]


def test_an_add_that_shares_its_line_is_not_lost(few_lines_are_many):
    both = compact(add("a")) + compact(add("b"))
    with pytest.raises(CorruptCommitError, match="line 2 is not JSON"):
        parse_commit(joined([compact(add("x")), both, compact(add("y"))]), 1, "p")


@pytest.mark.parametrize(
    "other",
    [
        '{"\\u0061dd": %s, "\\u0072emove": %s}',
        ' {"add":%s,"remove":%s}',
        '{"txn":{"appId":"a","version":1},"add":%s,"remove":%s}',
    ],
)
@pytest.mark.parametrize("usual", [[add("a"), remove("b")], [add("a"), add("b")]])
def test_a_line_that_begins_otherwise_than_the_many_is_read_with_them(
    few_lines_are_many, other, usual
):
    odd = other % (compact(add("c")["add"]), compact(remove("d")["remove"]))
    data = joined([odd, *map(compact, usual), odd.replace('"c"', '"e"')])
    fast = parse_commit(data, 1, "p", LogBudget(1 << 20))
    slow = commit_file.Commit(1, "p")
    commit_file._take_lines(slow, enumerate(data.split(b"\n"), 1))
    assert rows(fast.added()) == rows(slow.added())
    assert rows(fast.removed()) == rows(slow.removed())
    assert fast.transactions == slow.transactions


def test_a_large_commit_keeps_its_small_actions(few_lines_are_many):
    lines = [compact(a) for a in (PROTOCOL, add("a"), add("b"), remove("c"), metadata())]
    commit = parse_commit(joined(lines), 1, "p")
    assert commit.protocol is not None
    assert commit.metadata is not None
    assert commit.added()["path"].to_pylist() == ["a", "b"]
    assert commit.removed()["path"].to_pylist() == ["c"]


def test_tags_that_only_some_files_have_are_not_given_to_the_others_as_nulls():
    lines = [json.dumps(add("a", tags={"x": "1", "y": "2"})), json.dumps(add("b", tags={"x": "1"}))]
    assert read_file_actions("add", joined(lines), len(lines)) is None
    commit = parse_commit(joined(lines * commit_file._MANY_LINES), 7, "/t/7.json")
    assert commit.added()["tags"][1].as_py() == [("x", "1")]


@pytest.mark.parametrize("version", ['"1"', "null", "1.5", "[1]"])
def test_a_protocol_whose_versions_are_no_numbers_is_malformed(version):
    line = f'{{"protocol":{{"minReaderVersion":{version},"minWriterVersion":2}}}}'
    with pytest.raises(CorruptCommitError, match="malformed protocol action"):
        parse_commit(joined([line]), 7, "/t/7.json")


def test_too_little_memory_is_no_torn_commit(monkeypatch):
    def fails(line):
        raise orjson.JSONDecodeError("memory allocation failed", line.decode(), 0)

    monkeypatch.setattr(orjson, "loads", fails)
    with pytest.raises(MemoryError, match=r"no memory to parse /t/7\.json"):
        parse({"commitInfo": {}})
