"""Without a storage's extra, whatever is asked of its store says which one is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from lakelog.logstores.errors import install_command

REPOSITORY = Path(__file__).parents[3]
STORES = {
    "s3a://bucket/t": ("boto3 botocore", "s3"),
    "cos://bucket.lab/t fs.cos.lab.endpoint=http://127.0.0.1:9 fs.cos.lab.access.key=abcdefgh "
    "fs.cos.lab.secret.key=abcdefgh": ("boto3 botocore", "s3"),
    "s3a://bucket/t spark.delta.logStore.s3a.impl=io.delta.storage.S3DynamoDBLogStore": (
        "boto3 botocore",
        "s3",
    ),
    "gs://bucket/t": ("google.cloud google.auth google.api_core", "gcs"),
    "az://box/t spark.lakelog.azure.account=a": ("azure", "azure"),
    "hdfs://127.0.0.1:9/t": ("hdfs_native", "hdfs"),
    "oss://bucket/t fs.oss.endpoint=http://127.0.0.1:9": ("alibabacloud_oss_v2", "oss"),
    "oci://bucket@ns/t": ("oci", "oci"),
}
ASK = """
import sys
blocked, uri, *settings = sys.argv[1:]
class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in blocked.split()):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from lakelog.logstores import MissingExtraError, log_store_for
from lakelog.logstores.doctor.finding import describe_error
store = log_store_for(uri, dict(each.split("=", 1) for each in settings))
path = uri + "/_delta_log/00000000000000000000.json"
def files():
    from pyarrow.fs import FileSelector
    folder = store.filesystem_path(uri)
    store.filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
named = 0
for ask in (
    lambda: store.settings(),
    lambda: store.capabilities,
    lambda: next(iter(store.list_from(path))),
    lambda: store.read_bytes(path),
    lambda: store.write(path, ["x"], overwrite=True),
):
    try:
        ask()
    except MissingExtraError as error:
        named += 1
        print(error.extra, "|".join(describe_error(error)))
print(named)
"""


@pytest.mark.parametrize("uri", STORES)
def test_the_extra_is_named_by_whatever_is_asked_first(uri: str) -> None:
    missing, extra = STORES[uri]
    done = subprocess.run(
        [sys.executable, "-c", ASK, missing, *uri.split()], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *lines, named = done.stdout.splitlines()
    assert int(named) >= 3
    assert all(line.startswith(f"{extra} ") for line in lines)
    assert all(install_command(extra) in line for line in lines)


WITHOUT_PYSPARK = """
import sys
class Without:
    def __init__(self, finder): self.finder = finder
    def __getattr__(self, name): return getattr(self.finder, name)
    def find_spec(self, name, *more):
        return None if name == "pyspark" else self.finder.find_spec(name, *more)
sys.meta_path[:] = map(Without, sys.meta_path)
try:
    import lakelog.spark
except ImportError as error:
    print(error)
"""


def test_spark_without_its_extra_is_named_when_it_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"lakelog.spark needs an extra: {install_command('spark')}"


def test_how_to_install_is_said_in_one_place() -> None:
    """An index that has no such package is a dead end, so nothing tells of one."""
    texts = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    for root in ("logstores", "core", "spark", "cli", "contrib", "examples", "docker"):
        texts += [p for p in (REPOSITORY / root).rglob("*") if p.suffix in (".py", ".md", ".yaml")]
    of_an_index = re.compile(r"(?:pip install '?|Install `)lakelog\b")
    found = [str(path.relative_to(REPOSITORY)) for path in texts if of_an_index.search(_text(path))]
    assert found == ["logstores/lakelog/logstores/errors.py"]


class _Installed:
    def __init__(self, origin: str | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._origin


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'lakelog[s3]'"),
        (
            '{"url": "file:///d/lakelog-1-py3-none-any.whl", "archive_info": {}}',
            "pip install 'lakelog[s3] @ file:///d/lakelog-1-py3-none-any.whl'",
        ),
        (
            '{"url": "file:///src/lakelog", "dir_info": {"editable": true}}',
            "pip install '.[s3]' in a clone of lakelog",
        ),
    ],
)
def test_an_extra_is_installed_as_the_package_was(
    monkeypatch: pytest.MonkeyPatch, origin: str | None, command: str
) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: _Installed(origin))
    assert install_command("s3") == command


def test_code_without_its_metadata_names_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", lacking)
    assert install_command("s3") == "pip install '.[s3]' in a clone of lakelog"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
