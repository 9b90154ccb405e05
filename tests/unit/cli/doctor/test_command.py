"""The doctor on stores without a server: what it shows, what it tells once, what it hides."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.cli.doctor.findings import Report
from lakelog.core import write_arrow
from lakelog.logstores import Capabilities, MemoryLogStore, Scope
from lakelog.logstores.doctor.finding import Finding, Status
from support.doctoring import doctor, doctor_text

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).parents[4]
SECRET = "hunter2hunter2"
KEYS = {"spark.hadoop.fs.s3a.secret.key": SECRET}


class Forgetful(MemoryLogStore):
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


class Talkative(MemoryLogStore):
    """Puts a secret into its error."""

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        raise OSError(f"{path}: the key {SECRET} was refused. Set another key.")


class Foreign(MemoryLogStore):
    """Raises what no store should."""

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        raise KeyError("region")


class Overwriting(MemoryLogStore):
    """Creates whatever is there."""

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=True)


@pytest.fixture(autouse=True)
def _empty() -> None:
    MemoryLogStore.forget("doctor")


def _conf(store: type[MemoryLogStore], **more: str) -> dict[str, str]:
    key = "spark.delta.logStore.memory.impl"
    return {key: f"{store.__module__}.{store.__qualname__}", **more}


def test_a_local_folder_is_fit_for_the_writers_of_one_host(tmp_path: Path) -> None:
    diagnosis = doctor(f"{tmp_path}/lake/t", {})
    assert diagnosis.exit_code == 0
    assert diagnosis.report["verdict"] == "no-failure-seen"
    assert diagnosis["commit-lock"]["status"] == "note"
    assert "one host" in diagnosis["commit-lock"]["summary"]
    assert diagnosis["exclusive-create"]["measured"]["winners"] == {"1": 20}
    assert list(tmp_path.iterdir()) == [], "what was made on the way is gone"


def test_the_class_and_the_key_that_chose_it_are_shown() -> None:
    diagnosis = doctor("memory://doctor/t", _conf(MemoryLogStore))
    assert diagnosis.report["store"]["key"] == "spark.delta.logStore.memory.impl"
    assert diagnosis.report["store"]["class"].endswith("MemoryLogStore")


def test_a_store_that_excludes_no_one_is_refused_with_the_ways_out() -> None:
    diagnosis = doctor("memory://doctor/t", _conf(Forgetful))
    assert diagnosis.exit_code == 1
    assert diagnosis.failed == ["commit-lock"]
    assert "spark.lakelog.unsafe.singleWriter" in diagnosis["commit-lock"]["remedy"]
    assert diagnosis["exclusive-create"]["status"] == "skipped"


def test_with_the_users_word_it_is_a_note() -> None:
    conf = {**_conf(Forgetful), "spark.lakelog.unsafe.singleWriter": "true"}
    diagnosis = doctor("memory://doctor/t", conf)
    assert diagnosis.exit_code == 0
    assert diagnosis["commit-lock"]["status"] == "note"


def test_any_store_that_breaks_its_promise_is_found() -> None:
    diagnosis = doctor("memory://doctor/t", _conf(Overwriting))
    assert diagnosis.failed == ["exclusive-create"]
    assert "IGNORES" in diagnosis["exclusive-create"]["summary"]


@pytest.mark.parametrize("option", ["--json", "--read-only"])
def test_no_secret_is_printed_whoever_put_it_into_a_message(option: str) -> None:
    code, text = doctor_text("memory://doctor/t", {**_conf(Talkative), **KEYS}, option)
    assert code == (0 if option == "--read-only" else 1)
    assert SECRET not in text
    assert "******" in text


def test_a_cause_is_reported_once_and_names_all_that_fails_of_it() -> None:
    diagnosis = doctor("memory://doctor/t", _conf(Talkative))
    assert diagnosis.failed == ["put"]
    assert diagnosis["put"]["measured"]["also"] == ["conditional-put"]
    assert diagnosis["put"]["remedy"] == "Set another key."
    _, text = doctor_text("memory://doctor/t", _conf(Talkative))
    assert "put, conditional-put" in text
    assert text.rstrip().endswith("1 finding to fix: put")


def test_the_documented_json_is_what_comes(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert example is not None
    documented = json.loads(example[1])
    report = doctor(str(tmp_path), {}).report
    assert list(report) == list(documented)
    assert set(report["capabilities"]) == set(documented["capabilities"])
    assert set(report["store"]) == set(documented["store"])
    for finding in report["findings"]:
        assert list(finding) == list(documented["findings"][0])
    race = next(each for each in report["findings"] if each["check"] == "exclusive-create")
    assert list(race["measured"]) == list(documented["findings"][0]["measured"])


def test_every_check_that_can_come_is_documented() -> None:
    page = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z-]+)` \| ", page, re.MULTILINE))
    sources = [
        *(REPOSITORY / "logstores/lakelog/logstores/doctor").glob("*.py"),
        *(REPOSITORY / "cli/lakelog/cli").rglob("*.py"),
    ]
    call = re.compile(r"(?:Finding(?:\.failed)?|_try|_broken)\(\s*\"([a-z-]+)\"")
    used = {name for path in sources for name in call.findall(path.read_text(encoding="utf-8"))}
    assert len(used) > 8
    assert used - documented == set()


def test_a_report_that_only_read_does_not_say_that_it_probed() -> None:
    report = Report("memory://doctor/t", read_only=True)
    report.add(Finding("store", Status.FINE, "chosen"))
    assert report.verdict.value == "not-probed"
    report.add(Finding("table", Status.FAILED, "a gap", "Restore it."))
    assert report.verdict.value == "failed"


def test_an_error_that_no_store_should_raise_is_a_finding_with_its_traceback() -> None:
    diagnosis = doctor("memory://doctor/lake", _conf(Foreign))
    assert diagnosis.exit_code == 1
    (check,) = diagnosis.failed
    finding = diagnosis[check]
    assert "builtins.KeyError: 'region'" in finding["summary"]
    assert "fix that if the store is yours" in finding["remedy"]
    assert any("in write" in line for line in finding["measured"]["traceback"])


def test_usage_is_checked_before_anything_is_touched() -> None:
    assert doctor_text("memory://doctor/t", {}, "--writers", "1")[0] == 2
    assert doctor_text("", {})[0] == 1


@pytest.mark.parametrize("harm", ["torn", "gap"])
def test_what_is_broken_in_a_log_is_reported_with_what_mends_it(tmp_path: Path, harm: str) -> None:
    table = str(tmp_path / "t")
    for number in range(3):
        write_arrow(table, {"id": [number]}, mode="append")
    assert "its newest commit can be read" in doctor_text(table, {}, "--read-only")[1]
    log = tmp_path / "t" / "_delta_log"
    if harm == "gap":
        (log / f"{1:020d}.json").unlink()
    else:
        (log / f"{2:020d}.json").write_text('{"add":{"path"')
    code, text = doctor_text(table, {}, "--read-only")
    assert code == 1
    assert {"torn": "torn commit: ", "gap": "gap: "}[harm] in text
    assert re.sub(r"\s+", " ", text).count(f"lakelog repair {table} --dry-run") == 1
