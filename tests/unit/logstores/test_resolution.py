"""Which store a URI gets, and what is said when the conf is wrong."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any

import pytest

import lakelog.logstores
from lakelog.logstores import (
    InconsistentLogStoreConfError,
    InvalidLogStoreConfError,
    LocalLogStore,
    LogStoreClassError,
    LogStoreConfError,
    MemoryLogStore,
    MissingExtraError,
    UnknownLogStoreKeyError,
    log_store_for,
    resolve,
)
from lakelog.logstores.resolution import class_path_of
from lakelog.logstores.schemes_elsewhere import SCHEMES

if TYPE_CHECKING:
    from pathlib import Path

CLASS = "spark.delta.logStore.class"
MEMORY = "lakelog.logstores.MemoryLogStore"
LOCAL = "lakelog.logstores.LocalLogStore"

MODULE = """
from lakelog.logstores import (
    LocalLogStore, LogStore, LogStoreError, MemoryLogStore, MissingExtraError
)

class MyStore(LocalLogStore):
    '''A third party's store.'''

class NeedsKey(MemoryLogStore):
    def __init__(self, conf=None):
        super().__init__(conf)
        self.key = self.conf["my.key"]

class NeedsExtra(MemoryLogStore):
    def __init__(self, conf=None):
        raise MissingExtraError("mine", "MyStore")

class Unfinished(LogStore):
    def read(self, path):
        return iter(())

class NoStore:
    pass

def a_function(conf):
    return MyStore(conf)
"""


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed module with stores, good and bad."""
    package = tmp_path / f"third_party_{tmp_path.name}".replace("-", "_")
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "stores.py").write_text(MODULE)
    (package / "needs_sdk.py").write_text("import an_sdk_that_is_not_installed\n")
    (package / "broken.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package.name


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("mine", "lakelog.logstores:MemoryLogStore", "lakelog.logstores"),
            EntryPoint("other", "lakelog.logstores.local:LocalLogStore", "lakelog.logstores"),
        ]
    )

    def select(**params: Any) -> EntryPoints:
        return points.select(**params)

    monkeypatch.setattr(importlib.metadata, "entry_points", select)


# Defaults


@pytest.mark.parametrize("uri", ["/lake/t", "file:/lake/t", "file:///lake/t", "FILE:///lake/t"])
def test_local_paths_get_the_local_store(uri: str) -> None:
    assert type(log_store_for(uri)) is LocalLogStore
    assert type(log_store_for(uri, {"spark.app.name": "x"})) is LocalLogStore


def test_the_scheme_memory_gets_the_memory_store() -> None:
    assert type(log_store_for("memory://x/t")) is MemoryLogStore


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://b/t", "S3ConditionalLogStore"),
        ("s3a://b/t", "S3ConditionalLogStore"),
        ("S3N://b/t", "S3ConditionalLogStore"),
        ("gs://b/t", "GCSLogStore"),
        ("hdfs:///t", "HDFSLogStore"),
        ("abfss://c@a.dfs.core.windows.net/t", "AzureConditionalLogStore"),
        ("wasbs://c@a.blob.core.windows.net/t", "AzureConditionalLogStore"),
        ("az://c/t", "AzureConditionalLogStore"),
    ],
)
def test_each_scheme_has_its_store(uri: str, name: str) -> None:
    found = resolve(uri)
    assert found.class_path == f"lakelog.logstores.{name}"
    assert found.key is None
    assert getattr(lakelog.logstores, name).__name__ == name


@pytest.mark.parametrize("uri", ["adl://b/t", "ftp://b/t", "swift://b/t"])
def test_a_scheme_without_a_store_is_refused_with_the_key_that_names_one(uri: str) -> None:
    scheme = uri.partition(":")[0].lower()
    with pytest.raises(LogStoreClassError) as caught:
        log_store_for(uri)
    assert f"no built-in store for the scheme '{scheme}'" in str(caught.value)
    assert f"spark.delta.logStore.{scheme}.impl" in str(caught.value)


@pytest.mark.parametrize(("uri", "meant"), [("s4a://b/t", "s3a"), ("gcs://b/t", "gs")])
def test_a_scheme_that_is_nearly_one_is_told_the_right_one(uri: str, meant: str) -> None:
    with pytest.raises(LogStoreClassError, match=f"did you mean {meant}://"):
        log_store_for(uri)


@pytest.mark.parametrize(
    ("uri", "advice"),
    [
        ("dbfs:/mnt/lake/t", "URI of the storage itself (s3://, abfss:// or gs://)"),
        ("DBFS:/Volumes/a/b/c", "URI of the storage itself (s3://, abfss:// or gs://)"),
        ("adl://account.azuredatalakestore.net/t", "abfss://container@account.dfs"),
        ("adls://container/t", "abfss://container@account.dfs"),
        ("r2://b/t", "write s3://bucket/table, and set spark.hadoop.fs.s3a.endpoint to https://A"),
        ("b2://b/t", "endpoint to https://s3.REGION.backblazeb2.com"),
        ("cosn://b/t", "endpoint to https://cos.REGION.myqcloud.com"),
        ("obs://b/t", "endpoint to https://obs.REGION.myhuaweicloud.com"),
        ("minio://b/t", "such as http://localhost:9000"),
        ("http://host/t", "Write the storage's own URI, such as s3://bucket/table"),
        ("https://account.blob.core.windows.net/c/t", "Write the storage's own URI"),
        ("ftp://host/t", "Write the URI of an object store, or a path on a disk"),
        ("sftp://host/t", "Write the URI of an object store, or a path on a disk"),
        ("viewfs://cluster/t", "write hdfs://namenode/path"),
        ("webhdfs://host:9870/t", "write hdfs://namenode/path"),
        ("hf://datasets/a/b", "huggingface_hub.snapshot_download()"),
        ("unity://main.sales.flights", "give the table's own, which SQL shows by DESCRIBE DETAIL"),
        ("sharing:///profile.share", "the package delta-sharing"),
        ("delta:/lake/t", "write the path alone"),
    ],
)
def test_a_scheme_of_other_tools_is_answered_with_what_to_write(uri: str, advice: str) -> None:
    scheme = uri.partition(":")[0].lower()
    with pytest.raises(LogStoreClassError) as caught:
        log_store_for(uri)
    assert advice in str(caught.value)
    assert f"For a store of your own, set spark.delta.logStore.{scheme}.impl" in str(caught.value)


def test_no_scheme_that_has_a_store_is_said_to_be_one_of_other_tools() -> None:
    for scheme in SCHEMES:
        with pytest.raises(LogStoreClassError):
            resolve(f"{scheme}://b/t")


def test_a_scheme_of_other_tools_may_have_a_store_of_ones_own() -> None:
    conf = {"spark.delta.logStore.dbfs.impl": "lakelog.logstores.LocalLogStore"}
    assert resolve("dbfs:/mnt/t", conf).class_path == "lakelog.logstores.LocalLogStore"


def test_a_mistyped_java_class_is_told_the_right_one() -> None:
    conf = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoLogStore"}
    with pytest.raises(LogStoreClassError) as caught:
        log_store_for("s3a://b/t", conf)
    assert str(caught.value).endswith("did you mean io.delta.storage.S3DynamoDBLogStore?")


def test_the_store_is_made_with_the_whole_conf() -> None:
    conf = {"spark.app.name": "x", "spark.hadoop.fs.s3a.endpoint": "y"}
    assert dict(log_store_for("/t", conf).conf) == conf


# Precedence


@pytest.mark.parametrize("prefix", ["spark.", ""])
def test_a_global_class_is_for_every_scheme(prefix: str) -> None:
    conf = {f"{prefix}delta.logStore.class": MEMORY}
    for uri in ("memory://x/t", "/t", "s3a://b/t", "anything://t"):
        assert type(log_store_for(uri, conf)) is MemoryLogStore


@pytest.mark.parametrize("prefix", ["spark.", ""])
def test_a_class_for_a_scheme_is_for_that_scheme_alone(prefix: str) -> None:
    conf = {f"{prefix}delta.logStore.s3a.impl": MEMORY}
    assert type(log_store_for("S3A://b/t", conf)) is MemoryLogStore
    assert type(log_store_for("/t", conf)) is LocalLogStore
    assert resolve("s3://b/t", conf).key is None


@pytest.mark.parametrize("uri", ["/t", "file:///t"])
def test_the_class_for_file_is_for_plain_paths_too(uri: str) -> None:
    assert resolve(uri, {"spark.delta.logStore.file.impl": MEMORY}).class_path == MEMORY


def test_a_resolution_says_which_key_decided_and_imports_nothing() -> None:
    found = resolve("s3a://b/t", {"delta.logStore.s3a.impl": "no.such.module:Store"})
    assert found.class_path == "no.such.module.Store"
    assert found.key == "delta.logStore.s3a.impl"
    assert found.value == "no.such.module:Store"
    assert resolve("/t").key is None
    assert "default" in resolve("/t").reason


# Keys that contradict


@pytest.mark.parametrize("one", [CLASS, "delta.logStore.class"])
@pytest.mark.parametrize("other", ["spark.delta.logStore.gs.impl", "delta.logStore.gs.impl"])
@pytest.mark.parametrize("uri", ["/t", "gs://b/t"])
def test_a_global_class_beside_one_for_any_scheme_is_refused(
    one: str, other: str, uri: str
) -> None:
    with pytest.raises(InvalidLogStoreConfError) as caught:
        resolve(uri, {one: MEMORY, other: MEMORY})
    assert one in str(caught.value)
    assert other in str(caught.value)
    assert "DELTA_INVALID_LOGSTORE_CONF" in str(caught.value)


@pytest.mark.parametrize("key", ["delta.logStore.class", "delta.logStore.s3.impl"])
def test_two_spellings_with_two_values_are_refused_and_with_one_are_not(key: str) -> None:
    assert resolve("s3://b/t", {key: MEMORY, f"spark.{key}": MEMORY}).class_path == MEMORY
    with pytest.raises(InconsistentLogStoreConfError) as caught:
        resolve("s3://b/t", {f"spark.{key}": MEMORY, key: LOCAL})
    assert f"{key} = {LOCAL}, spark.{key} = {MEMORY}" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("spark.delta.logStore.clas", CLASS),
        ("spark.delta.logStore.Class", CLASS),
        ("delta.logStore.klass", "delta.logStore.class"),
        ("spark.delta.logstore.class", CLASS),
        ("spark.delta.logStores.class", CLASS),
        ("spark.delta.logStore.s3a.imp", "spark.delta.logStore.s3a.impl"),
        ("spark.delta.logStore.S3A.impl", "spark.delta.logStore.s3a.impl"),
        ("spark.delta.logStore.s3a.class", "spark.delta.logStore.s3a.impl"),
        ("spark.delta.logStore.s3a", "spark.delta.logStore.s3a.impl"),
        ("spark.delta.logStore", "spark.delta.logStore.<scheme>.impl"),
    ],
)
def test_a_key_that_no_one_reads_is_refused_with_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(UnknownLogStoreKeyError) as caught:
        resolve("/t", {key: MEMORY})
    assert f"nothing reads the key {key}; did you mean {nearest}?" in str(caught.value)


def test_keys_of_others_are_left_alone() -> None:
    conf = {
        "spark.databricks.delta.commitLock.enabled": "true",
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "t",
        "spark.hadoop.delta.enableFastS3AListFrom": "true",
        "my.delta.logStore.clas": "x",
    }
    assert resolve("/t", conf).class_path == LOCAL


# Names that Delta users have


@pytest.mark.parametrize("package", ["io.delta.storage", "org.apache.spark.sql.delta.storage"])
@pytest.mark.parametrize("name", ["LocalLogStore", "HDFSLogStore", "DelegatingLogStore"])
def test_java_stores_for_local_paths_become_ours(package: str, name: str) -> None:
    assert type(log_store_for("/t", {CLASS: f"{package}.{name}"})) is LocalLogStore


def test_the_delegating_store_follows_the_scheme() -> None:
    conf = {CLASS: "io.delta.storage.DelegatingLogStore"}
    assert type(log_store_for("memory://x/t", conf)) is MemoryLogStore


@pytest.mark.parametrize(
    ("name", "scheme", "ours"),
    [
        ("S3SingleDriverLogStore", "s3a", "lakelog.logstores.S3ConditionalLogStore"),
        ("S3DynamoDBLogStore", "s3a", "lakelog.logstores.S3DynamoDBLogStore"),
        ("AzureLogStore", "abfss", "lakelog.logstores.AzureConditionalLogStore"),
        ("GCSLogStore", "gs", "lakelog.logstores.GCSLogStore"),
        ("HDFSLogStore", "hdfs", "lakelog.logstores.HDFSLogStore"),
        ("IBMCOSLogStore", "cos", "lakelog.contrib.ibm_cos.IBMCOSLogStore"),
        ("OracleCloudLogStore", "oci", "lakelog.contrib.oracle_oci.OracleCloudLogStore"),
    ],
)
def test_java_stores_become_ours(name: str, scheme: str, ours: str) -> None:
    key = f"spark.delta.logStore.{scheme}.impl"
    found = resolve(f"{scheme}://b/t", {key: f"io.delta.storage.{name}"})
    assert found.class_path == ours
    assert found.key == key
    assert found.value == f"io.delta.storage.{name}"


def test_the_java_store_that_renames_is_refused_where_renames_replace() -> None:
    key = "spark.delta.logStore.s3a.impl"
    with pytest.raises(LogStoreClassError) as caught:
        resolve("s3a://b/t", {key: "io.delta.storage.HDFSLogStore"})
    assert "commits by rename" in str(caught.value)
    assert "lakelog.logstores.S3ConditionalLogStore" in str(caught.value)


# Names of classes


@pytest.mark.parametrize("separator", [".", ":"])
def test_a_third_party_store_is_used_by_conf_alone(
    separator: str, third_party: str, tmp_path: Path
) -> None:
    conf = {CLASS: f"{third_party}.stores{separator}MyStore", "my.key": "v"}
    store = log_store_for(str(tmp_path), conf)
    assert type(store).__name__ == "MyStore"
    assert store.conf["my.key"] == "v"
    store.write(f"{tmp_path}/0.json", ["x"])
    assert list(store.read(f"{tmp_path}/0.json")) == ["x"]


@pytest.mark.usefixtures("entry_points")
def test_an_entry_point_is_used_by_name() -> None:
    found = resolve("/t", {CLASS: "mine"})
    assert found.class_path == MEMORY
    assert "entry point" in found.reason
    assert type(log_store_for("/t", {CLASS: "mine"})) is MemoryLogStore


@pytest.mark.usefixtures("entry_points")
def test_an_unknown_entry_point_is_refused_with_those_installed() -> None:
    with pytest.raises(LogStoreClassError, match="did you mean mine") as caught:
        resolve("/t", {CLASS: "mined"})
    assert "installed: mine, other" in str(caught.value)


def test_a_bare_class_name_of_ours_is_answered_with_its_path() -> None:
    with pytest.raises(LogStoreClassError, match=f"did you mean {MEMORY}"):
        resolve("/t", {CLASS: "MemoryLogStore"})
    with pytest.raises(
        LogStoreClassError, match=r"mean lakelog\.logstores\.S3SingleDriverLogStore"
    ):
        resolve("/t", {CLASS: "S3SingleDriverLogStore"})


def test_a_misspelt_class_of_ours_is_answered_with_the_nearest() -> None:
    with pytest.raises(LogStoreClassError, match="did you mean S3DynamoDBLogStore"):
        log_store_for("s3a://b/t", {CLASS: "lakelog.logstores.S3DynamoLogStore"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is empty"),
        ("no_such_package.Store", "there is no module 'no_such_package'"),
        ("no_such_package.Store", "SparkContext.addPyFile"),
        ("com.acme.Store", "a Java class can't be loaded here"),
        ("{pkg}.none.MyStore", "there is no module '{pkg}.none'"),
        ("{pkg}.stores.MyStor", "has no MyStor; did you mean MyStore?"),
        ("{pkg}.stores.NoStore", "not a subclass of lakelog.logstores.LogStore"),
        ("{pkg}.stores.a_function", "not a subclass of lakelog.logstores.LogStore"),
        (
            "{pkg}.stores.Unfinished",
            "does not define capabilities, filesystem, filesystem_path",
        ),
        ("{pkg}.stores.NeedsKey", "NeedsKey(conf) failed: KeyError: 'my.key'"),
        ("{pkg}.needs_sdk.Store", "No module named 'an_sdk_that_is_not_installed'"),
        ("{pkg}.broken.Store", "RuntimeError: no licence"),
    ],
)
def test_a_class_that_cannot_be_had_is_refused_with_key_value_and_reason(
    value: str, reason: str, third_party: str
) -> None:
    value, reason = value.format(pkg=third_party), reason.format(pkg=third_party)
    with pytest.raises(LogStoreClassError) as caught:
        log_store_for("/t", {CLASS: value})
    assert str(caught.value).startswith(f"{CLASS} ")
    assert value in str(caught.value)
    assert reason in str(caught.value)


def test_a_missing_dependency_of_a_class_is_not_reported_as_a_missing_class(
    third_party: str,
) -> None:
    with pytest.raises(LogStoreClassError) as caught:
        log_store_for("/t", {CLASS: f"{third_party}.needs_sdk.Store"})
    assert "there is no module" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_missing_extra_passes_with_its_remedy(third_party: str) -> None:
    with pytest.raises(MissingExtraError, match="pip install"):
        log_store_for("/t", {CLASS: f"{third_party}.stores.NeedsExtra"})


def test_every_conf_error_is_a_value_error() -> None:
    assert issubclass(LogStoreConfError, ValueError)
    for kind in (
        InvalidLogStoreConfError,
        InconsistentLogStoreConfError,
        UnknownLogStoreKeyError,
        LogStoreClassError,
    ):
        assert issubclass(kind, LogStoreConfError)


@pytest.mark.parametrize("name", sorted(lakelog.logstores._LAZY))
def test_a_class_is_named_by_the_path_that_its_users_write(name: str) -> None:
    kind = getattr(lakelog.logstores, name)
    assert kind.__module__ != "lakelog.logstores"
    assert class_path_of(kind) == f"lakelog.logstores.{name}"


def test_a_class_that_no_package_exports_is_named_by_its_module() -> None:
    class Inner(LocalLogStore):
        """Not to be reached from outside."""

    assert class_path_of(Inner) == f"{__name__}.{Inner.__qualname__}"


BRIDGE = {"spark.delta.logStore.class": "io.lakelog.BridgeLogStore"}


def test_behind_the_bridge_is_the_default_or_what_its_keys_say() -> None:
    own = {"spark.lakelog.bridge.store": "a.One", "spark.lakelog.bridge.store.gs": "a.Two"}
    assert resolve("s3a://b/t", BRIDGE) == resolve("s3a://b/t")
    assert resolve("s3a://b/t", BRIDGE | own).class_path == "a.One"
    assert resolve("gs://b/t", BRIDGE | own).class_path == "a.Two"
    assert resolve("s3a://b/t", own) == resolve("s3a://b/t"), "without the bridge nothing is behind"


def test_the_bridge_is_not_behind_itself() -> None:
    own = {"spark.lakelog.bridge.store": "io.lakelog.BridgeLogStore"}
    with pytest.raises(LogStoreClassError, match="can't be behind itself"):
        resolve("/t", BRIDGE | own)
