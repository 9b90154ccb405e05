"""Importing the core stays cheap: what is heavy is loaded by what needs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("pyspark", "pandas", "numpy", "sqlglot", "pyarrow.dataset", "pyarrow.parquet")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def _loaded_by_each(before: str, statements: dict[str, str]) -> dict[str, set[str]]:
    """What each statement, or what comes before all of them, loads.

    Each is run by a fork of the one process that has run what comes before.
    """
    code = (
        "import json, os, sys\n"
        f"{before}\n"
        "loaded = {}\n"
        f"for name, statement in {statements!r}.items():\n"
        "    heard, said = os.pipe()\n"
        "    if os.fork() == 0:\n"
        "        try:\n"
        "            with open(os.devnull, 'w') as sys.stdout:\n"
        "                exec(statement)\n"
        "            with open(said, 'w') as pipe:\n"
        "                pipe.write(' '.join(sys.modules))\n"
        "            os._exit(0)\n"
        "        except BaseException as error:\n"
        "            os.write(2, f'{name}: {error!r}'.encode())\n"
        "            os._exit(1)\n"
        "    os.close(said)\n"
        "    with open(heard) as pipe:\n"
        "        loaded[name] = pipe.read().split()\n"
        "    assert os.wait()[1] == 0, name\n"
        "print(json.dumps(loaded))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    return {name: set(found) for name, found in json.loads(printed).items()}


@pytest.mark.parametrize("package", ["lakelog.core", "lakelog.logstores"])
def test_importing_a_lower_layer_loads_no_engine_and_nothing_heavy(package: str) -> None:
    assert not _loaded(f"import {package}") & set(HEAVY)


def test_opening_a_log_needs_no_engine(tmp_path: object) -> None:
    loaded = _loaded(
        "from lakelog.core import DeltaLog, Operation\n"
        "from lakelog.core.actions import AddFile\n"
        f"DeltaLog.for_table({str(tmp_path)!r}).table_exists()"
    )
    assert not loaded & {"pyspark", "pandas", "sqlglot", "pyarrow.dataset"}


def test_a_stream_is_planned_and_read_without_pandas(tmp_path: Path) -> None:
    """Its source is a process of its own for each query, and pandas 0.2 s of it."""
    pytest.importorskip("pyspark")
    pytest.importorskip("pandas")
    from lakelog.core import write_arrow

    uri = str(tmp_path / "t")
    for number in range(3):
        write_arrow(uri, {"id": [number], "p": ["a"]}, mode="append")
    loaded = _loaded(
        "from lakelog.spark.format.data_source import LakelogSource\n"
        f"source = LakelogSource({{'path': {uri!r}, 'startingversion': '0'}})\n"
        "reader = source.streamReader(source.schema())\n"
        "start = reader.initialOffset()\n"
        "has_limits = hasattr(reader, 'getDefaultReadLimit')\n"  # since PySpark 4.2
        "limits = (start, reader.getDefaultReadLimit()) if has_limits else ()\n"
        "end = reader.latestOffset(*limits)\n"
        "tasks = reader.partitions(start, end)\n"
        "assert sum(batch.num_rows for task in tasks for batch in reader.read(task)) == 3"
    )
    assert "pyarrow.parquet" in loaded
    assert "pandas" not in loaded


def test_opening_a_table_of_few_files_loads_few_modules(tmp_path: Path) -> None:
    """`pyarrow.compute` alone is 40 ms, and nothing here is long enough to need it."""
    from lakelog.core import delete_rows, write_arrow

    uri = str(tmp_path / "t")
    for number in range(12):
        write_arrow(uri, {"id": [number], "p": ["a"]}, mode="append")
    delete_rows(uri, "id = 0")
    assert (tmp_path / "t" / "_delta_log" / "_last_checkpoint").exists()
    loaded = _loaded(
        "from lakelog.core import DeltaLog\n"
        f"assert DeltaLog.for_table({uri!r}).snapshot.num_files == 11"
    )
    needless = {"pyarrow.compute", "pyarrow.dataset", "pandas", "sqlglot", "boto3", "asyncio"}
    assert not loaded & needless
    assert len(loaded) <= 380, len(loaded)


def test_a_client_of_s3_does_without_the_resources_of_boto3() -> None:
    """They, and what they import, are 20 ms of each first opening."""
    pytest.importorskip("botocore")
    loaded = _loaded(
        "from lakelog.logstores.s3.client import S3Client\n"
        "conf = {'fs.s3a.access.key': 'k', 'fs.s3a.secret.key': 's', 'fs.s3a.endpoint': 'http://h'}\n"
        "assert S3Client.from_conf(conf, 'bucket').sdk.meta.service_model.service_name == 's3'"
    )
    assert "botocore.client" in loaded
    assert not loaded & {"boto3", "s3transfer", "pyarrow", "pandas"}


@pytest.mark.parametrize("service", ["sts", "sso", "sso-oidc"])
def test_the_session_of_a_client_of_s3_knows_the_services_of_credentials(service: str) -> None:
    botocore = pytest.importorskip("botocore.session")
    from lakelog.logstores.s3.models import loader_of

    core = botocore.get_session()
    core.register_component("data_loader", loader_of(core))
    client = core.create_client(service, region_name="eu-west-1")
    assert client.meta.service_model.service_name == service


USES = {
    "files": "DeltaLog.for_table(uri).snapshot.files()",
    "rows": "DeltaLog.for_table(uri).snapshot.to_arrow()",
    "append": "write_arrow(uri, pq.ParquetFile(parquet).read(), mode='append')",
    "commit": "DeltaLog.for_table(uri).start_transaction().commit([], Operation('WRITE'))",
}


def test_opening_reading_and_appending_load_no_pandas(tmp_path: Path) -> None:
    """pyarrow loads it for the first array that it makes of Python's objects: 0.3 s, once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lakelog.core import write_arrow

    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    uri, parquet = str(tmp_path / "t"), str(tmp_path / "rows.parquet")
    pq.write_table(rows, parquet)
    for _ in range(12):
        write_arrow(uri, rows, mode="append")
    loaded = _loaded_by_each(
        "import pyarrow.parquet as pq\n"
        "from lakelog.core import DeltaLog, Operation, write_arrow\n"
        f"uri, parquet = {uri!r}, {parquet!r}",
        USES,
    )
    for use, names in loaded.items():
        assert "lakelog.core.delta_log" in names, use
        assert not names & {"pandas", "sqlglot", "boto3"}, use


COMMANDS = {
    "delete": "delete_rows(uri, 'id = 1')",
    "update": "update_rows(uri, {'p': \"'c'\"}, 'id >= 2')",
    "merge": "merge(uri, rows, 't.id = s.id', target_alias='t', source_alias='s')"
    ".when_matched_update({'p': 's.p'}).when_not_matched_insert_all().execute()",
    "optimize": "optimize(uri)",
    "vacuum": "vacuum(uri)",
    "restore": "restore(uri, version=3)",
    "filter": 'DeltaLog.for_table(uri).snapshot.to_arrow(where=\'id > 1 and p in ("a", "b")\')',
}


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["plain", "partitioned"])
def test_commands_load_no_pandas(partition_by: tuple[str, ...], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lakelog.core import write_arrow

    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    parquet = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"id": [2, 3], "p": ["x", "y"]}), parquet)
    for _ in range(12):
        write_arrow(str(tmp_path / "t"), rows, mode="append", partition_by=partition_by)
    uris = {
        command: str(shutil.copytree(tmp_path / "t", tmp_path / command)) for command in COMMANDS
    }
    loaded = _loaded_by_each(
        "import pyarrow.parquet as pq\nfrom lakelog.core import *",
        {
            command: f"uri, rows = {uris[command]!r}, pq.ParquetFile({parquet!r}).read()\n{does}"
            for command, does in COMMANDS.items()
        },
    )
    for command, names in loaded.items():
        assert "lakelog.core.delta_log" in names, command
        assert not names & {"pandas", "boto3"}, command


def test_a_change_feed_loads_no_pandas(tmp_path: Path) -> None:
    import pyarrow as pa

    from lakelog.core import delete_rows, write_arrow

    uri = str(tmp_path / "t")
    feed = {"delta.enableChangeDataFeed": "true"}
    write_arrow(uri, pa.table({"id": [1, 2]}), mode="append", properties=feed)
    delete_rows(uri, "id = 1")
    loaded = _loaded(
        "from lakelog.core import table_changes\n"
        f"assert table_changes({uri!r}, 0).read_all().num_rows == 3"
    )
    assert not loaded & {"pandas", "boto3"}


def test_the_program_reads_a_table_without_pandas(tmp_path: object) -> None:
    from lakelog.core import write_arrow

    write_arrow(str(tmp_path), {"id": [1], "p": ["a"]}, mode="append")
    commands = ("describe", "files", "sample", "schema", "history")
    loaded = _loaded_by_each(
        "import sys\nfrom lakelog.cli import main",
        {
            command: f"sys.argv = ['lakelog', {command!r}, {str(tmp_path)!r}]\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
            for command in commands
        },
    )
    for command, names in loaded.items():
        assert "lakelog.cli.app" in names, command
        assert "pandas" not in names, command


FIRST_LINES = {
    "--help": (200, {"pyarrow", "numpy", "rich.console"}),
    "history": (300, {"pyarrow", "numpy"}),
    "schema": (480, {"pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset"}),
}
"""Command -> the most modules that it may load, an interpreter's own included, and which not."""


@pytest.mark.parametrize("command", FIRST_LINES)
def test_the_first_line_of_the_program_waits_for_few_modules(command: str, tmp_path: Path) -> None:
    """Loading them is most of what such a command does: 0.3 ms each, and 90 ms for pyarrow."""
    from lakelog.core import write_arrow

    most, forbidden = FIRST_LINES[command]
    write_arrow(str(tmp_path), {"id": [1]}, mode="append")
    code = (
        "import atexit, sys\n"
        "from lakelog.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['lakelog', {command!r}, {str(tmp_path)!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = set(done.stderr.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "lakelog.cli.app" in loaded
    assert not loaded & {*forbidden, "pandas", "sqlglot", "boto3", "boto3.resources", "pyspark"}
    assert len(loaded) <= most, sorted(loaded)


def test_pandas_is_there_for_whoever_wants_it() -> None:
    pytest.importorskip("pandas")
    if version("pyarrow").startswith("17."):
        pytest.skip("pyarrow 17 looks for pandas until it finds it")
    code = (
        "from lakelog.cli.startup import keep_pandas_out\n"
        "keep_pandas_out()\n"
        "import pyarrow as pa, sys\n"
        "pa.array([1, 'x'][:1])\n"
        "print('pandas' in sys.modules)\n"
        "import pandas\n"
        "print(pandas.DataFrame({'a': [1]}).shape)"
    )
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split("\n")
    assert found[:2] == ["False", "(1, 1)"]


def test_the_data_pipeline_is_the_only_layer_that_loads_pyspark() -> None:
    assert "pyspark" not in _loaded("import lakelog.spark"), "only a session's user needs it"
