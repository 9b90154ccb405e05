"""What `io.lakelog.BridgeLogStore` makes of unusual names, files, settings and neighbours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStoreError
from lakelog.logstores.service import LogStoreService
from support.bridge_client import BEHIND, ENDPOINT, ServedStore
from support.bridge_stores import CLASS, hooks
from support.servers.bridge_jvm import compile_java, run_bridge_jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.servers.bridge_jvm import BridgeJvm

NEWER = Path(__file__).parents[1] / "support/java/newer/io/delta/storage/LogStore.java"
AWKWARD = [
    "a:b",
    ":",
    "*",
    "[x]",
    "{y}",
    "\\",
    "a\nb",
    "é 中 😀",
    "%20",
    "#",
    "?q=1",
    "+&=",
    "'\"`",
]
SECRET = "S3cr3t+/=="
SETTINGS = {
    "fs.s3a.endpoint": "http://127.0.0.1:9",
    "fs.s3a.access.key": f"id-{SECRET}",
    "fs.s3a.secret.key": f"key-{SECRET}",
    "spark.hadoop.fs.s3a.session.token": f"token-{SECRET}",
    "fs.azure.account.key.lake.dfs.core.windows.net": f"azure-{SECRET}",
    "fs.gs.auth.service.account.private.key": f"gs-{SECRET}",
    "fs.oss.endpoint": "127.0.0.1:9",
    "fs.oss.accessKeyId": "id",
    "fs.oss.accessKeySecret": f"oss-{SECRET}",
    "fs.cos.lake.endpoint": "http://127.0.0.1:9",
    "fs.cos.lake.access.key": "id",
    "fs.cos.lake.secret.key": f"cos-{SECRET}",
    "spark.lakelog.store.retry.timeBudget": "0",
}


MANY_BYTES = 60 << 20


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Path]:
    with LogStoreService(endpoint_file=tmp_path / "bridge") as service:
        yield service.endpoint_file


@pytest.fixture
def make_store(bridge_jvm: BridgeJvm, endpoint: Path) -> Callable[..., ServedStore]:
    """A store of the JVM's, with these settings in its Hadoop conf."""

    def make(**conf: str) -> ServedStore:
        return _store(bridge_jvm, endpoint, **conf)

    return make


def _store(jvm: BridgeJvm, endpoint: Path, **conf: str) -> ServedStore:
    return ServedStore({ENDPOINT: str(jvm.endpoint_file), BEHIND: str(endpoint), **conf})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "t" / "_delta_log"
    folder.mkdir(parents=True)
    return folder


def _commit(log: Path | str, version: int = 0) -> str:
    return f"{log}/{version:020d}.json"


def _refusal(store: ServedStore, path: str) -> str:
    """What a commit and a reading say alike; nothing is written."""
    texts = set()
    for call in (lambda: store.write(path, ["x"]), lambda: list(store.read(path))):
        with pytest.raises((OSError, LogStoreError)) as refused:
            call()
        texts.add(str(refused.value))
    assert not Path(path).exists()
    (text,) = texts
    return text


@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_is_what_it_is(make_store: Callable[..., ServedStore], log: Path, name: str) -> None:
    folder, store = log.parent / name / "_delta_log", make_store()
    folder.mkdir(parents=True)
    for path in (f"{folder}/{name}.json", f"file:{folder}/1{name}", f"file://{folder}/2{name}"):
        store.write(path, ["x", name.replace("\n", "")])
        with pytest.raises(FileExistsError):
            store.write(path, ["y"])
        assert list(store.read(path)) == ["x", name.replace("\n", "")]
    found = sorted(each.name for each in folder.iterdir())
    assert found == sorted((f"{name}.json", f"1{name}", f"2{name}"))
    assert sorted(each.name for each in store.list_from(f"{folder}/")) == found


def test_a_service_of_another_user_is_reported(
    make_store: Callable[..., ServedStore], endpoint: Path, log: Path
) -> None:
    if os.geteuid() == 0:
        os.chown(endpoint, 65534, 65534)
    else:
        endpoint.chmod(0)
    text = _refusal(make_store(), _commit(log))
    assert "belongs to another user" in text
    assert "Run `lakelog serve` as " in text
    assert str(endpoint) in text


@pytest.mark.needs("bridge_jvm")
def test_a_newer_interface_of_delta_s_is_reported(
    endpoint: Path, log: Path, tmp_path: Path
) -> None:
    """Otherwise the JVM would end a commit at some point by AbstractMethodError."""
    (tmp_path / "newer").mkdir()
    compile_java(NEWER, tmp_path / "newer")
    with run_bridge_jvm(before=[tmp_path / "newer"]) as jvm:
        text = _refusal(_store(jvm, endpoint), _commit(log))
    assert "a method `writeIfMatch` that this jar of lakelog does not know" in text
    assert "delta-storage 3.2 to 4.4" in text


@pytest.mark.needs("bridge_jvm")
def test_it_works_with_the_oldest_delta_as_with_the_newest(log: Path, tmp_path: Path) -> None:
    with (
        run_bridge_jvm("3.2.0") as jvm,
        LogStoreService(
            {"spark.delta.logStore.class": CLASS}, endpoint_file=tmp_path / "bridge"
        ) as service,
    ):
        store = _store(jvm, service.endpoint_file)
        hooks["after"] = lambda _: service.drop_connections()
        for version in range(3):
            store.write(_commit(log, version), [f"é {version}", ""])
        with pytest.raises(FileExistsError):
            store.write(_commit(log, 1), ["another"])
        with pytest.raises(FileNotFoundError):
            list(store.read(_commit(log, 3)))
        store.write(f"{log}/_last_checkpoint", ["old"])
        store.write(f"{log}/_last_checkpoint", ["new"], overwrite=True)
        assert list(store.read(_commit(log, 1))) == ["é 1", ""]
        assert list(store.read(f"{log}/_last_checkpoint")) == ["new"]
        found = [each.path for each in store.list_from(_commit(log, 1))]
        assert found == [_commit(log, 1), _commit(log, 2), f"{log}/_last_checkpoint"]
        assert not store.is_partial_write_visible(_commit(log))
        (log.parent / "part-1.parquet").touch()
        assert len(list(store.list_from(f"{log.parent}/"))) == 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("com.example.TheirLogStore", "com.example"),
        ("io.delta.storage.NoSuchLogStore", "NoSuchLogStore"),
        ("io.lakelog.BridgeLogStore", "the bridge can't be behind itself"),
        ("nothing", "nothing"),
    ],
)
def test_a_class_that_no_one_knows_behind_the_bridge_is_reported_with_its_key(
    make_store: Callable[..., ServedStore], log: Path, value: str, message: str
) -> None:
    text = _refusal(make_store(**{"spark.lakelog.bridge.store.file": value}), _commit(log))
    assert "spark.lakelog.bridge.store.file" in text
    assert message in text


def test_a_scheme_without_a_store_names_the_key_that_gives_it_one(
    make_store: Callable[..., ServedStore],
) -> None:
    text = _refusal(make_store(), _commit("gopher://b/t/_delta_log"))
    assert "Set spark.lakelog.bridge.store.gopher to" in text


@pytest.mark.parametrize(
    "uri",
    [
        "s3a://b/t",
        "abfss://c@lake.dfs.core.windows.net/t",
        "gs://b/t",
        "oss://b/t",
        "cos://b.lake/t",
        "gopher://b/t",
    ],
)
def test_no_secret_of_a_session_is_in_an_error(
    make_store: Callable[..., ServedStore], uri: str
) -> None:
    store = make_store(**SETTINGS)
    for call in (
        lambda path: store.write(path, ["x"]),
        lambda path: list(store.read(path)),
        lambda path: list(store.list_from(path)),
    ):
        with pytest.raises((OSError, LogStoreError)) as refused:
            call(_commit(f"{uri}/_delta_log"))
        assert SECRET not in str(refused.value)
        assert str(refused.value)


def test_a_file_of_60_megabytes_goes_both_ways_line_by_line(
    make_store: Callable[..., ServedStore], log: Path
) -> None:
    store, line = make_store(), "é" * (1 << 19)
    count = MANY_BYTES >> 20
    store.write(_commit(log), (line for _ in range(count)))
    assert Path(_commit(log)).stat().st_size == count * ((1 << 20) + 1)
    assert sum(found == line for found in store.read(_commit(log))) == count
    with pytest.raises(FileExistsError):
        store.write(_commit(log), [line])
