"""What describes the services is read once, however many clients there are."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores.s3.client import S3Client
from lakelog.logstores.s3.models import loader_of
from lakelog.logstores.s3.sdk import in_force

if TYPE_CHECKING:
    from pathlib import Path

session = pytest.importorskip("botocore.session")


def _client(number: int) -> S3Client:
    conf = {"access.key": "abcdefgh", "secret.key": "abcdefgh", "endpoint": f"http://h{number}"}
    return S3Client.from_conf({f"fs.s3a.{key}": value for key, value in conf.items()}, "bucket")


def test_clients_of_many_endpoints_read_the_models_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    loader = loader_of(session.get_session())
    load = loader.file_loader.load_file

    def noting(path: str) -> Any:
        read.append(path)
        return load(path)

    monkeypatch.setattr(loader.file_loader, "load_file", noting)
    before = list(loader.search_paths)
    for number in range(3):
        client = _client(number)
        assert client.sdk.meta.endpoint_url == f"http://h{number}"
        in_force(client.settings)  # by boto3, which adds a folder to its own loader
    assert len(set(read)) == len(read)
    assert loader.search_paths == before


def test_models_of_another_folder_are_another_loaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = loader_of(session.get_session())
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    assert loader_of(session.get_session()).search_paths[0] == str(tmp_path)
    assert str(tmp_path) not in usual.search_paths


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # it says that threads are dangerous
def test_a_child_of_a_fork_reads_on_though_a_thread_was_reading() -> None:
    from lakelog.logstores.s3 import models

    held, done = threading.Event(), threading.Event()

    def read() -> None:
        with models._reading:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=read)
    thread.start()
    held.wait(60)
    child = os.fork()
    if not child:
        os._exit(0 if models._reading.acquire(timeout=5) else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert status == 0
