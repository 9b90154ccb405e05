"""Spark sessions for the tests that need one.

A process has either classic sessions or Spark Connect ones: PySpark decides by an environment
variable what `pyspark.sql.functions` makes. So the tests run in a classic session, and
`test_connect_suite.py` runs those that are marked `connect` again in processes of its own, clients
of one server, whose URL is in `LAKELOG_TEST_CONNECT`: what lakelog does in another way over
Connect, and what of Spark behaves in another way there (how rows come and go, errors, data sources,
plans). Of a test with several cases a day has one (`support.days`). A test that needs a classic
session asks for `classic_spark`.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from support.spark_confs import CONF
from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

# The URL of a Spark Connect server, in a process that runs its tests there.
CONNECT = os.environ.get("LAKELOG_TEST_CONNECT")

# The workers' Python is this one, whatever `python3` is on the path.
os.environ.setdefault("PYSPARK_PYTHON", WORKERS)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On Connect leave out what needs a classic session, or none."""
    for each in items:
        # PySpark 4.0 leaves its sockets to the garbage collector.
        each.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
    if CONNECT:
        kept = [each for each in items if _runs_on_connect(each)]
        config.hook.pytest_deselected(items=[each for each in items if each not in kept])
        items[:] = kept


def _runs_on_connect(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    mark = item.get_closest_marker("connect")
    if mark is None or "spark" not in names or "classic_spark" in names:
        return False
    cases = item.callspec.params if isinstance(item, pytest.Function) and mark.kwargs else {}
    return all(cases[name] in wanted for name, wanted in mark.kwargs.items())


def _classic() -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("lakelog-tests")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connect(url: str) -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(url).getOrCreate()


@pytest.fixture(scope="session")
def _session() -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        # PySpark's own: sockets and log streams that it leaves to the garbage collector.
        warnings.simplefilter("ignore")
        session = _connect(CONNECT) if CONNECT else _classic()
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()


@pytest.fixture
def spark(_session: SparkSession) -> Iterator[SparkSession]:
    """A session, classic or Connect, whose confs are put back after the test."""
    keys = ("spark.sql.session.timeZone", "spark.sql.sources.partitionOverwriteMode")
    before = {key: _session.conf.get(key, None) for key in keys}
    yield _session
    for key, value in before.items():
        if value is None:
            _session.conf.unset(key)
        else:
            _session.conf.set(key, value)


@pytest.fixture
def classic_spark(spark: SparkSession) -> SparkSession:
    """A classic session, for what Connect does not have: plans, jobs, the JVM."""
    return spark


@pytest.fixture
def java_calls(
    classic_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object]], int]:
    """How many calls of Java something takes, the second time."""
    # Untyped, and of no use to what runs over Connect.
    connection = importlib.import_module("py4j.clientserver").ClientServerConnection
    original, commands = connection.send_command, []

    def counted(self: Any, command: str) -> Any:
        # A thread of py4j lets go of other tests' objects when it likes.
        if not command.startswith("m\n"):
            commands.append(command)
        return original(self, command)

    monkeypatch.setattr(connection, "send_command", counted)

    def count(what: Callable[[], object]) -> int:
        what()  # PySpark looks up its classes only once
        commands.clear()
        what()
        return len(commands)

    return count
