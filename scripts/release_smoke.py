"""Install a wheel with each of its extras, and use each against its server.

    python scripts/release_smoke.py dist/lakelog-0.1.0-py3-none-any.whl [--pythons "3.11 3.13"]

Each Python and each extra has a new environment, which holds the wheel, that extra and nothing of
this repository, and what runs in it runs in another folder. The servers are those of the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from environments import environment, keep_pyspark
from interpreters import PROJECT, interpreter, minors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Storage = tuple[str, dict[str, str]]

REPOSITORY = PROJECT.parent
BASE = "(none)"
_LONGEST = 600
"""Seconds for one use: of Spark it is a session with a few queries."""

# Where the wheel comes from, before all else; then rows in, out and away.
_USE = """
import json, sys
import lakelog.core
from lakelog.core import delete_rows, read_arrow, write_arrow
assert lakelog.core.__file__.startswith(sys.prefix), lakelog.core.__file__
uri, conf = sys.argv[1], json.loads(sys.argv[2])
write_arrow(uri, {"id": [1, 2, 3]}, conf=conf)
write_arrow(uri, {"id": [4]}, mode="append", conf=conf)
delete_rows(uri, "id = 2", conf=conf)
assert sorted(read_arrow(uri, conf=conf)["id"].to_pylist()) == [1, 3, 4]
"""
_WITHOUT = """
from lakelog.logstores import MissingExtraError, log_store_for
try:
    import lakelog.spark
except MissingExtraError as error:
    assert error.extra == "spark", error
else:
    raise AssertionError("no PySpark, and no error")
for scheme, extra in (("s3a", "s3"), ("gs", "gcs"), ("hdfs", "hdfs")):
    try:
        list(log_store_for(f"{scheme}://host/t").list_from(f"{scheme}://host/t/_delta_log/0"))
    except MissingExtraError as error:
        assert error.extra == extra and f"[{extra}]" in str(error), error
    else:
        raise AssertionError(f"no extra {extra}, and no error")
"""
# A bar in a kernel that has nothing else.
_NOTEBOOK = """
from jupyter_client.manager import run_kernel
cell = '''
import lakelog.core.progress
lakelog.core.progress._PATIENCE = -1.0
lakelog.core.write_arrow("t", {"id": [1]}, progress="auto")
'''
seen = []
with run_kernel() as client:
    client.execute_interactive(cell, timeout=60, output_hook=seen.append)
drawn = [each["content"]["data"] for each in seen if "data" in each["content"]]
assert any("<progress" in each.get("text/html", "") for each in drawn), seen
"""
# The address that is printed leads to a page that names the table.
_UI = """
import re, subprocess, sys, urllib.request
asked = [sys.argv[1], "ui", sys.argv[2], "--no-open"]
with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as server:
    try:
        url = re.search(r"http://[^ ]+", server.stdout.readline())[0]
        keeps_cookies = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with keeps_cookies.open(url, timeout=60) as reply:
            page = reply.read().decode()
        assert "smoke-table" in page, page[:2000]
    finally:
        server.terminate()
"""
# What the page of the package on an index says first.
_README = """
import re, sys
from importlib.metadata import metadata
page = metadata("lakelog").get_payload()
code = re.search(r"```python\\n(.*?)```", page, re.DOTALL)[1]
exec(code.replace("/tmp/", sys.argv[1] + "/"), {})
"""


def extras() -> list[str]:
    """What the wheel may be installed with; the first is nothing."""
    return [BASE, *_extras()]


def _extras() -> dict[str, list[str]]:
    found = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    return {str(extra): list(needed) for extra, needed in found.items()}


@contextlib.contextmanager
def storages() -> Iterator[dict[str, Callable[[], Storage]]]:
    """The servers, and per extra how to get the URI of a new table there, with the conf."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from support.oci_server import oci_server
    from support.oss_server import oss_server
    from support.rsa_key import new_pem
    from support.servers.azurite import run_azurite
    from support.servers.fake_gcs import run_fake_gcs
    from support.servers.hdfs import run_hdfs
    from support.servers.minio import run_minio

    with contextlib.ExitStack() as stack:
        s3, gcs, azure, hdfs, oss, oci = (
            stack.enter_context(each())
            for each in (run_minio, run_fake_gcs, run_azurite, run_hdfs, oss_server, oci_server)
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakelog-smoke-")))
        with contextlib.closing(s3.client()) as client:
            client.create_bucket(Bucket="lake")
        with azure.client() as client:
            client.create_container("lake")
        bucket = gcs.new_bucket()
        key = folder / "key.pem"
        key.write_text(new_pem())
        oss_conf = {"endpoint": oss.url, "accessKeyId": "id", "accessKeySecret": "secret"}
        oci_conf = {
            "hostname": oci.url,
            "auth.tenantId": "ocid1.tenancy.oc1..a",
            "auth.userId": "ocid1.user.oc1..a",
            "auth.fingerprint": ":".join(["00"] * 16),
            "auth.pemfilepath": str(key),
        }
        fsspec = {
            "spark.delta.logStore.class": "lakelog.contrib.fsspec_store.FsspecLogStore",
            "spark.lakelog.fsspec.exclusiveCreate": "host",
        }
        roots: dict[str, Storage] = {
            "s3": ("s3a://lake", s3.conf),
            "gcs": (f"gs://{bucket}", gcs.conf),
            "azure": (f"abfss://lake@{azure.account}.dfs.core.windows.net", azure.conf),
            "hdfs": (f"{hdfs.uri}/lakelog-test", hdfs.conf),
            "fsspec": (f"file://{folder}", fsspec),
            "oss": (
                "oss://bucket",
                {f"spark.hadoop.fs.oss.{k}": v for k, v in oss_conf.items()}
                | {"spark.hadoop.fs.oss.region": "cn-hangzhou"},
            ),
            "oci": (
                "oci://bucket@ns",
                {f"spark.hadoop.fs.oci.client.{k}": v for k, v in oci_conf.items()},
            ),
            BASE: (f"file://{folder}", {}),
        }

        def new_table(extra: str) -> Callable[[], Storage]:
            root, conf = roots[extra]
            return lambda: (f"{root}/{uuid.uuid4().hex}", conf)

        yield {extra: new_table(extra) for extra in roots}


def use(python: Path, extra: str, new_table: dict[str, Callable[[], Storage]]) -> None:
    """Use an extra in the environment that has it.

    Raises:
        subprocess.CalledProcessError: it failed; `stderr` says how.
    """
    within = [name for name in new_table if name == extra or (extra == "all" and name in _ALL)]
    # Spark's workers are the first python3 of the PATH, as for who has activated the environment.
    activated = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory(prefix="lakelog-smoke-") as folder:

        def run(program: Path, *argv: str) -> None:
            subprocess.run(
                [str(program), *argv],
                cwd=folder,
                env=activated,
                capture_output=True,
                text=True,
                check=True,
                timeout=_LONGEST,
            )

        for name in within:
            uri, conf = new_table[name]()
            run(python, "-c", _USE, uri, json.dumps(conf))
        if extra == BASE:
            run(python, "-c", _WITHOUT)
        if extra in ("spark", "all"):
            run(python, "-c", _README, folder)
        if extra == "notebook":
            run(python, "-c", _NOTEBOOK)
        if extra in ("cli", "all"):
            run(python, "-c", _USE, f"{folder}/t", "{}")
            run(python.with_name("lakelog"), "history", f"{folder}/t", "--json")
        if extra in ("ui", "all"):
            run(python, "-c", _USE, f"{folder}/smoke-table", "{}")
            run(python, "-c", _UI, str(python.with_name("lakelog")), folder)


_ALL = ("s3", "gcs", "azure", "hdfs", "fsspec")
"""Storages whose extras are in `all`."""


def smoke(wheel: Path, pythons: list[str], folder: Path) -> list[tuple[str, ...]]:
    """Use every extra of a wheel on every Python.

    Args:
        wheel: what to install.
        pythons: minor versions.
        folder: for the environments.

    Returns:
        Rows of a table: the extra, and for each Python how long it took, or how it failed.
    """
    found = {minor: interpreter(minor) for minor in pythons}
    keep_pyspark(_extras()["spark"][0])
    with storages() as new_table:

        def tried(extra: str, minor: str) -> str:
            began = time.monotonic()
            name = "base" if extra == BASE else extra
            asked = str(wheel) if extra == BASE else f"{wheel}[{extra}]"
            try:
                python = environment(folder / f"{minor}-{name}", found[minor], asked)
                use(python, extra, new_table)
            except (subprocess.SubprocessError, OSError) as error:
                said = str(getattr(error, "stderr", None) or error)
                sys.stderr.write(f"== {extra} on Python {minor}\n{said}\n")
                return "failed: " + said.strip().rpartition("\n")[2][:80]
            return f"{time.monotonic() - began:.0f} s"

        cells = [(extra, minor) for extra in extras() for minor in pythons]
        with ThreadPoolExecutor(2) as pool:
            ended = dict(zip(cells, pool.map(lambda cell: tried(*cell), cells), strict=True))
    return [(e, *(ended[e, minor] for minor in pythons)) for e in extras()]


def main() -> int:
    """Print the table; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--pythons", default=" ".join(minors()), help="minor versions")
    options = parser.parse_args()
    pythons = options.pythons.split()
    with tempfile.TemporaryDirectory(prefix="lakelog-envs-") as folder:
        rows = smoke(options.wheel.resolve(), pythons, Path(folder))
    sys.stdout.write("\n".join(table(["extra", *pythons], rows)) + "\n")
    return int(any("failed" in cell for row in rows for cell in row))


def table(head: list[str], rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
