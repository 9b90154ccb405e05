"""The local store where the file system is poor, full, closed, or lies."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, LocalLogStore, UnsafeLogStoreError
from lakelog.logstores.conformance import LogStoreConformance
from lakelog.logstores.local import file_creation as _local_files
from lakelog.logstores.local.store import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "00000000000000000000.json"


@pytest.fixture
def store() -> LocalLogStore:
    return LocalLogStore()


@pytest.fixture(autouse=True)
def forget_devices() -> Iterator[None]:
    """What is learned about a device from a faked refusal must not outlive the test."""
    before = set(_local_files._without_anonymous)
    yield
    _local_files._without_anonymous.clear()
    _local_files._without_anonymous.update(before)


def failing(code: int) -> Callable[..., Any]:
    def fail(*args: object, **kwargs: object) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


def refuse_anonymous(patch: pytest.MonkeyPatch, code: int = errno.EOPNOTSUPP) -> None:
    """As NFS, and overlay file systems of older kernels."""
    real = os.open

    def refuse(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if _local_files._O_TMPFILE and flags & _local_files._O_TMPFILE == _local_files._O_TMPFILE:
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, *args, **kwargs)

    patch.setattr(os, "open", refuse)


def refuse_links(patch: pytest.MonkeyPatch) -> None:
    """As vfat and exFAT."""
    patch.setattr(os, "link", failing(errno.EPERM))


def refuse_exclusive_renames(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_local_files, "_rename_no_replace", failing(errno.EINVAL))


def lose_proc(patch: pytest.MonkeyPatch) -> None:
    """As a chroot without /proc."""
    real = os.link

    def link(source: str, *args: Any, **kwargs: Any) -> None:
        if source.startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        real(source, *args, **kwargs)

    patch.setattr(os, "link", link)


def fail_folder_sync(patch: pytest.MonkeyPatch, code: int) -> None:
    real = _local_files.sync

    def sync(fd: int) -> None:
        if os.path.isdir(f"/dev/fd/{fd}"):
            raise OSError(code, os.strerror(code))
        real(fd)

    patch.setattr(_local_files, "sync", sync)


RUNGS: dict[str, list[Callable[[pytest.MonkeyPatch], None]]] = {
    "anonymous files": [],
    "named drafts": [refuse_anonymous],
    "no /proc": [lose_proc],
    "no links": [refuse_links],
    "neither anonymous files nor links": [refuse_anonymous, refuse_links],
}


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(
    "check",
    [
        "a_taken_name_is_refused_and_kept",
        "lines_that_fail_leave_nothing",
        "no_reader_sees_a_part_of_a_new_file",
        "of_racing_threads_exactly_one_wins",
        "overwrite_replaces_the_whole_file",
        "writers_of_one_log_lose_nothing",
    ],
)
def test_every_rung_of_the_ladder_keeps_the_promises(
    rung: str, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    for spoil in RUNGS[rung]:
        spoil(monkeypatch)
    getattr(LogStoreConformance(), f"test_{check}")(store, str(tmp_path))


def test_what_a_device_lacks_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    refuse_anonymous(monkeypatch)
    store.write(f"{tmp_path}/{NAME}", ["x"])
    assert os.stat(tmp_path).st_dev in _local_files._without_anonymous


def test_below_the_ladder_the_store_refuses_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    refuse_links(monkeypatch)
    refuse_exclusive_renames(monkeypatch)
    with pytest.raises(UnsafeLogStoreError) as caught:
        store.write(f"{tmp_path}/{NAME}", ["x"])
    for part in (NAME, "link: ", "rename: ", "spark.lakelog.unsafe.singleWriter=true"):
        assert part in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_single_writer_may_go_below_the_ladder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_links(monkeypatch)
    refuse_exclusive_renames(monkeypatch)
    store = LocalLogStore({"spark.lakelog.unsafe.singleWriter": "true"})
    store.write(f"{tmp_path}/{NAME}", ["x"])
    with pytest.raises(FileExistsError):
        store.write(f"{tmp_path}/{NAME}", ["y"])
    assert os.listdir(tmp_path) == [NAME]
    assert list(store.read(f"{tmp_path}/{NAME}")) == ["x"]


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO, errno.ETIMEDOUT])
def test_a_link_that_worked_though_its_answer_says_otherwise_is_a_success(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    real = os.link

    def link(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    store.write(f"{tmp_path}/{NAME}", ["x"])
    assert os.listdir(tmp_path) == [NAME]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_names_the_file_and_leaves_nothing(
    call: str,
    overwrite: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: LocalLogStore,
) -> None:
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))
    with pytest.raises(OSError, match=NAME) as caught:
        store.write(f"{tmp_path}/{NAME}", ["x"], overwrite=overwrite)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("spoil", [lambda patch: None, refuse_anonymous])
def test_a_real_limit_in_the_midst_of_a_file_leaves_nothing(
    spoil: Callable[[pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: LocalLogStore,
) -> None:
    spoil(monkeypatch)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, hard))
    try:
        with pytest.raises(OSError, match=NAME) as caught:
            store.write(f"{tmp_path}/{NAME}", ["x" * 999_999] * 5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == []


def test_an_old_file_survives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    store.write(f"{tmp_path}/hint", ["old"])
    monkeypatch.setattr(os, "write", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="hint"):
        store.write(f"{tmp_path}/hint", ["new"], overwrite=True)
    assert list(store.read(f"{tmp_path}/hint")) == ["old"]
    assert os.listdir(tmp_path) == ["hint"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_read_only_folder_refuses_with_the_path(overwrite: bool, store: LocalLogStore) -> None:
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        folder = Path(base, "log")
        folder.mkdir()
        folder.chmod(0o555)
        root = os.geteuid() == 0
        if root:  # permissions mean nothing to root
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError, match=f"{folder}/{NAME}"):
                store.write(f"{folder}/{NAME}", ["x"], overwrite=overwrite)
            with pytest.raises(PermissionError):
                store.create_folder(f"{folder}/sub")
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)
        assert os.listdir(folder) == []


def test_a_folder_that_cannot_be_flushed_leaves_the_outcome_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    fail_folder_sync(monkeypatch, errno.EIO)
    with pytest.raises(CommitOutcomeUnknownError, match="flushing the folder failed") as caught:
        store.write(f"{tmp_path}/{NAME}", ["x"])
    assert caught.value.path == f"{tmp_path}/{NAME}"
    assert list(store.read(f"{tmp_path}/{NAME}")) == ["x"]


def test_a_new_folder_that_cannot_be_flushed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    fail_folder_sync(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=str(tmp_path)) as caught:
        store.create_folder(f"{tmp_path}/a")
    assert caught.value.errno == errno.EIO


def test_a_file_system_that_cannot_flush_folders_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    fail_folder_sync(monkeypatch, errno.EINVAL)
    store.create_folder(f"{tmp_path}/a/b")
    store.write(f"{tmp_path}/a/b/{NAME}", ["x"])
    assert list(store.read(f"{tmp_path}/a/b/{NAME}")) == ["x"]


def test_file_and_folder_are_flushed_before_a_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    steps: list[str] = []
    real_sync, real_link = _local_files.sync, os.link

    def sync(fd: int) -> None:
        steps.append("flush folder" if os.path.isdir(f"/dev/fd/{fd}") else "flush file")
        real_sync(fd)

    def link(*args: Any, **kwargs: Any) -> None:
        steps.append("link")
        real_link(*args, **kwargs)

    monkeypatch.setattr(_local_files, "sync", sync)
    monkeypatch.setattr(os, "link", link)
    store.write(f"{tmp_path}/{NAME}", ["x"])
    assert steps == ["flush file", "link", "flush folder"]


def test_a_writer_that_dies_while_writing_leaves_no_commit(
    tmp_path: Path, store: LocalLogStore
) -> None:
    script = (
        "import os, sys\n"
        "from lakelog.logstores import LocalLogStore\n"
        "def lines():\n"
        "    yield 'x' * 3_000_000\n"
        "    os._exit(9)\n"
        "LocalLogStore().write(sys.argv[1], lines())\n"
    )
    died = subprocess.run([sys.executable, "-c", script, f"{tmp_path}/{NAME}"], check=False)
    assert died.returncode == 9
    assert list(store.list_from(f"{tmp_path}/0")) == []
    store.write(f"{tmp_path}/{NAME}", ["next"])
    assert list(store.read(f"{tmp_path}/{NAME}")) == ["next"]


def test_files_removed_during_a_listing_are_passed_over(
    tmp_path: Path, store: LocalLogStore
) -> None:
    for name in "abc":
        store.write(f"{tmp_path}/{name}", [name])
    listing = store.list_from(f"{tmp_path}/")
    first = next(listing)
    (tmp_path / "b").unlink()
    assert [first.name, *(status.name for status in listing)] == ["a", "c"]


def test_a_link_to_nothing_is_listed_because_it_takes_its_name(
    tmp_path: Path, store: LocalLogStore
) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "gone")
    assert [status.name for status in store.list_from(f"{tmp_path}/0")] == [NAME]
    with pytest.raises(FileExistsError):
        store.write(f"{tmp_path}/{NAME}", ["x"])


def test_a_link_that_can_not_be_followed_hides_nothing_beside_it(
    tmp_path: Path, store: LocalLogStore
) -> None:
    (tmp_path / "a").symlink_to("a")
    (tmp_path / "b").mkdir()
    (tmp_path / "c").write_text("x")
    (tmp_path / "d").symlink_to("c/below")
    (tmp_path / "e").symlink_to("b")
    found = {each.name: each.is_directory for each in store.list_from(f"{tmp_path}/")}
    assert found == {"a": False, "b": True, "c": False, "d": False, "e": True}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_name_of_the_greatest_length_can_be_written(
    overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: LocalLogStore
) -> None:
    refuse_anonymous(monkeypatch)
    store.write(f"{tmp_path}/{'n' * 255}", ["x"], overwrite=overwrite)
    assert os.listdir(tmp_path) == ["n" * 255]


def test_files_get_the_permissions_of_the_umask(tmp_path: Path, store: LocalLogStore) -> None:
    before = os.umask(0o027)
    try:
        store.write(f"{tmp_path}/a", ["x"])
        store.write(f"{tmp_path}/b", ["x"], overwrite=True)
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in "ab"} == {0o640}


def test_a_folder_where_a_file_stands_is_refused(tmp_path: Path, store: LocalLogStore) -> None:
    (tmp_path / "file").touch()
    for path in (f"{tmp_path}/file", f"{tmp_path}/file/below"):
        with pytest.raises(OSError, match="file"):
            store.create_folder(path)


def test_a_path_that_names_a_folder_is_not_written(tmp_path: Path, store: LocalLogStore) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        store.write(f"{tmp_path}/folder/", ["x"])
    with pytest.raises(OSError, match="folder"):
        store.write(f"{tmp_path}/folder", ["x"], overwrite=True)
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a:b/c%20d", "/a:b/c%20d"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file://localhost/a b", "/a b"),
        ("file:///a%20b", "/a%20b"),
    ],
)
def test_a_local_uri_is_a_path_and_nothing_is_decoded(uri: str, path: str) -> None:
    assert local_path(uri) == path


@pytest.mark.parametrize("uri", ["a/b", "", "s3://a/b", "file:a", "file://host/a", "file://"])
def test_what_is_no_local_path_is_refused_by_name(uri: str) -> None:
    with pytest.raises(ValueError, match="is not a path of the local file system") as caught:
        local_path(uri)
    assert repr(uri) in str(caught.value)
