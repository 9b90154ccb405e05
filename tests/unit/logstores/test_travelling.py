from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import lakelog.contrib
import lakelog.core
import lakelog.logstores
from lakelog.core.conf import travelling_conf
from lakelog.logstores import LogStore, log_store_for, resolve
from lakelog.logstores.resolution import _known_classes
from lakelog.logstores.travelling import _FAMILIES, settings_for

STORES = {
    "/lake/t": {},
    "memory://lake/t": {},
    "s3a://b/t": {"spark.hadoop.fs.s3a.access.key": "KEY", "fs.s3a.secret.key": "SECRET-s3"},
    "gs://b/t": {
        "google.cloud.auth.type": "USER_CREDENTIALS",
        "fs.gs.auth.client.id": "ID",
        "fs.gs.auth.client.secret": "SECRET-gs",
        "spark.hadoop.fs.gs.auth.refresh.token": "TOKEN",
    },
    "abfss://c@acct.dfs.core.windows.net/t": {"fs.azure.account.key.acct": "U0VDUkVULWF6"},
    "hdfs://nn:1/t": {"dfs.nameservices": "SECRET-hdfs"},
    "oss://b/t": {"fs.oss.endpoint": "x", "spark.hadoop.fs.oss.accessKeySecret": "SECRET-oss"},
    "cos://b.svc/t": {
        "fs.cos.svc.endpoint": "https://x",
        "fs.cos.svc.access.key": "KEY",
        "fs.cos.svc.secret.key": "SECRET-cos",
    },
    "oci://b@n/t": {"spark.hadoop.fs.oci.client.auth.passphrase": "SECRET-oci"},
    "sftp://h/t": {
        "spark.delta.logStore.sftp.impl": "lakelog.contrib.fsspec_store.FsspecLogStore",
        "spark.lakelog.fsspec.options.password": "SECRET-fsspec",
    },
}
"""A table of each storage, and what a user sets for it."""
FOREIGN = {
    "spark.hadoop.javax.jdo.option.ConnectionPassword": "CANARY-hive",
    "spark.sql.catalog.db.password": "CANARY-jdbc",
    "spark.sql.catalog.ice.credential": "id:CANARY-iceberg",
    "spark.sql.catalog.lake.auth.token": "CANARY-unity",
    "spark.lakelog.catalog.lake.token.command": "print CANARY-command",
    "spark.databricks.token": "CANARY-workspace",
    "spark.lakelog.catalog.lake.token": "CANARY-catalog",
    "spark.lakelog.commit.service": "https://CANARY-service",
    "spark.lakelog.commit.service.token": "CANARY-commits",
    "spark.ssl.keyPassword": "CANARY-tls",
    "spark.authenticate.secret": "CANARY-rpc",
    "spark.redis.auth": "CANARY-redis",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "CANARY-env",
    "my.password": "CANARY-mine",
}
LOGINS = ("spark.lakelog.", "spark.sql.catalog.")
"""What the keys of `FOREIGN` begin with that log in to catalogs and services."""
EVERYTHING = {**FOREIGN, **{k: v for conf in STORES.values() for k, v in conf.items()}}


def secrets(of: dict[str, str]) -> set[str]:
    return {value for value in of.values() if "SECRET" in value or value.startswith("U0VD")}


@pytest.mark.parametrize("uri", STORES)
def test_a_file_system_carries_no_secret_but_its_own_storages(uri: str) -> None:
    store = log_store_for(uri, EVERYTHING)
    sent = pickle.dumps(store.filesystem)
    others = set(FOREIGN.values()) | secrets(EVERYTHING) - secrets(STORES[uri])
    assert [each for each in sorted(others) if each.encode() in sent] == []
    again = pickle.loads(sent)
    assert again == store.filesystem or "py::" in again.type_name


@pytest.mark.parametrize("uri", STORES)
def test_a_tables_conf_is_all_that_its_store_needs_and_no_more(uri: str) -> None:
    kept = travelling_conf(EVERYTHING, uri)
    assert STORES[uri].items() <= kept.items()
    keys = {key for key in kept if not key.startswith("spark.delta.logStore.")}
    assert keys == {key for key in STORES[uri] if not key.startswith("spark.delta.logStore.")}


def test_where_the_table_is_not_known_yet_every_storage_may_come() -> None:
    stores = {key: EVERYTHING[key] for key in EVERYTHING.keys() - FOREIGN.keys()}
    assert travelling_conf(EVERYTHING) == stores
    assert travelling_conf(EVERYTHING, also=("spark.redis.",)) == {
        **stores,
        "spark.redis.auth": "CANARY-redis",
    }


@pytest.mark.parametrize("uri", [*STORES, "mine://t"])
def test_no_pickle_of_a_store_has_the_login_of_a_catalog_or_service(uri: str) -> None:
    mine = {"spark.delta.logStore.mine.impl": "lakelog.logstores.MemoryLogStore"}
    sent = pickle.dumps(log_store_for(uri, {**EVERYTHING, **mine}))
    logins = {value for key, value in FOREIGN.items() if key.startswith(LOGINS)}
    assert len(logins) == 7
    assert [each for each in sorted(logins) if each.encode() in sent] == []


def test_a_store_of_the_users_own_keeps_the_whole_conf_but_for_logins() -> None:
    conf = {**FOREIGN, "spark.delta.logStore.mine.impl": "my.module.MyStore"}
    kept = {key: value for key, value in conf.items() if not key.startswith(LOGINS)}
    assert settings_for(conf, "mine://t") == kept
    assert settings_for(conf, "mine://t", LOGINS) == kept
    assert settings_for(conf, "mine://t", named=LOGINS) == conf


def test_what_a_value_refers_to_comes_along() -> None:
    conf = {"dfs.nameservices": "${my.name}", "spark.hadoop.my.name": "${my.part}", "my.part": "a"}
    assert settings_for({**conf, "my.other": "b"}, "hdfs://nn/t") == conf


def test_every_class_of_ours_says_what_it_reads() -> None:
    found = {resolve(uri, conf).class_path for uri, conf in STORES.items()}
    assert found <= _FAMILIES.keys()
    ours = {f"lakelog.logstores.{name}" for name in lakelog.logstores.__all__}
    classes = {
        name
        for name in ours | _known_classes()
        if name.startswith("lakelog.")
        and isinstance(cls := _loaded(name), type)
        and issubclass(cls, LogStore)
        and cls is not LogStore
    }
    assert classes <= _FAMILIES.keys()


def _loaded(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(__import__(module, fromlist=[attribute]), attribute)


CONF_KEY = re.compile(
    r"(spark\.|fs\.[a-zA-Z0-9]+\.|dfs\.|google\.cloud\.|io\.delta\.storage\.)[\w.\-]*"
)
HOME_ONLY = {
    "spark.hadoop.": "the beginning of others",
    "spark.": "the beginning of others",
    "spark.databricks.": "the beginning of others",
    "spark.app.": "the beginning of others",
    "spark.sql.catalog.": "the beginning of others; a catalog and its token stay where it is asked",
    "spark.lakelog.conformance.password": "no key of a user's: the doctor draws it",
    "spark.lakelog.columns": "no conf key: a name in the footer of a checkpoint",
}


def test_every_key_that_stores_and_core_name_travels() -> None:
    roots = [Path(each.__file__ or "").parent for each in (lakelog.contrib, lakelog.core)]
    roots.append(Path(lakelog.logstores.__file__ or "").parent)
    named = {
        node.value
        for root in roots
        for path in root.rglob("*.py")
        if not {"conformance", "cli"} & set(path.relative_to(root).parts[:-1])
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CONF_KEY.fullmatch(node.value)
    }
    assert len(named) > 60
    lost = {key for key in named - HOME_ONLY.keys() if not travelling_conf({key: "x"})}
    assert lost == set()
