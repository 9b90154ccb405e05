"""Where an HDFS is, out of Hadoop's conf folder and the Spark conf."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import HDFSLogStore, InconsistentLogStoreConfError, LogStoreConfError
from lakelog.logstores.hdfs.client import HdfsClient
from lakelog.logstores.hdfs.conf import hadoop_conf, split_uri
from lakelog.logstores.hdfs.webhdfs import WebHdfs
from lakelog.logstores.object_store.store import RetryPolicy

if TYPE_CHECKING:
    from pathlib import Path

CORE = {"fs.defaultFS": "hdfs://prod", "hadoop.security.authentication": "simple"}
PAIR = {
    "dfs.nameservices": "prod, old",
    "dfs.ha.namenodes.prod": "nn1 , nn2",
    "dfs.namenode.rpc-address.prod.nn1": "master1:8020",
    "dfs.namenode.rpc-address.prod.nn2": "master2",
    "dfs.namenode.http-address.prod.nn1": "master1:9870",
    "dfs.namenode.http-address.prod.nn2": "0.0.0.0:9871",
    "dfs.namenode.rpc-address.old": "legacy:9000",
    "dfs.namenode.http-address.old": "legacy:50070",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Hadoop conf folder of the process, empty."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HADOOP_HOME", "/nowhere")
    return tmp_path


def site(path: Path, settings: dict[str, str], *, final: str = "") -> None:
    """Write a Hadoop configuration."""
    rows = "".join(
        f"<property><name>{name}</name><value>\n{value}\n</value>"
        f"<final>{'true' if name == final else 'false'}</final></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>{rows}</configuration>')


def test_a_name_service_has_all_its_namenodes(folder: Path) -> None:
    site(folder / "core-site.xml", CORE)
    site(folder / "hdfs-site.xml", PAIR)
    hadoop = hadoop_conf({})
    assert hadoop.folder == str(folder)
    assert hadoop.default_authority == "prod"
    found = hadoop.service("prod")
    assert found.namenodes == ("master1:8020", "master2:8020")
    # 0.0.0.0 is where the server listens; its host is that of its RPC address.
    assert found.web == ("master1:9870", "master2:9871")


def test_a_name_service_of_one(folder: Path) -> None:
    site(folder / "hdfs-site.xml", PAIR)
    found = hadoop_conf({}).service("old")
    assert (found.namenodes, found.web) == (("legacy:9000",), ("legacy:50070",))


@pytest.mark.parametrize(
    ("authority", "namenodes"),
    [("host:9000", ("host:9000",)), ("host", ("host:8020",)), ("[::1]:9", ("[::1]:9",))],
)
def test_a_host_is_its_own_namenode(authority: str, namenodes: tuple[str, ...]) -> None:
    found = hadoop_conf({"spark.hadoop.dfs.namenode.http-address": "host:9870"}).service(authority)
    assert found.namenodes == namenodes
    assert found.web == ("host:9870",)


def test_the_web_address_of_the_default_is_not_that_of_another_cluster() -> None:
    hadoop = hadoop_conf(
        {"fs.defaultFS": "hdfs://here:8020", "dfs.namenode.http-address": "here:9870"}
    )
    assert hadoop.service("here:8020").web == ("here:9870",)
    other = hadoop.service("there:8020")
    assert other.web == ()
    assert "no dfs.namenode.http-address" in other.why_no_web


def test_the_spark_conf_lies_over_the_files(folder: Path) -> None:
    site(folder / "core-site.xml", {"fs.defaultFS": "hdfs://a", "x": "core"}, final="x")
    site(folder / "hdfs-site.xml", {"fs.defaultFS": "hdfs://b", "x": "hdfs", "y": "hdfs"})
    assert hadoop_conf({}).settings == {"fs.defaultFS": "hdfs://b", "x": "core", "y": "hdfs"}
    over = hadoop_conf({"spark.hadoop.fs.defaultFS": " hdfs://c ", "spark.hadoop.x": "spark"})
    assert over.settings == {"fs.defaultFS": "hdfs://c", "x": "spark", "y": "hdfs"}
    assert over.default_authority == "c"


def test_two_spellings_of_a_key_agree_or_are_refused() -> None:
    both = {"fs.defaultFS": "hdfs://a", "spark.hadoop.fs.defaultFS": "hdfs://a"}
    assert hadoop_conf(both).default_authority == "a"
    with pytest.raises(InconsistentLogStoreConfError, match=r"fs\.defaultFS have two values"):
        hadoop_conf({**both, "fs.defaultFS": "hdfs://b"})


def test_references_are_filled_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "master7")
    rows = {
        "port": "8021",
        "me": "${env.MASTER}:${port}",
        "fs.defaultFS": "hdfs://${me}",
        "loop": "${loop}",
        "none": "${no.such.key}",
    }
    site(folder / "core-site.xml", rows)
    found = hadoop_conf({})
    assert found.default_authority == "master7:8021"
    assert found.settings["loop"] == "${loop}"
    assert found.settings["none"] == "${no.such.key}"


def test_hadoop_home_is_the_second_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    (tmp_path / "etc" / "hadoop").mkdir(parents=True)
    site(tmp_path / "etc" / "hadoop" / "core-site.xml", CORE)
    assert hadoop_conf({}).default_authority == "prod"


@pytest.mark.parametrize(
    ("text", "message"),
    [("<configuration>", "can't be read as a Hadoop"), ("<site/>", "its root is <site>")],
)
def test_a_broken_file_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "hdfs-site.xml").write_text(text)
    with pytest.raises(LogStoreConfError, match=message) as error:
        list(HDFSLogStore().read("hdfs://a/b"))
    assert "hdfs-site.xml" in str(error.value)


def test_a_namenode_without_an_address_is_named(folder: Path) -> None:
    site(folder / "hdfs-site.xml", {**PAIR, "dfs.ha.namenodes.prod": "nn1,nn3"})
    with pytest.raises(
        LogStoreConfError, match=r"'nn3', but dfs\.namenode\.rpc-address\.prod\.nn3"
    ):
        hadoop_conf({}).service("prod")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"hadoop.security.authentication": "kerberos"}, "Kerberos"),
        ({"dfs.http.policy": "HTTPS_ONLY"}, "HTTPS_ONLY"),
        ({"dfs.webhdfs.enabled": "false"}, "dfs.webhdfs.enabled is false"),
    ],
)
def test_webhdfs_is_left_out_where_it_can_not_be_spoken(
    settings: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    hadoop = hadoop_conf({"dfs.namenode.http-address": "host:9870", **settings})
    service = hadoop.service("host")
    assert service.web == ()
    web = WebHdfs(service, "me", 1.0)
    assert not web.is_usable
    assert not web.is_usable
    message = [each for each in caplog.records if each.name == "lakelog.logstores.hdfs"]
    assert [why in each.getMessage() for each in message] == [True]
    assert hadoop.is_secure == ("hadoop.security.authentication" in settings)


def test_who_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    conf = {"spark.kerberos.principal": "etl@LAKE", "spark.kerberos.keytab": "/etc/etl.keytab"}
    found = hadoop_conf(conf)
    assert (found.user, found.principal, found.keytab) == ("etl", "etl@LAKE", "/etc/etl.keytab")


def test_the_client_is_told_of_kerberos_and_of_each_namenode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hdfs-native takes names as they stand, so they are given without blanks."""
    site(folder / "core-site.xml", {**CORE, "hadoop.security.authentication": "kerberos"})
    provider = "dfs.client.failover.proxy.provider.prod"
    site(folder / "hdfs-site.xml", {**PAIR, provider: "a.b.ObserverReadProxyProvider"})
    given: list[tuple[str, dict[str, str], dict[str, str]]] = []
    monkeypatch.setattr(
        "hdfs_native.Client", lambda url, settings, **more: given.append((url, settings, more))
    )
    hadoop = hadoop_conf({"spark.kerberos.principal": "etl@LAKE", "spark.kerberos.keytab": "/k"})
    HdfsClient(hadoop.service("prod"), hadoop, RetryPolicy(), 1.0)._new()
    ((url, settings, more),) = given
    assert url == "hdfs://prod"
    assert settings["dfs.ha.namenodes.prod"] == "nn0,nn1"
    assert settings["dfs.namenode.rpc-address.prod.nn0"] == "master1:8020"
    assert settings["dfs.namenode.rpc-address.prod.nn1"] == "master2:8020"
    assert settings["dfs.client.failover.max.attempts"] == "1"
    # Observers lag: what another writer has acknowledged would be missing in a listing.
    assert settings[provider].endswith(".ha.ConfiguredFailoverProxyProvider")
    assert settings["hadoop.security.authentication"] == "kerberos"
    assert more == {"kerberos_principal": "etl@LAKE", "kerberos_keytab": "/k"}


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("hdfs://nn:1/a/b", ("nn:1", "/a/b")),
        ("HDFS://nn/a%20b", ("nn", "/a%20b")),
        ("hdfs:///a", ("prod", "/a")),
        ("hdfs:/a", ("prod", "/a")),
        ("hdfs://nn", ("nn", "/")),
    ],
)
def test_uris_are_split(uri: str, parts: tuple[str, str]) -> None:
    assert split_uri(uri, "prod") == parts


@pytest.mark.parametrize("uri", ["hdfs:a", "/a", "s3://b/c", "hdfs"])
def test_what_is_no_uri_of_hdfs_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="is not a path of HDFS"):
        split_uri(uri, "prod")


def test_the_store_and_its_file_system_are_pickled_by_conf(folder: Path) -> None:
    site(folder / "core-site.xml", CORE)
    store = HDFSLogStore({"spark.hadoop.dfs.replication": "2"})
    assert store.filesystem_path("hdfs:///a/b") == "/prod/a/b"
    assert store.filesystem_path("hdfs://nn:1/a") == "/nn:1/a"
    twin = pickle.loads(pickle.dumps(store))
    assert dict(twin.conf) == dict(store.conf)
    assert pickle.loads(pickle.dumps(store.filesystem)) == twin.filesystem
    assert store.filesystem != HDFSLogStore().filesystem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.lakelog.store.retry.timeBudget", "soon"),
        ("spark.lakelog.store.request.timeout", "0"),
    ],
)
def test_settings_that_are_no_numbers_are_refused(key: str, value: str) -> None:
    with pytest.raises(LogStoreConfError, match=key):
        HDFSLogStore({key: value})
