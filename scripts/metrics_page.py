"""Write docs/metrics.md from the catalogue of metrics and spans, or report that it is out of date.

python scripts/metrics_page.py            # writes the page
python scripts/metrics_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from written_page import write_or_compare

from lakelog.core.telemetry.catalogue import (
    ATTRIBUTES,
    BUCKETS,
    COMMANDS,
    METRICS,
    SPANS,
    Metric,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
COMMAND = "python scripts/metrics_page.py"

HEAD = f"""\
# Metrics and traces

lakelog counts and times its commands, commits, attempts, conflicts, waits, checkpoints, scans and
batches of streams, and makes a span of each, by [OpenTelemetry](https://opentelemetry.io/). It
needs the [extra](index.md#install) `otel`.

The page is written from the code (`{COMMAND}`), and a test fails where they differ. Names,
units and attributes are promises as those of functions are: a change of one is in the changelog.

## Switch it on

| Your process | What to do |
|---|---|
| is under `opentelemetry-instrument`, or sets up the SDK itself | nothing |
| does neither | set `spark.lakelog.telemetry=otel`, and variables that say where to export to |
| must not be watched | set `spark.lakelog.telemetry=off`, or `OTEL_SDK_DISABLED=true` |

lakelog uses OpenTelemetry's global providers. With `otel` it sets them up, once, at the first
operation, if nothing else has; with no exporter but those that the variables name:

```bash
export OTEL_SERVICE_NAME=loader
export OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   # metrics and spans, by OTLP
# or, for Prometheus to scrape http://localhost:9464/metrics:
export OTEL_METRICS_EXPORTER=prometheus
```

All other variables (`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, …) are the SDK's. What
is not exported yet is exported when the process ends.

- Without the extra, `spark.lakelog.telemetry=otel` logs one error that names it. Neither that nor
  a collector that is down costs a commit.
- Where telemetry is off, nothing of OpenTelemetry is imported. Where it is on, the least commit, an
  append of one row by `write_arrow` to a local disk, takes 0 to 4 % more CPU time, with what a
  thread of the SDK takes to make the spans and to export them (`benchmarks/telemetry.py`; the SDK
  alone takes 4 to 7 % in the same runs, where each span is made by itself). On MinIO it is 1 %.
- A span is made when something asks for it, or when it is over; its times are those of the work.
  With providers that lakelog has set up, an exporter gets a span after two of its delays
  (`OTEL_BSP_SCHEDULE_DELAY`, 5 seconds) at most.
- `lakelog.table` is an attribute of the metrics, because numbers over all tables say little. A
  process with more than 1,000 tables counts the rest as `other`; of every other attribute there
  are no more than 100 values. A view of the SDK can drop an attribute.
- No text of an error or of a condition, and no value of a row, is ever an attribute.

## Spark

Commands run in the driver, and so do their spans and metrics; executors make none. What Spark
reads and writes in its jobs is in Spark's own metrics. A batch of a stream (`writeStream`) is a
trace of its own, with a link to the span in which the query was started. `format("lakelog")`
commits in a process that Spark starts and that knows no span of the driver's: it is set up by the
same variables, and its trace has a link to the span in which `lakelog.spark.register` was called.

## A dashboard

`contrib/grafana/lakelog.json` is a dashboard for Grafana, with Prometheus as its data source:
commits, conflicts and waits by table, durations by command, growth, checkpoints, scans, streams.
"""


def prometheus_name(metric: Metric) -> str:
    """What the exporter to Prometheus calls a metric; of a histogram without `_bucket`."""
    name = metric.name.replace(".", "_")
    if metric.is_duration:
        return f"{name}_seconds"
    return f"{name}_bytes_total" if metric.unit == "By" else f"{name}_total"


def render() -> str:
    """The page."""
    parts = [HEAD, "\n## Metrics\n\n", *_metrics()]
    parts += ["\nThe buckets of all durations, in seconds: "]
    parts += [", ".join(f"{each:g}" for each in BUCKETS), ".\n"]
    parts += ["\n## Spans\n\n", *_spans()]
    parts += ["\nA span whose work failed has the status `ERROR` and `error.type`.\n"]
    parts += ["\n## Attributes\n\n", "| Attribute | |\n|---|---|\n"]
    parts += [f"| `{name}` | {doc} |\n" for name, doc in ATTRIBUTES.values()]
    parts += ["\n## Commands\n\nThe values of `lakelog.command`: "]
    parts += [", ".join(f"`{each}`" for each in COMMANDS), ".\n"]
    return "".join(parts)


def _metrics() -> Iterable[str]:
    yield "| Metric | Kind | Unit | Attributes | In Prometheus | |\n|---|---|---|---|---|---|\n"
    for each in METRICS:
        kind = "histogram" if each.is_duration else "counter"
        yield (
            f"| `{each.name}` | {kind} | `{each.unit}` | {_named(each.attributes)} "
            f"| `{prometheus_name(each)}` | {each.doc} |\n"
        )


def _spans() -> Iterable[str]:
    yield "| Span | Parent | Attributes | |\n|---|---|---|---|\n"
    for each in SPANS:
        yield f"| `{each.name}` | {each.parent} | {_named(each.attributes)} | {each.doc} |\n"


def _named(words: Iterable[str]) -> str:
    return ", ".join(f"`{ATTRIBUTES[word][0]}`" for word in words)


if __name__ == "__main__":
    sys.exit(write_or_compare(PAGE, render(), COMMAND))
