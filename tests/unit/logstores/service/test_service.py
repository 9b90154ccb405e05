"""Who gets into the service, and what it leaves behind."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import tempfile
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import (
    Capabilities,
    LocalLogStore,
    LogStoreError,
    S3ConditionalLogStore,
    S3DynamoDBLogStore,
    Scope,
)
from lakelog.logstores.service import (
    BRIDGE_CLASS,
    LogStoreService,
    bridge_jar,
    default_endpoint_file,
    frames,
    server,
)
from lakelog.logstores.service.endpoint import Endpoint
from lakelog.logstores.service.failures import failure_of
from lakelog.logstores.service.frames import (
    Fields,
    ProtocolError,
    packed,
    packed_entry,
    write_frame,
)
from lakelog.logstores.service.stores import Stores
from support.bridge_client import ENDPOINT, RefusalError, ServedStore, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Careless(LocalLogStore):
    """Excludes nobody."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=Scope.NONE)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LogStoreService]:
    with LogStoreService(endpoint_file=tmp_path / "of its own" / "bridge", tcp=True) as service:
        yield service


@pytest.fixture
def endpoint(service: LogStoreService) -> Endpoint:
    return Endpoint.read(service.endpoint_file)


@pytest.fixture
def store(service: LogStoreService) -> ServedStore:
    return ServedStore({ENDPOINT: str(service.endpoint_file)})


def test_only_its_owner_can_read_where_it_listens_and_reach_the_socket(
    service: LogStoreService, endpoint: Endpoint
) -> None:
    assert stat.S_IMODE(service.endpoint_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(service.endpoint_file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(endpoint.unix).parent.stat().st_mode) == 0o700


def test_it_listens_on_the_loopback_alone(endpoint: Endpoint, tmp_path: Path) -> None:
    with connected(replace(endpoint, unix="")) as (out, _):
        assert out.writable()
    with LogStoreService(endpoint_file=tmp_path / "unix only") as other:
        assert Endpoint.read(other.endpoint_file).port == 0


def test_a_wrong_token_is_refused_and_not_shown(endpoint: Endpoint) -> None:
    for wrong in ("", "x", endpoint.token[:-1], endpoint.token + "0"):
        with (
            pytest.raises(RefusalError, match="token") as refused,
            connected(replace(endpoint, token=wrong)),
        ):
            pass
        assert refused.value.kind == "token"
        assert endpoint.token not in str(refused.value)


def test_another_version_is_refused_with_both_named(endpoint: Endpoint) -> None:
    other = frames.PROTOCOL_VERSION + 1
    with (
        pytest.raises(RefusalError, match=rf"version {other - 1} .* version {other}") as refused,
        connected(replace(endpoint, version=other)),
    ):
        pass
    assert refused.value.kind == "version"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\xff" * 64,
        b"\0\0\0\4N" + b"\0" * 4,
        b"\0\0\0\4H\0\0\0\x10",
        b"\0\0\0\x0bH\0\0\0\7LAKELOG",
    ],
)
def test_who_speaks_another_language_hears_nothing(
    endpoint: Endpoint, store: ServedStore, said: bytes, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(endpoint.unix)
        link.sendall(said)
        assert _heard(link) == b""
    store.write(str(tmp_path / "0.json"), ["it goes on"])


def _heard(link: socket.socket) -> bytes:
    """What comes before the end; what was not read is answered by a reset."""
    try:
        return link.recv(1)
    except ConnectionResetError:
        return b""


def test_a_client_that_breaks_off_has_written_nothing(
    endpoint: Endpoint, store: ServedStore, tmp_path: Path
) -> None:
    path = str(tmp_path / "0.json")
    with connected(endpoint) as (out, _):
        write_frame(out, frames.WRITE, packed(False, path))
        write_frame(out, frames.DATA, b"half a comm")
        out.flush()
    with connected(endpoint) as (out, source):
        write_frame(out, frames.WRITE, packed(False, path))
        write_frame(out, frames.DATA, b"half\n")
        write_frame(out, frames.PARTIAL, packed(path))
        out.flush()
        assert source.read(1) == b""
    store.write(path, ["whole"])
    assert list(store.read(path)) == ["whole"]
    assert sorted(os.listdir(tmp_path)) == ["0.json", "of its own"]


def test_who_takes_back_what_he_writes_hears_when_nothing_is_left(
    endpoint: Endpoint, store: ServedStore, tmp_path: Path
) -> None:
    taken = str(tmp_path / "taken.json")
    store.write(taken, ["old"])
    with connected(endpoint) as (out, source):
        for path, overwrite, kind in (
            (str(tmp_path / "0.json"), False, "aborted"),
            (taken, True, "aborted"),
            (taken, False, "exists"),
        ):
            write_frame(out, frames.WRITE, packed(overwrite, path))
            write_frame(out, frames.DATA, b"half\n" * 100_000)
            write_frame(out, frames.ABORT)
            out.flush()
            said, payload = frames.read_frame(source)
            assert (said, Fields(payload).text()) == (frames.FAIL, kind)
            assert sorted(os.listdir(tmp_path)) == ["of its own", "taken.json"]
    assert list(store.read(taken)) == ["old"]


def test_a_refused_write_leaves_the_connection_fit_for_the_next(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    path = str(tmp_path / "0.json")
    Path(path).write_text("first\n")
    with connected(endpoint) as (out, source):
        for name, answer in ((path, frames.FAIL), (str(tmp_path / "1.json"), frames.OK)):
            write_frame(out, frames.WRITE, packed(False, name))
            write_frame(out, frames.DATA, b"x" * 3_000_000 + b"\n")
            write_frame(out, frames.END)
            out.flush()
            assert frames.read_frame(source)[0] == answer
    assert Path(path).read_text() == "first\n"


def test_what_is_no_text_is_not_written(endpoint: Endpoint, tmp_path: Path) -> None:
    with connected(endpoint) as (out, source):
        write_frame(out, frames.WRITE, packed(False, str(tmp_path / "0.json")))
        write_frame(out, frames.DATA, b"\xff\xfe\n")
        write_frame(out, frames.END)
        out.flush()
        kind, payload = frames.read_frame(source)
    assert (kind, Fields(payload).text()) == (frames.FAIL, "not-utf8")
    assert not (tmp_path / "0.json").exists()


def test_a_scheme_no_one_knows_is_refused(store: ServedStore) -> None:
    with pytest.raises(LogStoreError, match="no built-in store for the scheme 'gopher'"):
        store.write("gopher://b/t/_delta_log/0.json", ["x"])
    with pytest.raises(LogStoreError, match="no built-in store for the scheme 'gopher'"):
        list(store.list_from("gopher://b/t/_delta_log/0.json"))


def test_a_store_that_excludes_no_one_is_refused(tmp_path: Path) -> None:
    conf = {"spark.delta.logStore.class": f"{__name__}.Careless"}
    path = str(tmp_path / "0.json")
    with LogStoreService(conf, endpoint_file=tmp_path / "one") as service:
        store = ServedStore({ENDPOINT: str(service.endpoint_file)})
        with pytest.raises(LogStoreError, match="excludes no other writer"):
            store.write(path, ["x"])
        store.write(path, ["x"], overwrite=True)
    conf["spark.lakelog.unsafe.singleWriter"] = "true"
    with LogStoreService(conf, endpoint_file=tmp_path / "one") as service:
        ServedStore({ENDPOINT: str(service.endpoint_file)}).write(f"{path}1", ["x"])


def test_settings_of_clients_reach_the_store_and_the_service_s_own_win() -> None:
    own = {"fs.s3a.endpoint.region": "eu-west-3", "spark.lakelog.store.retry.timeBudget": "7"}
    stores = Stores(own)
    theirs = {
        "fs.s3a.endpoint": "http://127.0.0.1:9",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.delta.logStore.s3a.impl": "any.Class",
    }
    store = stores.store_for("s3a://b/t", theirs)
    assert isinstance(store, S3ConditionalLogStore)
    assert store.conf == {
        "spark.delta.logStore.class": BRIDGE_CLASS,
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-3",
        "spark.lakelog.store.retry.timeBudget": "7",
    }
    assert stores.store_for("s3a://other/x", dict(theirs)) is store
    assert stores.store_for("s3a://b/t", {}) is not store
    stores.close()


def test_clients_say_what_is_behind_the_bridge_where_the_service_does_not() -> None:
    theirs = {"spark.lakelog.bridge.store.s3a": f"{__name__}.Careless"}
    assert isinstance(Stores({}).store_for("s3a://b/t", theirs), Careless)
    own = {"spark.delta.logStore.class": "io.delta.storage.S3DynamoDBLogStore"}
    assert isinstance(Stores(own).store_for("s3a://b/t", theirs), S3DynamoDBLogStore)


@pytest.mark.parametrize("prefix", ["", "spark."])
def test_a_service_that_chooses_for_one_scheme_leaves_the_others_to_clients(prefix: str) -> None:
    theirs = {"spark.lakelog.bridge.store": f"{__name__}.Careless"}
    stores = Stores({f"{prefix}delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"})
    assert isinstance(stores.store_for("s3a://b/t", theirs), S3DynamoDBLogStore)
    assert isinstance(stores.store_for("/t", theirs), Careless)
    assert type(stores.store_for("/t", {})) is LocalLogStore


def test_confs_are_not_remembered_without_end() -> None:
    stores = Stores({})
    first = stores.store_for("/t", {"spark.app.id": "0"})
    for number in range(300):
        stores.store_for("/t", {"spark.app.id": str(number)})
    assert stores.store_for("/t", {"spark.app.id": "299"}) is not first
    assert stores.store_for("/t", {"spark.app.id": "0"}) is not first
    assert len(stores._made) <= 256


def test_its_end_takes_the_endpoint_file_and_the_socket_with_it(tmp_path: Path) -> None:
    service = LogStoreService(endpoint_file=tmp_path / "bridge")
    endpoint = Endpoint.read(service.endpoint_file)
    with connected(endpoint) as (_, source):
        service.stop()
        service.stop()
        assert source.read(1) == b""
    assert not service.endpoint_file.exists()
    assert not Path(endpoint.unix).parent.exists()


def test_a_request_that_has_begun_is_finished_before_the_end(tmp_path: Path) -> None:
    service = LogStoreService(endpoint_file=tmp_path / "bridge")
    path = str(tmp_path / "0.json")
    with connected(Endpoint.read(service.endpoint_file)) as (out, source):
        write_frame(out, frames.WRITE, packed(False, path))
        write_frame(out, frames.DATA, b"begun\n" * 100_000)
        out.flush()
        while not _at_work(service):
            pass
        ending = threading.Thread(target=service.stop, args=(60,))
        ending.start()
        while service.endpoint_file.exists():
            pass
        write_frame(out, frames.END)
        out.flush()
        assert frames.read_frame(source)[0] == frames.OK
        ending.join(60)
    assert Path(path).stat().st_size == 600_000


def _at_work(service: LogStoreService) -> bool:
    return True in service._open.values()


def test_a_second_service_is_refused_while_the_first_lives(service: LogStoreService) -> None:
    with pytest.raises(FileExistsError, match="running already"):
        LogStoreService(endpoint_file=service.endpoint_file)


def test_what_a_killed_service_left_is_cleared_away(tmp_path: Path) -> None:
    file = tmp_path / "bridge"
    dead = Path(tempfile.mkdtemp(prefix="lakelog-", dir=tmp_path))
    Endpoint(str(dead / "socket"), 0, "old").write(file)
    with LogStoreService(endpoint_file=file) as service:
        assert Endpoint.read(file).token != "old"
        assert not dead.exists()
        # Somebody has put another one in its place: that is not ours to remove.
        Endpoint("elsewhere", 0, "new").write(service.endpoint_file)
    assert Endpoint.read(file).token == "new"


def test_a_file_that_is_no_endpoint_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "bridge"
    file.write_text("version=1\nport=many\n")
    with pytest.raises(ValueError, match="not the endpoint file"):
        Endpoint.read(file)


def test_the_default_place_is_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKELOG_BRIDGE", raising=False)
    monkeypatch.setenv("HOME", "/home/of")
    assert default_endpoint_file() == Path("/home/of/.lakelog/bridge")
    monkeypatch.setenv("LAKELOG_BRIDGE", "/run/x")
    assert default_endpoint_file() == Path("/run/x")


def test_connections_are_dropped_and_new_ones_taken(
    service: LogStoreService, endpoint: Endpoint, store: ServedStore, tmp_path: Path
) -> None:
    with connected(endpoint) as (_, source):
        service.drop_connections()
        assert source.read(1) == b""
    store.write(str(tmp_path / "0.json"), ["x"])


def test_failures_have_names() -> None:
    assert failure_of(FileExistsError(errno.EEXIST, "taken", "/x"))[0] == "exists"
    assert failure_of(NotADirectoryError(errno.ENOTDIR, "no"))[0] == "no-folder"
    assert failure_of(OSError(errno.ENOSPC, "full")) == ("io", "OSError: [Errno 28] full")
    assert failure_of(TypeError("a bug")) == ("failed", "TypeError: a bug")
    error = ValueError("which")
    error.add_note("this one")
    assert failure_of(error) == ("invalid", "which\nthis one")


def test_frames_that_are_none_are_reported() -> None:
    with pytest.raises(ProtocolError, match="within a field"):
        Fields(b"\0\0\0\x09short").text()
    with pytest.raises(ProtocolError, match="UTF-8"):
        Fields(b"\0\0\0\1\xff").text()
    assert packed_entry("ü", 1 << 40, 2, True) == packed("ü", 1 << 40, 2, True)
    fields = Fields(packed("ü", True, -1, {"a": "b"}))
    assert (fields.text(), fields.truth(), fields.number()) == ("ü", True, -1)
    assert fields.mapping() == {"a": "b"}
    assert not fields.more()


def test_the_jar_comes_with_the_package_and_has_the_class() -> None:
    with zipfile.ZipFile(bridge_jar()) as jar:
        assert BRIDGE_CLASS.replace(".", "/") + ".class" in jar.namelist()


def test_strangers_who_say_nothing_lock_no_one_out(
    service: LogStoreService, endpoint: Endpoint, tmp_path: Path
) -> None:
    """Many more than there may be clients, each with a part of a greeting."""
    store = ServedStore({ENDPOINT: str(service.endpoint_file)})
    with contextlib.ExitStack() as stack:
        store.write(str(tmp_path / "0.json"), ["a client that was there before"])
        for number in range(600):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
            link.sendall(b"\0\0\0\x40H"[: number % 6])
        with connected(replace(endpoint, unix="")) as (out, source):
            write_frame(out, frames.PARTIAL, packed(str(tmp_path / "x")))
            out.flush()
            assert source.read(1)
        store.write(str(tmp_path / "1.json"), ["it is still there"])
        with service._lock:
            assert len(service._strangers) <= server._MOST_STRANGERS


def test_a_greeting_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is in time; all of them are not."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ours, theirs = socket.socketpair()
    with ours, theirs, server._Hurried(ours, 10.0) as hurried:
        for _ in range(3):
            theirs.sendall(b"x")
            assert hurried.read(1) == b"x"
            now[0] += 3.0
        assert ours.gettimeout() == pytest.approx(4.0)
        now[0] += 1.0
        theirs.sendall(b"x")
        with pytest.raises(TimeoutError, match="who it is"):
            hurried.read(1)
        hurried.no_more()
        assert hurried.read(1) == b"x"
        assert ours.gettimeout() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda place: (place / "lakelog-abcdefgh").mkdir(mode=0o700),
        lambda place: (place / "lakelog-abcdefgh").symlink_to(place / "victim"),
    ],
    ids=["folder", "link"],
)
@pytest.mark.parametrize("name", ["lakelog-abcdefgh", "lakelog-notes", "victim"])
def test_a_folder_that_an_endpoint_file_names_stays_unless_it_is_a_dead_socket_s(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "thesis.txt").write_text("years")
    (victim / "socket").write_text("a file of that name")
    (tmp_path / "lakelog-notes").mkdir(mode=0o700)
    make(tmp_path)
    place = tmp_path / name
    if not place.is_symlink() and name != "victim":
        (place / "thesis.txt").write_text("years")
    file = tmp_path / "bridge"
    Endpoint(str(place / "socket"), 0, "x").write(file)
    with LogStoreService(endpoint_file=file):
        assert (place / "thesis.txt").read_text() == "years"
    assert (victim / "socket").read_text() == "a file of that name"


def test_the_folder_of_a_service_that_listens_stays(
    service: LogStoreService, tmp_path: Path
) -> None:
    endpoint = Endpoint.read(service.endpoint_file)
    foreign = tmp_path / "bridge"
    Endpoint(endpoint.unix, 0, "another token").write(foreign)
    with LogStoreService(endpoint_file=foreign):
        assert Path(endpoint.unix).is_socket()
        with connected(endpoint) as (out, _):
            assert out.writable()


@pytest.mark.parametrize("text", ["", "export PATH=/bin", "unix=/x"])
def test_a_file_that_is_no_endpoint_is_not_replaced(text: str, tmp_path: Path) -> None:
    file = tmp_path / ".bashrc"
    file.write_text(text)
    with pytest.raises(FileExistsError, match="does not replace it"):
        LogStoreService(endpoint_file=file)
    assert file.read_text() == text
