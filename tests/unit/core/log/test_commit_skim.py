from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.errors import CorruptCommitError
from lakelog.core.log.commit_file import parse_commit, skim_commit
from support.log_histories import histories
from support.raw_log import add, remove


def text(actions):
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in actions).encode()


@given(histories)
def test_everything_but_the_file_actions_is_as_in_the_whole_commit(made):
    for actions in made:
        whole, skimmed = parse_commit(text(actions), 3, "p"), skim_commit(text(actions), 3, "p")
        whole.adds, whole.removes = [], []
        assert skimmed == whole


@given(st.integers(0, 1200), st.booleans())
def test_actions_that_hide_behind_a_file_action_are_found(count, first):
    txn = {"txn": {"appId": "x", "version": 1}}
    odd = [{**add("a"), **txn} if first else {**txn, **remove("a")}]
    data = text([*(add(f"f{i}") for i in range(count)), *odd])
    assert skim_commit(data, 1, "p").transactions["x"].version == 1


def test_statistics_that_speak_of_actions_are_no_actions():
    stats = json.dumps({"minValues": {"txn": "a", "protocol": "b"}})
    commit = skim_commit(text([add("a", stats=stats), remove("b")]), 1, "p")
    assert (commit.adds, commit.removes, commit.info, commit.version) == ([], [], None, 1)


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \n"])
def test_an_empty_commit_is_refused(data):
    with pytest.raises(CorruptCommitError, match="it is empty"):
        skim_commit(data, 1, "p")


def test_a_torn_line_is_named_as_by_the_whole_parser():
    data = text([{"commitInfo": {}}, add("a"), add("b")])[:-5]
    with pytest.raises(CorruptCommitError, match="line 3 is not JSON") as caught:
        skim_commit(data, 1, "p")
    assert caught.value.line == 3
