"""`lakelog serve`: the LogStore service, for delta-spark in other processes of this host."""

from __future__ import annotations

from pathlib import Path

import click

from lakelog.cli.interruption import until_stopped
from lakelog.cli.output import line
from lakelog.cli.shared_options import conf_options


@click.command(short_help="Let delta-spark on this host commit by lakelog's stores.")
@conf_options
@click.option(
    "--endpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The endpoint file; LAKELOG_BRIDGE or ~/.lakelog/bridge if not given.",
)
@click.option("--tcp", is_flag=True, help="Also listen on 127.0.0.1, for a Java older than 16.")
def command(conf: dict[str, str], endpoint: Path | None, tcp: bool) -> None:
    """Serve lakelog's stores to delta-spark, Flink or Thrift servers of this host and user.

    Runs until it is interrupted or terminated, and lets what has begun come to its end. Prints the
    settings that a JVM needs, as lines for spark-defaults.conf. --conf says which store is behind
    the bridge; its settings win over those that a session comes with.
    """
    from lakelog.logstores.resolution import resolve
    from lakelog.logstores.service import BRIDGE_CLASS, LogStoreService, bridge_jar

    resolve("file:/", conf)  # a wrong conf fails here, not in the first session
    jar = bridge_jar()
    with (
        until_stopped() as wait,
        LogStoreService(conf, endpoint_file=endpoint, tcp=tcp) as service,
    ):
        line("# Serving. For spark-defaults.conf, beside the settings of delta-spark:")
        line(f"spark.jars {jar}")
        line(f"spark.delta.logStore.class {BRIDGE_CLASS}")
        line(f"spark.hadoop.lakelog.bridge.endpoint {service.endpoint_file}")
        wait()
