"""`io.lakelog.BridgeLogStore` in a JVM: what it says where something is wrong, what it settles."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, LogStoreError
from lakelog.logstores.service import LogStoreService, bridge_jar
from lakelog.logstores.service.endpoint import Endpoint
from support.bridge_client import BEHIND, ENDPOINT, RefusalError, ServedStore
from support.bridge_stores import CLASS, hooks
from support.servers.bridge_jvm import delta_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.servers.bridge_jvm import BridgeJvm

SCRIPT = Path(__file__).parents[2] / "scripts" / "bridge_jar.py"
LARGE = ["x" * (1 << 20)] * 9
"""More than is kept to be sent again."""


@pytest.fixture
def make_store(bridge_jvm: BridgeJvm) -> Callable[..., ServedStore]:
    """A store of the JVM's for an endpoint file; it gives up on a lost service after a second."""

    def make(file: Path, seconds: float = 1, **conf: str) -> ServedStore:
        where = {ENDPOINT: str(bridge_jvm.endpoint_file), BEHIND: str(file)}
        return ServedStore({**where, "lakelog.bridge.settle.seconds": str(seconds), **conf})

    return make


@pytest.fixture
def log(tmp_path: Path) -> str:
    folder = tmp_path / "a table" / "_delta_log"
    folder.mkdir(parents=True)
    return str(folder)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LogStoreService]:
    conf = {"spark.delta.logStore.class": CLASS}
    hooks.clear()
    with LogStoreService(conf, endpoint_file=tmp_path / "bridge") as service:
        yield service


@pytest.fixture
def store(service: LogStoreService, make_store: Callable[..., ServedStore]) -> ServedStore:
    return make_store(service.endpoint_file)


def _commit(log: str, version: int = 7) -> str:
    return f"{log}/{version:020d}.json"


def _no_service(store: ServedStore, path: str) -> str:
    """What reading, writing and listing say alike; nothing is written."""
    texts = set()
    for call in (
        lambda: store.write(path, ["x"]),
        lambda: list(store.read(path)),
        lambda: list(store.list_from(path)),
        lambda: store.is_partial_write_visible(path),
    ):
        with pytest.raises(RefusalError) as refused:
            call()
        assert refused.value.kind == "no-service"
        texts.add(refused.value.text)
    (text,) = texts
    assert not Path(path).exists()
    return text


def test_without_a_service_it_says_how_to_start_one(
    make_store: Callable[..., ServedStore], log: str, tmp_path: Path
) -> None:
    text = _no_service(make_store(tmp_path / "none"), _commit(log))
    assert "lakelog.spark.bridge(builder)" in text
    assert "`lakelog serve`" in text
    assert str(tmp_path / "none") in text


def test_a_service_that_was_killed_is_reported_and_its_successor_found(
    make_store: Callable[..., ServedStore], log: str, tmp_path: Path
) -> None:
    file = tmp_path / "bridge"
    store = make_store(file)
    with LogStoreService(endpoint_file=file) as service:
        store.write(_commit(log, 0), ["a"])
        left = file.read_bytes()
    file.touch(mode=0o600)
    file.write_bytes(left)
    assert "has ended, or was killed" in _no_service(store, _commit(log, 1))
    with LogStoreService(endpoint_file=file) as successor:
        assert successor.endpoint_file == service.endpoint_file
        store.write(_commit(log, 1), ["b"])
        assert [each.length for each in store.list_from(f"{log}/")] == [2, 2]


def test_a_wrong_token_is_reported_and_not_shown(
    service: LogStoreService, make_store: Callable[..., ServedStore], log: str, tmp_path: Path
) -> None:
    endpoint = Endpoint.read(service.endpoint_file)
    Endpoint(endpoint.unix, endpoint.port, "0123456789").write(tmp_path / "forged")
    text = _no_service(make_store(tmp_path / "forged"), _commit(log))
    assert "the token is not this service's" in text
    assert endpoint.token not in text
    assert "0123456789" not in text


def test_another_version_is_reported(
    service: LogStoreService, make_store: Callable[..., ServedStore], log: str, tmp_path: Path
) -> None:
    endpoint = Endpoint.read(service.endpoint_file)
    Endpoint(endpoint.unix, 0, endpoint.token, version=9).write(tmp_path / "later")
    text = _no_service(make_store(tmp_path / "later"), _commit(log))
    assert "version 9" in text
    assert "from one lakelog" in text


@pytest.mark.parametrize("said", ["", "version=1\n", "version=1\nunix=\nport=x\ntoken=\n"])
def test_a_file_that_is_none_is_reported(
    make_store: Callable[..., ServedStore], log: str, tmp_path: Path, said: str
) -> None:
    file = tmp_path / "notes"
    file.touch(mode=0o600)
    file.write_text(said)
    assert "not the endpoint file" in _no_service(make_store(file), _commit(log))


def test_a_file_that_others_can_read_is_not_trusted(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    service.endpoint_file.chmod(0o644)
    assert "can be read by other users" in _no_service(store, _commit(log))
    service.endpoint_file.chmod(0o600)
    store.write(_commit(log), ["x"])


def test_a_scheme_no_one_knows_is_reported(
    make_store: Callable[..., ServedStore], tmp_path: Path
) -> None:
    with LogStoreService(endpoint_file=tmp_path / "bridge") as service:
        store = make_store(service.endpoint_file)
        for call in (
            lambda: store.write("gopher://b/t/_delta_log/0.json", ["x"]),
            lambda: list(store.read("gopher://b/t/_delta_log/0.json")),
            lambda: list(store.list_from("gopher://b/t/_delta_log/0.json")),
        ):
            with pytest.raises(LogStoreError, match="no built-in store for the scheme 'gopher'"):
                call()


@pytest.mark.parametrize("key", ["spark.lakelog.bridge.store", "spark.lakelog.bridge.store.file"])
def test_a_session_says_which_store_is_behind_the_bridge(
    make_store: Callable[..., ServedStore], log: str, tmp_path: Path, key: str
) -> None:
    """lakelog takes that store in the same session; two ways to commit would exclude nobody."""
    came: list[str] = []
    with LogStoreService(endpoint_file=tmp_path / "bridge") as service:
        store = make_store(service.endpoint_file, **{key: CLASS})
        hooks["before"] = came.append
        store.write(_commit(log), ["x"])
    assert came == [f"file:{_commit(log)}"]


def test_data_files_are_listed_by_hadoop_and_logs_by_the_service(
    make_store: Callable[..., ServedStore], tmp_path: Path, log: str
) -> None:
    table = Path(log).parent
    (table / "part-1.parquet").write_text("data")
    store = make_store(tmp_path / "no service")
    assert [each.name for each in store.list_from(f"{table}/")] == ["_delta_log", "part-1.parquet"]
    with pytest.raises(FileNotFoundError):
        list(store.list_from(f"{table}/none/"))


def test_a_lost_reply_to_a_write_that_landed_is_a_success(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    for version, lines in enumerate((["mine", "wins"], LARGE)):
        hooks["after"] = lambda _: service.drop_connections()
        store.write(_commit(log, version), lines)
        assert not hooks
        assert list(store.read(_commit(log, version))) == lines
        with pytest.raises(FileExistsError):
            store.write(_commit(log, version), ["another"])


def test_a_lost_reply_to_an_overwrite_is_a_success(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    path = f"{log}/_last_checkpoint"
    store.write(path, ["old"])
    hooks["after"] = lambda _: service.drop_connections()
    store.write(path, ["new"], overwrite=True)
    hooks["before"] = _dropping(service, OSError("not written"))
    store.write(path, ["newer"], overwrite=True)
    assert not hooks
    assert list(store.read(path)) == ["newer"]


def _dropping(service: LogStoreService, error: Exception | None = None) -> Callable[[str], None]:
    def drop(_: str) -> None:
        service.drop_connections()
        if error is not None:
            raise error

    return drop


def test_a_lost_reply_where_another_has_the_name_is_a_conflict(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    path = _commit(log)

    def overtake(_: str) -> None:
        Path(path).write_text("theirs\n")
        service.drop_connections()

    hooks["before"] = overtake
    with pytest.raises(FileExistsError):
        store.write(path, ["mine"])
    assert not hooks
    assert Path(path).read_text() == "theirs\n"


def test_what_was_not_written_when_the_reply_was_lost_is_written_once_more(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    hooks["before"] = _dropping(service, OSError("the disk said no"))
    store.write(_commit(log), ["mine"])
    assert not hooks
    assert list(store.read(_commit(log))) == ["mine"]


def test_what_is_too_large_to_be_sent_again_is_unknown(
    service: LogStoreService, store: ServedStore, log: str
) -> None:
    hooks["before"] = _dropping(service, OSError("the disk said no"))
    with pytest.raises(CommitOutcomeUnknownError, match="too large to be sent again"):
        store.write(_commit(log), LARGE)


@pytest.mark.parametrize("landed", [True, False])
def test_a_service_that_does_not_come_back_leaves_the_outcome_unknown(
    service: LogStoreService, store: ServedStore, log: str, landed: bool
) -> None:
    def vanish(_: str) -> None:
        service.endpoint_file.rename(service.endpoint_file.with_name("away"))
        service.drop_connections()
        if not landed:
            raise OSError("the disk said no")

    hooks["after" if landed else "before"] = vanish
    with pytest.raises(CommitOutcomeUnknownError) as unknown:
        store.write(_commit(log, 42), ["mine"])
    text = str(unknown.value)
    assert "of version 42" in text
    assert "Do not clean up" in text
    assert _commit(log, 42) in text
    assert Path(_commit(log, 42)).exists() == landed


def test_a_service_that_comes_back_settles_what_was_open(
    service: LogStoreService, make_store: Callable[..., ServedStore], log: str
) -> None:
    away, gone = service.endpoint_file.with_name("away"), threading.Event()

    def vanish(_: str) -> None:
        service.endpoint_file.rename(away)
        service.drop_connections()
        gone.set()

    def come_back() -> None:
        gone.wait(60)
        away.rename(service.endpoint_file)

    hooks["after"] = vanish
    returning = threading.Thread(target=come_back)
    returning.start()
    make_store(service.endpoint_file, 60).write(_commit(log), ["mine"])
    returning.join()
    assert Path(_commit(log)).read_text() == "mine\n"


@pytest.mark.parametrize(
    "error", [CommitOutcomeUnknownError("0.json", "timeout"), TypeError("a bug of the store's")]
)
def test_what_the_store_cannot_say_is_looked_up_once_more(
    store: ServedStore, log: str, error: Exception
) -> None:
    def fail(_: str) -> None:
        raise error

    hooks["after"] = fail
    store.write(_commit(log, 0), ["mine"])
    hooks["before"] = fail
    with pytest.raises(CommitOutcomeUnknownError, match="of version 1"):
        store.write(_commit(log, 1), ["mine"])


def test_what_the_store_says_passes_as_it_is(store: ServedStore, log: str) -> None:
    def full(_: str) -> None:
        raise OSError(28, "no space left")

    hooks["before"] = full
    with pytest.raises(RefusalError, match="no space left") as refused:
        store.write(_commit(log), ["x"])
    assert refused.value.kind == "io"
    store.write(_commit(log), ["x"])


def test_several_services_and_sessions_share_a_jvm(
    make_store: Callable[..., ServedStore], log: str, tmp_path: Path
) -> None:
    with (
        LogStoreService(endpoint_file=tmp_path / "one") as one,
        LogStoreService(endpoint_file=tmp_path / "two", tcp=True) as two,
    ):
        Endpoint(
            "", Endpoint.read(two.endpoint_file).port, Endpoint.read(two.endpoint_file).token
        ).write(tmp_path / "two by tcp")
        files = (one.endpoint_file, two.endpoint_file, tmp_path / "two by tcp")
        stores = [make_store(file, 5) for file in files for _ in range(2)]
        won: list[str] = []

        def work(number: int) -> None:
            for version in range(20):
                try:
                    stores[number].write(_commit(log, version), [f"{number}"])
                    won.append(f"{version} {number}")
                except FileExistsError:
                    continue

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [f"{v} {Path(_commit(log, v)).read_text().strip()}" for v in range(20)]
    assert sorted(won) == sorted(found)


@pytest.mark.needs("bridge_jvm")
def test_the_jar_is_what_its_sources_compile_to_with_the_oldest_delta(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    manifest, compiler = script["manifest_of"](bridge_jar()), script["compiler_version"]()
    digest = manifest["Lakelog-Source-1"] + manifest["Lakelog-Source-2"]
    assert digest == script["source_digest"](), "the sources have changed: run `make jar`"
    target = tmp_path / "again.jar"
    script["build"](target, delta_storage("3.2.0"), script["hadoop_api"]())
    assert script["class_names"](target) == script["class_names"](bridge_jar())
    # Another compiler may put the same sources into other bytes.
    if compiler == manifest["Build-Jdk-Spec"]:
        assert target.read_bytes() == bridge_jar().read_bytes(), "run `make jar`"
