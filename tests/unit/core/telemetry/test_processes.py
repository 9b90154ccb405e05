"""What telemetry does to a process: nothing where it is off, and only what was asked for."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import closing
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

OTEL = {"spark.lakelog.telemetry": "otel"}


def run(code: str, *args: object, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env={**env, **variables},
        timeout=120,
    )


WRITES = """
    import sys, json
    from lakelog.core import write_arrow, DeltaLog
    uri, conf, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    for number in range(count):
        write_arrow(uri, {"id": [number]}, mode="append", conf=conf)
    assert DeltaLog.for_table(uri).update().version == count - 1
"""


@pytest.mark.parametrize("variables", [{}, {"OTEL_TRACES_EXPORTER": "console"}])
def test_where_it_is_off_nothing_of_opentelemetry_is_imported(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    code = WRITES + "    assert not [each for each in sys.modules if 'opentelemetry' in each]\n"
    done = run(code, tmp_path / "t", "{}", 2, **variables)
    assert done.returncode == 0, done.stderr


def test_the_variables_set_it_up_and_the_end_of_the_process_exports_the_rest(
    tmp_path: Path,
) -> None:
    done = run(
        WRITES,
        tmp_path / "t",
        json.dumps(OTEL),
        2,
        OTEL_TRACES_EXPORTER="console",
        OTEL_METRICS_EXPORTER="console",
        OTEL_SERVICE_NAME="loader",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"name": "lakelog.commit"') == 2
    assert '"name": "lakelog.commit.duration"' in done.stdout
    assert '"service.name": "loader"' in done.stdout


def test_no_exporter_is_started_that_nobody_named(tmp_path: Path) -> None:
    code = WRITES + (
        "    import threading\n"
        "    assert threading.active_count() == 1, threading.enumerate()\n"
        "    assert 'opentelemetry.exporter' not in sys.modules\n"
    )
    done = run(code, tmp_path / "t", json.dumps(OTEL), 1)
    assert done.returncode == 0, done.stderr
    assert not done.stdout


def test_the_switch_of_the_sdk_keeps_exporters_from_being_started(tmp_path: Path) -> None:
    done = run(
        WRITES,
        tmp_path / "t",
        json.dumps(OTEL),
        1,
        OTEL_SDK_DISABLED="true",
        OTEL_TRACES_EXPORTER="console",
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_without_the_extra_the_log_names_it_once_and_commits_go_on(tmp_path: Path) -> None:
    missing = "    import sys\n    sys.modules['opentelemetry.sdk'] = None\n"
    done = run(missing + WRITES, tmp_path / "t", json.dumps(OTEL), 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("otel") == 2, done.stderr  # the key's value, and the extra
    assert "spark.lakelog.telemetry=otel needs an extra" in done.stderr


def test_an_exporter_that_is_not_installed_is_named_and_commits_go_on(tmp_path: Path) -> None:
    done = run(
        WRITES, tmp_path / "t", json.dumps(OTEL), 3, OTEL_TRACES_EXPORTER="console, zipkin, none"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("'zipkin'") == 1
    assert '"name": "lakelog.commit"' in done.stdout


def test_an_exporter_that_fails_to_begin_is_tried_once_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    code = WRITES + "    import threading\n    assert threading.active_count() <= 3\n"
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(
            code,
            tmp_path / "t",
            json.dumps(OTEL),
            5,
            OTEL_TRACES_EXPORTER="console",
            OTEL_METRICS_EXPORTER="prometheus",
            OTEL_EXPORTER_PROMETHEUS_HOST="127.0.0.1",
            OTEL_EXPORTER_PROMETHEUS_PORT=str(taken.getsockname()[1]),
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("nothing is exported to 'prometheus' of metrics") == 1, done.stderr
    assert done.stdout.count('"name": "lakelog.commit"') == 5


def test_an_endpoint_that_is_down_costs_no_commit_and_floods_no_log(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        port = taken.getsockname()[1]
        done = run(
            WRITES,
            tmp_path / "t",
            json.dumps(OTEL),
            50,
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_TIMEOUT="1",
        )
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^(Transient|Exception|Failed)", done.stderr, re.MULTILINE)
    assert 1 <= len(told) < 20, done.stderr
    assert "lakelog:" not in done.stderr


EXPORTS = """
    import sys, threading
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter
    from lakelog.core.telemetry.switch import _otel
    exported, has_ten = [], threading.Event()
    def hear(self, spans):
        exported.extend(each.name for each in spans)
        if len(exported) == 10:
            has_ten.set()
    ConsoleSpanExporter.export = hear
    def write(conf={"spark.lakelog.telemetry": "otel"}):
        from lakelog.core import write_arrow
        write_arrow(sys.argv[1], {"id": [1]}, mode="append", conf=conf)
"""


@pytest.mark.parametrize("end", ["force_flush", "shutdown"])
def test_spans_that_wait_are_exported_when_their_provider_is_flushed_or_shut_down(
    tmp_path: Path, end: str
) -> None:
    code = f"""{EXPORTS}
    for _ in range(5):
        write()
    assert _otel({OTEL}).later._work
    trace.get_tracer_provider().{end}()
    assert sorted(exported) == ["lakelog.command"] * 5 + ["lakelog.commit"] * 5, exported
    """
    variables = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    done = run(code, tmp_path / "t", **variables)
    assert done.returncode == 0, done.stderr


def test_spans_that_wait_are_exported_soon_without_anybody_asking(tmp_path: Path) -> None:
    code = f"""{EXPORTS}
    for _ in range(5):
        write()
    assert has_ten.wait(60), exported
    """
    variables = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "200"}
    done = run(code, tmp_path / "t", **variables)
    assert done.returncode == 0, done.stderr


def test_spans_that_are_not_sampled_do_not_wait(tmp_path: Path) -> None:
    code = f"""{EXPORTS}
    for _ in range(3):
        write()
    assert not _otel({OTEL}).later.is_due
    trace.get_tracer_provider().force_flush()
    assert not exported
    """
    variables = {"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "always_off"}
    done = run(code, tmp_path / "t", **variables)
    assert done.returncode == 0, done.stderr


def test_what_a_forked_child_does_within_a_span_has_that_span_as_its_parent(
    tmp_path: Path,
) -> None:
    code = """
        import os
        from opentelemetry import trace
        from lakelog.core.telemetry import catalogue
        from lakelog.core.telemetry.switch import observing
        conf = {"spark.lakelog.telemetry": "otel"}
        def parent():
            return trace.get_current_span().get_span_context().span_id
        def work(_):
            ours, theirs = os.pipe()
            if pid := os.fork():
                os.waitpid(pid, 0)
                assert os.read(ours, 100) == str(parent()).encode()
            else:
                os.write(theirs, str(parent()).encode())
                os._exit(0)
        observing(conf, catalogue.COMMAND, "/t", work, command="write")
    """
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_a_forked_child_exports_its_own_spans_and_none_of_its_parents(tmp_path: Path) -> None:
    code = """
        import os, sys
        from lakelog.core import write_arrow
        conf = {"spark.lakelog.telemetry": "otel"}
        write_arrow(sys.argv[1], {"id": [1]}, conf=conf)
        if pid := os.fork():
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        else:
            write_arrow(sys.argv[1], {"id": [2]}, mode="append", conf=conf)
    """
    variables = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    done = run(code, tmp_path / "t", **variables)
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r'"lakelog.version": (\d)', done.stdout)) == ["0", "1"]
