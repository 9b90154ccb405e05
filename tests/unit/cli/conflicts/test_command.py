"""`lakelog conflicts`: jobs that really met, told from the events that they left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, Operation
from lakelog.core.errors import ConcurrentAppendException, MaxCommitAttemptsExceededError
from support.tables import add_file, new_table, schema_json
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path


class Jobs:
    """Three jobs on one table, each with a file of events of its own but the stranger."""

    def __init__(self, folder: Path) -> None:
        self.events = folder / "events"
        self.events.mkdir()
        self.more: dict[str, str] = {}
        """Further conf of the jobs."""
        self.table = str(folder / "lake" / "flights")
        schema = schema_json(id="long", day="long")
        new_table(self.table, schema=schema, partition_by=["day"])
        self._next = 0

    def _log(self, job: str) -> DeltaLog:
        conf = {
            "spark.lakelog.commitEvents.path": str(self.events / f"{job}.jsonl"),
            "spark.app.name": job,
            "spark.app.id": f"app-{job}",
            **self.more,
        }
        return DeltaLog.for_table(self.table, {} if job == "stranger" else conf)

    def append(self, job: str, day: str) -> int:
        """A blind append."""
        self._next += 1
        action = add_file(f"f{self._next}", day=day)
        return self._log(job).start_transaction().commit([action], Operation.write("Append"))

    def update(self, job: str, day: str, *meanwhile: tuple[str, str]) -> bool:
        """An update of one day, while others append; whether it was committed."""
        txn = self._log(job).start_transaction()
        txn.filter_files(f"day = {day}")
        for rival, rivals_day in meanwhile:
            self.append(rival, rivals_day)
        self._next += 1
        try:
            txn.commit([add_file(f"f{self._next}", day=day)], Operation(name="UPDATE"))
        except ConcurrentAppendException:
            return False
        return True


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    made = Jobs(tmp_path)
    assert not made.update("cleaner", "1", ("loader", "2"), ("loader", "1"))
    assert not made.update("cleaner", "1", ("stranger", "1"))
    assert made.update("cleaner", "7", ("loader", "2"))
    return made


def test_it_says_who_won_against_whom_where_and_at_which_version(jobs: Jobs) -> None:
    found = lakelog_json("conflicts", str(jobs.events), code=1)
    assert found["lost_commits"] == 2
    second, first = found["lost"]
    assert (first["job"], first["operation"]) == ("cleaner", "UPDATE")
    assert (first["winner"], first["winner_operation"]) == ("loader", "WRITE")
    assert (first["read_version"], first["winner_version"]) == (0, 2)
    assert first["condition"] == "DELTA_CONCURRENT_APPEND"
    assert first["partition"] == {"day": "1"}
    assert first["app_id"] == "app-cleaner"
    commit = DeltaLog.for_table(jobs.table).history()[-3]
    assert (commit.version, commit.commit_info["txnId"]) == (2, first["winner_txn_id"])
    assert second["winner"].startswith("another writer (WRITE, lakelog/")
    assert second["winner_version"] == 3


def test_jobs_and_pairs_are_summed(jobs: Jobs) -> None:
    found = lakelog_json("conflicts", str(jobs.events), code=1)
    by_job = {each["job"]: each for each in found["jobs"]}
    assert list(by_job) == ["cleaner", "loader"], "who lost most comes first"
    cleaner = by_job["cleaner"]
    assert (cleaner["committed"], cleaner["lost"], cleaner["unfinished"]) == (1, 2, 0)
    assert (cleaner["attempts"], cleaner["retries"], cleaner["rebased_over"]) == (4, 1, 2)
    assert cleaner["conditions"] == {"DELTA_CONCURRENT_APPEND": 2}
    assert cleaner["operations"] == {"UPDATE": 3}
    assert (by_job["loader"]["committed"], by_job["loader"]["retries"]) == (3, 0)
    with_loader = next(each for each in found["pairs"] if each["winner"] == "loader")
    assert (with_loader["loser"], with_loader["lost"], with_loader["rebased"]) == ("cleaner", 1, 2)


def test_it_says_which_jobs_to_separate_and_how(jobs: Jobs) -> None:
    found = lakelog_json("conflicts", str(jobs.events), code=1)
    advice = next(each for each in found["separate"] if each["jobs"] == ["cleaner", "loader"])
    assert (advice["by"], advice["lost"], advice["table"]) == ("partition", 1, jobs.table)
    assert "[day=1]" in advice["reason"]


def test_the_text_tells_the_same(jobs: Jobs) -> None:
    outcome = lakelog("conflicts", str(jobs.events))
    assert (outcome.code, outcome.err) == (1, "")
    said = [" ".join(line.split()) for line in outcome.lines]
    assert said[0].startswith("7 commit events, ")
    assert said[1] == "Nothing was skipped."
    assert said[2] == jobs.table, "the name of the only table is told once"
    assert outcome.out.count(jobs.table) == 1
    assert "2 commits lost to conflicts, newest first" in said
    assert any(
        line.endswith("cleaner (UPDATE) loader (WRITE) 2 added files where it had read day=1")
        for line in said
    )
    assert any(line.startswith("cleaner 1 2 0 0 0 1 2 ") for line in said)
    assert any(line.startswith("cleaner and loader, by partition: both work in") for line in said)


def test_without_a_lost_commit_nothing_has_to_be_mended(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    assert jobs.update("cleaner", "7", ("loader", "2"))
    outcome = lakelog("conflicts", str(jobs.events))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[-1] == "No jobs need to be separated"


def test_a_commit_that_has_no_end_is_a_finding(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    assert jobs.update("cleaner", "7", ("loader", "2"))
    path = jobs.events / "cleaner.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    found = lakelog_json("conflicts", str(jobs.events), code=1)
    assert [each["unfinished"] for each in found["jobs"] if each["job"] == "cleaner"] == [1]
    assert "no further attempt is known" in found["separate"][0]["reason"]


def test_a_commit_that_gave_up_is_a_finding(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    jobs.more["spark.databricks.delta.maxCommitAttempts"] = "0"
    with pytest.raises(MaxCommitAttemptsExceededError):
        jobs.update("cleaner", "7", ("loader", "2"))
    found = lakelog_json("conflicts", str(jobs.events), code=1)
    [cleaner] = [each for each in found["jobs"] if each["job"] == "cleaner"]
    assert (cleaner["given_up"], cleaner["unfinished"], cleaner["attempts"]) == (1, 0, 1)
    assert "ran out" in found["separate"][0]["reason"]
    text = lakelog("conflicts", str(jobs.events)).lines
    assert any(" ".join(line.split()).startswith("cleaner 0 0 1 0 0 0 1 ") for line in text)


def test_a_limit_shortens_the_list_and_not_the_sums(jobs: Jobs) -> None:
    found = lakelog_json("conflicts", str(jobs.events), "--limit", "1", code=1)
    assert (len(found["lost"]), found["lost_commits"]) == (1, 2)
    assert (
        "1 more: --limit N, or --all." in lakelog("conflicts", str(jobs.events), "--limit", "1").out
    )


@pytest.mark.parametrize("spelled", ["flights", "lake/flights", None])
def test_one_table_can_be_chosen(jobs: Jobs, spelled: str | None) -> None:
    other = jobs.events / "other.jsonl"
    line = json.loads((jobs.events / "cleaner.jsonl").read_text().splitlines()[0])
    other.write_text(json.dumps({**line, "table": "/lake/myflights"}) + "\n")
    assert lakelog_json("conflicts", str(jobs.events), code=1)["events"] == 8
    both = lakelog("conflicts", str(jobs.events)).out
    assert "/lake/myflights" in both
    found = lakelog_json(
        "conflicts", str(jobs.events), "--table", spelled or jobs.table + "/", code=1
    )
    assert found["events"] == 7
    assert found["passed_over"]["by_options"] == 1


def test_a_time_leaves_older_events_out_but_keeps_commits_whole(jobs: Jobs) -> None:
    path = jobs.events / "cleaner.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    early, late = 1_700_000_000_000, 1_800_000_000_000
    for line in lines:
        line["timestamp"] = early
    lines[-1]["timestamp"] = late  # the last attempt of the third commit
    del lines[1]["timestamp"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = lakelog_json("conflicts", str(path), "--since", "2026-12-31")
    assert (found["events"], found["lost_commits"], found["commits"]) == (2, 0, 1)
    assert found["jobs"][0]["attempts"] == 2
    assert found["passed_over"]["by_options"] == 2


@pytest.mark.parametrize(("age", "events"), [("90m", 7), ("12h", 7), ("7d", 7)])
def test_a_time_may_be_an_age(jobs: Jobs, age: str, events: int) -> None:
    outcome = lakelog("conflicts", str(jobs.events), "--since", age, "--json")
    assert json.loads(outcome.out)["events"] == events


def test_torn_and_foreign_lines_are_counted(jobs: Jobs) -> None:
    with (jobs.events / "loader.jsonl").open("a") as file:
        file.write('hello\n{"table": "/lake/fl')
    assert lakelog_json("conflicts", str(jobs.events), code=1)["passed_over"] == {
        "foreign_lines": 1,
        "torn_lines": 1,
        "duplicates": 0,
        "by_options": 0,
    }
    text = lakelog("conflicts", str(jobs.events)).out
    assert "Skipped: 1 line that is not an event, 1 torn last line." in text


def test_an_empty_file_holds_no_conflict(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    assert lakelog_json("conflicts", str(tmp_path / "events.jsonl"))["events"] == 0
    assert lakelog("conflicts", str(tmp_path / "events.jsonl")).code == 0


def test_what_can_not_be_read_is_one_line(jobs: Jobs, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.log"
    foreign.write_text("hello\nworld\n")
    for args, said in (
        ((str(tmp_path / "missing.jsonl"),), "no event file found"),
        ((str(foreign),), "None of 2 lines"),
        ((str(jobs.events), "--table", "trains"), f"Tables: {jobs.table}."),
        ((str(jobs.events), "--since", "yesterday"), "'yesterday' is not a time"),
    ):
        outcome = lakelog("conflicts", *args)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert said in outcome.err
    assert lakelog("conflicts").code == 2
