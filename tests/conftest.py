"""What every test can ask for, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import collections
import gc
import os
import random
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from support.examples import SEED, examples
from support.spark_java import submit_options

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytest_plugins = [
    "support.days",
    "support.needs",
    "support.groups",
    "support.pages",
    "support.promises",
    "support.timings",
    "support.remembered_peer",
    "support.servers.minio",
    "support.servers.prometheus",
    "support.servers.azurite",
    "support.servers.fake_gcs",
    "support.servers.dynamodb",
    "support.servers.hdfs",
    "support.servers.bad_s3",
    "support.servers.redis_server",
    "support.servers.kafka",
    "support.servers.bridge_jvm",
]

# Of all sessions, those of other processes too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", submit_options())

CI = os.environ.get("CI", "").lower() in ("true", "1")

# What decides whether a change lands draws the same examples each time: new ones are for
# `make soak`, which has a seed. A deadline, or a limit on the time of drawing, would turn a busy
# machine into a failure. Where nobody says, a run draws forty, and `make soak` twice as many.
settings.register_profile(
    "lakelog",
    derandomize=not SEED,
    deadline=None,
    print_blob=True,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lakelog")


_PATIENCE = 5
"""How many times its limit a test of `make soak` or `make cluster` may take: other seeds have
longer stories, on machines that are busy for hours, and only what hangs is to be found by the
time."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What draws its own examples is what `make soak` runs, each time in another order."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.soak)
    if SEED or config.getoption("--nightly"):
        for item in items:
            mark = item.get_closest_marker("timeout")
            limit = float((mark.args[0] if mark else config.getini("timeout")) or 0)
            item.add_marker(pytest.mark.timeout(limit * _PATIENCE), append=False)
    if SEED:
        random.Random(SEED).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nearly all that is made here lives to the end: garbage is looked for when it is done."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: a full collection need not go through them each time."""
    gc.collect()
    gc.freeze()


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if CI and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome = "failed"
        report.longrepr = f"CI accepts no skip: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one; at a user's it stays a skip that can be seen."""
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself while it is imported."""
    report = yield
    _forbid_skip(report)
    return report


_FOLDERS: collections.Counter[str] = collections.Counter()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's, by the same name; that one reads the names of all other folders each time."""
    base = tmp_path_factory.getbasetemp()
    name = re.sub(r"\W", "_", request.node.name)[:30]
    while True:
        folder = base / f"{name}{_FOLDERS[name]}"
        _FOLDERS[name] += 1
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ports are used again: what an endpoint of an older run did must not vouch for this one's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
