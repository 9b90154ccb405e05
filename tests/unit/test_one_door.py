"""Whatever deletes or replaces a file goes through one door, or has a reason to be on the list."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]

DOORS = {
    "core/lakelog/core/log/own_files.py": "the door",
    "core/lakelog/core/portable/made_files.py": "the same for files just made, on executors too",
    "logstores/lakelog/logstores/contract.py": "what the door asks of a store",
    "logstores/lakelog/logstores/service/socket_folder.py": "the door of the service's folder",
}

STORES = (
    "azure",
    "gcs",
    "hdfs",
    "local",
    "memory",
    "object_store",
    "s3",
    "s3_dynamodb",
    "conformance",
)
"""Packages that are a storage, or try one out in a folder of their own: below the door."""

ALLOWED = {
    ("core/lakelog/core/catalogs/governed_store.py", "delete_files"): "a store: it hands on, and "
    "removes a staged commit of its own that nobody ratified",
    ("core/lakelog/core/catalogs/governed_store.py", "staged"): "a store: it hands on",
    ("core/lakelog/core/catalogs/governed_store.py", "write"): "the same, but of no version",
    ("core/lakelog/core/catalogs/published.py", "write"): "a published file that is a part of what "
    "the catalog ratified, by one that was stopped midway",
    **{
        ("core/lakelog/core/catalogs/renewed_store.py", name): "a store: it hands on"
        for name in ("delete_files", "staged", "write")
    },
    **{
        ("core/lakelog/core/catalogs/renewed_files.py", name): "a file system: it hands on"
        for name in (
            *("copy_file", "delete_dir", "delete_dir_contents", "delete_file", "move"),
            *("open_append_stream", "open_output_stream"),
        )
    },
    ("core/lakelog/core/dml/appending/segments.py", "delete_files"): "in the appender's own folder",
    ("core/lakelog/core/transaction/host_queue.py", "rename"): "in the queue of this user and "
    "host, in a folder for temporary files",
    ("core/lakelog/core/transaction/host_queue.py", "rmtree"): "the same",
    ("core/lakelog/core/transaction/host_queue.py", "unlink"): "the same",
    ("core/lakelog/core/maintain/optimize/ordering.py", "unlink"): "a run of a sort, in a "
    "temporary folder that Python made",
    (
        "core/lakelog/core/create/clone/cloned_files.py",
        "open_output_stream",
    ): "a file of a new name, in a folder that the door has made",
    ("cli/lakelog/cli/report/report_command.py", "replace"): "the page whose name the user gave",
    ("cli/lakelog/cli/report/report_command.py", "unlink"): "its draft, of a name that Python made",
    ("cli/lakelog/cli/ui/ui_command.py", "write_text"): "a page that leads to the server, in a "
    "temporary folder that Python made",
    ("core/lakelog/core/maintain/repair/backup.py", "open_output_stream"): "a copy in a backup's "
    "own folder, whose random name is new",
    ("core/lakelog/core/expressions/values/casts.py", "move"): "an offset of times, and no file",
    ("core/lakelog/core/maintain/vacuum/retention.py", "open_output_stream"): "a file of a new "
    "name in the table's own folder",
    ("core/lakelog/core/deletion_vectors/vector_writer.py", "open_output_stream"): "as a clone's",
    ("core/lakelog/core/portable/hive_writer.py", "open_output_stream"): "as a clone's",
    ("core/lakelog/core/hooks/checksum.py", "open_output_stream"): "a draft that the door gave",
    ("core/lakelog/core/checkpoints/checkpoint_files.py", "open_output_stream"): "the same",
    ("spark/lakelog/spark/writing/by_spark.py", "move"): "out of the job's own folder, into one "
    "that the door has made, under a name that holds a UUID",
    ("spark/lakelog/spark/session/bridge.py", "rmdir"): "only a folder that is empty",
    ("logstores/lakelog/logstores/doctor/area.py", "delete_dir"): "a probe's folder, whose random "
    "name is its own",
    ("logstores/lakelog/logstores/doctor/area.py", "rmdir"): "only folders that are empty",
    ("logstores/lakelog/logstores/doctor/contract_probe.py", "write"): "in a probe's folder",
    (
        "logstores/lakelog/logstores/service/served_connection.py",
        "write",
    ): "what delta-spark asks for: its own hints and checksums",
    ("logstores/lakelog/logstores/service/endpoint.py", "replace"): "a file that the service "
    "has read as an endpoint file, or that was not there",
    ("logstores/lakelog/logstores/service/endpoint.py", "unlink"): "its draft",
    ("logstores/lakelog/logstores/service/server.py", "unlink"): "the file that it has written",
}

CALLS = {
    "copy_file",
    "delete_dir",
    "delete_dir_contents",
    "delete_file",
    "delete_files",
    "delete_root_dir_contents",
    "move",
    "open_append_stream",
    "open_output_stream",
    "removedirs",
    "rename",
    "renames",
    "rmdir",
    "rmtree",
    "staged",
    "truncate",
    "unlink",
    "write_bytes",
    "write_text",
}
"""Names of nothing else."""

OF_MODULES = {("os", "remove"), ("os", "replace"), ("shutil", "move"), ("shutil", "copyfile")}


def writes(tree: ast.AST) -> Iterator[str]:
    """The calls in some code that delete files, or may replace some."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in {*CALLS, "rmtree"}:
            yield node.func.id
        if not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        owner = of.id if isinstance(of, ast.Name) else ""
        of_path = isinstance(of, ast.Call) and ast.unparse(of.func).endswith("Path")
        overwrites = any(
            k.arg == "overwrite" and getattr(k.value, "value", True) is not False
            for k in node.keywords
        )
        if (
            (name in CALLS and ast.unparse(of) not in ("own", "self._own"))
            or (owner, name) in OF_MODULES
            or (name == "replace" and of_path)
            or (name == "write" and overwrites)
        ):
            yield name


def found() -> set[tuple[str, str]]:
    calls = set()
    for root in ("core", "logstores", "spark", "cli", "contrib"):
        for path in (REPOSITORY / root).rglob("*.py"):
            file = str(path.relative_to(REPOSITORY))
            package = file.removeprefix("logstores/lakelog/logstores/").partition("/")[0]
            if file in DOORS or package in STORES or root == "contrib":
                continue
            calls |= {(file, name) for name in writes(ast.parse(path.read_text()))}
    return calls


def test_nothing_is_deleted_or_replaced_past_the_door() -> None:
    """A new caller belongs into `OwnFiles` or `made_files`; the list is for what no table has."""
    assert found() == set(ALLOWED)
    assert all(ALLOWED.values())


@pytest.mark.parametrize(
    "code",
    [
        "store.filesystem.delete_file(path)",
        "self._store.delete_files(paths)",
        "filesystem.delete_dir(folder)",
        "os.remove(path)",
        "Path(path).unlink()",
        "pathlib.Path(draft).replace(path)",
        "shutil.rmtree(folder, ignore_errors=True)",
        "rmtree(folder)",
        "with store.staged(path) as (fs, draft): pass",
        "store.write(path, lines, overwrite=True)",
        "store.write(path, lines, overwrite=must)",
        "os.replace(a, b)",
    ],
)
def test_the_rule_sees(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "store.write(path, lines)",
        "store.write(path, lines, overwrite=False)",
        "text.replace('a', 'b')",
        "own.delete(paths)",
        "with own.staged(path) as (fs, draft): pass",
    ],
)
def test_the_rule_lets_pass(code: str) -> None:
    assert not list(writes(ast.parse(code)))
