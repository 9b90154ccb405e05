"""Which store kept which promise on which server: a page that the test run itself writes.

    pytest tests/conformance --promises-table docs/backends/promises.md

A pytest plugin. It watches every test whose function is one of the conformance kit's, whatever the
class that inherits it, and writes the page when the run ends. The columns of stores that did not
run stay as they are.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

__all__ = ["Column", "Promises", "parse", "render"]

KIT: Final = "lakelog.logstores.conformance."
PROPERTY: Final = "lakelog_promise"
KEPT, UNDECLARED, BROKEN, NOT_RUN = "✓", "not declared", "**broken**", "–"
UNNAMED: Final = "a server that tests/support/promises.py does not name"
SIZES: Final = {
    "large_megabytes": "largest file, megabytes",
    "many_files": "longest listing, files",
    "race_rounds": "races of threads, and of processes",
    "model_examples": "random histories",
}
"""Attributes of the test classes, which make them cheaper or harder."""
_WORST_FIRST: Final = (BROKEN, KEPT, UNDECLARED)
_SCOPES: Final = {
    "NONE": "nobody",
    "PROCESS": "one process",
    "HOST": "one host",
    "CLUSTER": "all hosts",
}

_SERVER, _SCOPE, _CLASSES = "tested on", "one winner among the writers of", "test classes"

_HEAD = """\
# What was tested on what

Written by the test run itself; nothing here is typed by hand:

```
pytest tests/conformance --promises-table docs/backends/promises.md
```

Each row is a check of the [conformance kit](../conformance.md), each column a store. ✓ means that
no failure was seen in that run on that server; it proves nothing of another version or vendor.
*Not declared* means that the store does not claim the promise (see its
[capabilities](../logstores.md#capabilities)), so that the check had nothing to hold it to. – means
that the check does not apply: the faults of a transport are injected where the transport is HTTP.
A run of some of the tests replaces the columns of their stores and keeps the others.
"""


@dataclass(slots=True)
class Column:
    """What is known of one store."""

    server: str = UNNAMED
    scopes: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    cells: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, check: str, outcome: str) -> None:
        """Note an outcome; of two test classes of one store the worse counts."""
        found = {outcome, self.cells.get(check, outcome)}
        self.cells[check] = next(each for each in _WORST_FIRST if each in found)


class Promises:
    """The plugin's state: columns by store, rows by the kit's own order."""

    def __init__(self, page: Path) -> None:
        """Write the page to `page` in the end."""
        self.page = page
        self.columns: dict[str, Column] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a test, here or in a worker, says."""
        recorded = [value for name, value in report.user_properties if name == PROPERTY]
        if not recorded or not (report.when == "call" or report.failed):
            return
        about: Any = recorded[0]
        store = about["store"]
        column = self.columns.setdefault(store, Column(tested_on().get(store, UNNAMED)))
        column.scopes |= {about["scope"]} - {""}
        column.classes.add(about["class"])
        for name, size in about["sizes"].items():
            column.sizes[name] = max(size, column.sizes.get(name, 0))
        outcome = BROKEN if report.failed else UNDECLARED if about["undeclared"] else KEPT
        if not report.skipped:
            column.add(about["check"], outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page."""
        old = parse(self.page.read_text(encoding="utf-8")) if self.page.exists() else {}
        self.page.write_text(render({**old, **self.columns}), encoding="utf-8")


def render(columns: dict[str, Column]) -> str:
    """The page."""
    from lakelog.logstores.conformance import HttpFaultConformance, LogStoreConformance

    stores = sorted(columns)
    parts = [_HEAD, _table("", _facts(columns), stores)]
    for title, suite in (
        ("The contract", LogStoreConformance),
        ("When the transport fails", HttpFaultConformance),
    ):
        rows = {
            f"{_promise(suite, name)} `{name.removeprefix('test_')}`": [
                columns[store].cells.get(name, NOT_RUN) for store in stores
            ]
            for name in dir(suite)
            if name.startswith("test_")
        }
        parts.append(f"## {title}\n\n{_table('promise', rows, stores)}")
    return "\n".join(parts)


def parse(text: str) -> dict[str, Column]:
    """The columns of a page that `render` wrote."""
    columns: dict[str, Column] = {}
    stores: list[str] = []
    for line in text.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| ") or line.startswith("|---"):
            continue
        if name in ("", "promise"):
            stores = [cell.strip("`") for cell in cells]
            continue
        for store, cell in zip(stores, cells, strict=True):
            _take(columns.setdefault(store, Column()), name, cell)
    return columns


def _take(column: Column, row: str, cell: str) -> None:
    parts = cell.split("<br>")
    if row == _SERVER:
        column.server = cell
    elif row == _SCOPE:
        column.scopes = {key for key, scope_text in _SCOPES.items() if scope_text in parts}
    elif row == _CLASSES:
        column.classes = {part.strip("`") for part in parts}
    elif row in SIZES.values():
        if cell != NOT_RUN:
            column.sizes[next(key for key, title in SIZES.items() if title == row)] = int(cell)
    elif cell != NOT_RUN:
        column.cells[f"test_{row.split('`')[-2]}"] = cell


def _facts(columns: dict[str, Column]) -> dict[str, list[str]]:
    ordered = [columns[store] for store in sorted(columns)]
    return {
        _SERVER: [each.server for each in ordered],
        _SCOPE: [
            "<br>".join(_SCOPES.get(scope, scope) for scope in sorted(each.scopes))
            for each in ordered
        ],
        **{
            title: [str(each.sizes.get(name, NOT_RUN)) for each in ordered]
            for name, title in SIZES.items()
        },
        _CLASSES: ["<br>".join(f"`{c}`" for c in sorted(each.classes)) for each in ordered],
    }


def _table(corner: str, rows: dict[str, list[str]], stores: list[str]) -> str:
    lines = [f"| {corner} | {' | '.join(f'`{store}`' for store in stores)} |"]
    lines.append("|---|" + ":-:|" * len(stores))
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(lines) + "\n"


def _promise(suite: type, name: str) -> str:
    text = (getattr(suite, name).__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _served(module: ModuleType, name: str) -> str:
    """A server's name and version, or where the environment says that it is."""
    url = os.environ.get(getattr(module, "ENDPOINT_VARIABLE", ""), "")
    if url:
        return f"{urlsplit(url).hostname or url}"
    version: str = module.VERSION
    return f"{name} {version.removeprefix('v0.0.0-')}"


def tested_on() -> dict[str, str]:
    """Store -> the server behind it in these tests."""
    # pytest rewrites the servers' modules when it loads them as plugins: not before.
    from support.servers import azurite, dynamodb, fake_gcs, hdfs, minio

    s3, azure = _served(minio, "MinIO"), _served(azurite, "Azurite")
    return {
        "AzureConditionalLogStore": azure,
        "AzureLeaseLogStore": azure,
        "FsspecLogStore": f"fsspec {version('fsspec')}: disk, memory",
        "GCSLogStore": _served(fake_gcs, "fake-gcs-server"),
        "HDFSLogStore": _served(hdfs, "Apache Hadoop"),
        "IBMCOSLogStore": s3,
        "LocalLogStore": f"a local disk on {platform.system()}",
        "MemoryLogStore": "this process",
        "OSSLogStore": "a stand-in of these tests, written from OSS's documentation",
        "OracleCloudLogStore": "a stand-in of these tests, written from Oracle's reference",
        "S3ConditionalLogStore": s3,
        "S3DynamoDBLogStore": f"{s3}, {_served(dynamodb, 'DynamoDB Local')}",
        "S3SingleDriverLogStore": s3,
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--promises-table`."""
    parser.addoption("--promises-table", metavar="PATH", type=Path, help="write the page here")


def pytest_configure(config: pytest.Config) -> None:
    """Watch, in the process that hears all reports."""
    page: Path | None = config.getoption("--promises-table")
    if page is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Promises(page), "lakelog-promises")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report of a check say which store it was about."""
    report = yield
    function: Any = getattr(item, "function", None)
    if getattr(function, "__module__", "").startswith(KIT) and (
        report.when == "call" or report.failed
    ):
        report.user_properties.append((PROPERTY, _about(item, function.__name__)))
    return report


def _about(item: Any, check: str) -> dict[str, Any]:
    """What the page tells of a test; it may have to travel from a worker, as JSON."""
    given = item.funcargs
    store = given.get("store")
    if store is None and "behind" in given:
        store = given["behind"](given["endpoint"])
    return {
        "store": _name(store) if store is not None else item.cls.__name__,
        "scope": store.capabilities.exclusive_create.name if store is not None else "",
        "class": item.cls.__name__,
        "check": check,
        "undeclared": getattr(item.instance, "undeclared", ""),
        "sizes": {name: getattr(item.cls, name) for name in SIZES if hasattr(item.cls, name)},
    }


def _name(store: object) -> str:
    """The store's class, or the one of lakelog that a test made it from."""
    classes = type(store).__mro__
    return next(
        (cls for cls in classes if cls.__module__.startswith("lakelog.")), classes[0]
    ).__name__
