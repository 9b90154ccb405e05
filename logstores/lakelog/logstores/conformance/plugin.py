"""A pytest plugin: the checks on a URI, without a line of code.

    pytest --pyargs lakelog.logstores.conformance.suite --lakelog-uri s3a://bucket/prefix

pytest loads this module at each start, through an entry point, so it imports nothing but pytest
until one of the fixtures is used.
"""

from __future__ import annotations

import uuid
import warnings
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore

__all__ = [
    "lakelog_root",
    "lakelog_store",
    "pytest_addoption",
    "pytest_collection_modifyitems",
]

SUITE: Final = "lakelog/logstores/conformance/suite.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the three options."""
    group = parser.getgroup("lakelog", "conformance of a lakelog LogStore")
    group.addoption(
        "--lakelog-uri",
        metavar="URI",
        help="folder that exists or can be created; each run works in a new folder below it",
    )
    group.addoption(
        "--lakelog-store",
        metavar="CLASS",
        help="dotted path of a LogStore class, or an entry point's name; by default what "
        "the settings choose for the URI",
    )
    group.addoption(
        "--lakelog-conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting, named as in Spark's conf; may be repeated",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run the suite on nothing.

    Raises:
        pytest.UsageError: the suite was asked for without a URI, or a setting has no `=`.
    """
    if not any(item.path.as_posix().endswith(SUITE) for item in items):
        return
    if not config.getoption("--lakelog-uri"):
        raise pytest.UsageError(f"{SUITE} needs --lakelog-uri: the folder to test the store in")
    conf_of(config)


def conf_of(config: pytest.Config) -> dict[str, str]:
    """The settings of the command line.

    Raises:
        pytest.UsageError: one of them is not KEY=VALUE. Its text is not shown: it may be a secret.
    """
    conf: dict[str, str] = {}
    pairs: list[str] = config.getoption("--lakelog-conf") or []
    for number, pair in enumerate(pairs, start=1):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise pytest.UsageError(f"--lakelog-conf number {number} is not KEY=VALUE")
        conf[key.strip()] = value.strip()
    store = config.getoption("--lakelog-store")
    if store:
        conf["spark.delta.logStore.class"] = store
    return conf


def _uri(config: pytest.Config) -> str:
    return str(config.getoption("--lakelog-uri"))


@pytest.fixture(scope="session")
def lakelog_root(request: pytest.FixtureRequest) -> Iterator[str]:
    """A new folder below the URI, which is deleted at the end where the storage lets us."""
    from lakelog.logstores import log_store_for
    from lakelog.logstores.conformance.cleanup import remove_folder

    uri = _uri(request.config)
    root = f"{uri.rstrip('/')}/lakelog-conformance-{uuid.uuid4().hex}"
    yield root
    store = log_store_for(uri, conf_of(request.config))
    problem = remove_folder(store, root)
    store.close()
    if problem:
        warnings.warn(f"the files of the checks remain in {root}: {problem}", stacklevel=1)


@pytest.fixture
def lakelog_store(request: pytest.FixtureRequest) -> Iterator[LogStore]:
    """The store that the options name."""
    from lakelog.logstores import log_store_for

    store = log_store_for(_uri(request.config), conf_of(request.config))
    yield store
    store.close()
