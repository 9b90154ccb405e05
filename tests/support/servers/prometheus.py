"""Prometheus: a server that scrapes what it is told to, and answers PromQL."""

from __future__ import annotations

import contextlib
import json
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.servers._service import (
    ServerUnavailableError,
    answers,
    built,
    free_port,
    need_program,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "v0.316.0"
"""Of the module: Prometheus 3.16."""


@tool("prometheus")
def install() -> Path:
    """The program: on the PATH, or built from source into the cache (four minutes of CPU, once)."""
    with contextlib.suppress(ServerUnavailableError):
        return Path(need_program("prometheus", "a dashboard's queries"))
    return built(f"prometheus-{VERSION}", _build) / "prometheus"


def _build(folder: Path) -> None:
    go = need_program("go", "building Prometheus")
    # Without the discovery of targets in clouds, which is most of it.
    source = f"github.com/prometheus/prometheus/cmd/prometheus@{VERSION}"
    run_step(
        [go, "install", "-tags", "remove_all_sd", "-ldflags", "-s -w", source],
        cwd=folder,
        env={"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"},
    )


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server that runs."""

    url: str

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The series of an instant query, each with `metric` and `value`.

        Raises:
            AssertionError: Prometheus refuses the query; with its words.
        """
        asked = urllib.parse.urlencode({"query": promql})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=30) as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{promql}: {error.read().decode()}") from error
        series: list[dict[str, Any]] = answer["data"]["result"]
        return series


@contextlib.contextmanager
def run_prometheus(target: str) -> Iterator[Prometheus]:
    """A Prometheus that scrapes one target, `host:port`, five times a second until the end."""
    program = install()
    with tempfile.TemporaryDirectory(prefix="prometheus-") as folder:
        conf = Path(folder, "prometheus.yml")
        conf.write_text(
            "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
            "scrape_configs:\n"
            f"- {{job_name: lakelog, static_configs: [{{targets: ['{target}']}}]}}\n"
        )
        address = f"127.0.0.1:{free_port()}"
        argv = [str(program), f"--config.file={conf}", f"--storage.tsdb.path={folder}/data"]
        argv += [f"--web.listen-address={address}", "--log.level=error"]
        url = f"http://{address}"
        ready = f"{url}/-/ready"
        with running(argv, ready=lambda: answers(ready, lambda status: status == 200)):
            yield Prometheus(url)
