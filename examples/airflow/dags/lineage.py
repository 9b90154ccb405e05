"""OpenLineage's events of a job, from what lakelog logs of its commits."""

from __future__ import annotations

import contextlib
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import dataset_version_dataset, output_statistics_output_dataset
from openlineage.client.uuid import generate_new_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PRODUCER = "https://example.org/jobs/carriers"  # where the code of your jobs is


@contextlib.contextmanager
def lineage(job: str, reads: Mapping[str, int]) -> Iterator[None]:
    """Send START, then COMPLETE with the version of each table that the block commits, or FAIL.

    `OPENLINEAGE_URL`, or `openlineage.yml`, says where to.

    Args:
        job: its name.
        reads: the tables that it reads, and the version of each.
    """
    client, run = OpenLineageClient(), Run(str(generate_new_uuid()))
    commits = _Commits()

    def send(state: RunState) -> None:
        now = datetime.now(UTC).isoformat()
        inputs = [InputDataset(*_name(table), facets=_at(v)) for table, v in reads.items()]
        client.emit(
            RunEvent(
                eventTime=now,
                producer=PRODUCER,
                run=run,
                job=Job("lakelog", job),
                eventType=state,
                inputs=inputs,
                outputs=commits.outputs,
            )
        )

    logger = logging.getLogger("lakelog.commit")
    logger.setLevel(logging.INFO)
    logger.addHandler(commits)
    send(RunState.START)
    try:
        yield
    except BaseException:
        send(RunState.FAIL)
        raise
    else:
        send(RunState.COMPLETE)
    finally:
        logger.removeHandler(commits)
        client.close()


class _Commits(logging.Handler):
    """The tables that were committed to, as OpenLineage calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[OutputDataset] = []

    def emit(self, record: logging.LogRecord) -> None:
        commit = json.loads(record.getMessage())
        if commit["outcome"] == "committed":
            size = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                size=commit["bytes_new"], fileCount=commit["num_add"]
            )
            self.outputs.append(
                OutputDataset(
                    *_name(commit["table"]),
                    facets=_at(commit["committed_version"]),
                    outputFacets={"outputStatistics": size},
                )
            )


def _name(table: str) -> tuple[str, str]:
    """Namespace and name, as OpenLineage has them for tables that are folders."""
    uri = urlsplit(table)
    place = f"{uri.scheme}://{uri.netloc}" if uri.netloc else "file"
    return place, uri.path.strip("/") if uri.netloc else uri.path


def _at(version: int):
    facet = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(version))
    return {"version": facet}
