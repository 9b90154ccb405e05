"""Which tests run in one process: those that share what is slow to start.

A Spark session takes ten seconds and a gigabyte, a cluster of HDFS four seconds; with a group each
of them is started once a run, whatever the number of processes. Groups begin before single tests,
the largest first, so the processes end together. One with Spark alone would outlast all others: its
files are dealt out to two.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from support.needs import wanted

if TYPE_CHECKING:
    from collections.abc import Generator

# Of several the first one decides; the others are started once more.
_ORDER = (
    "hdfs",
    "azurite",
    "fake_gcs",
    "dynamodb",
    "minio",
    "bad_s3",
    "redis",
    "kafka",
    "prometheus",
    "bridge_jvm",
)


_SPARKS = 2


def group_of(item: pytest.Item) -> str | None:
    """The group of a test that says none itself, or `None` for one that may run anywhere."""
    if item.get_closest_marker("xdist_group"):
        return None
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        # A file is in one of them, for what its cases share.
        return f"spark {zlib.crc32(item.path.name.encode()) % _SPARKS}"
    if "delta_spark" in fixtures:
        return "delta-spark"
    tools = wanted([item])
    return next((name for name in _ORDER if name in tools), None)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Before the plugin that deals the groups out looks at them: it comes first where it can."""
    for item in items:
        group = group_of(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    yield
