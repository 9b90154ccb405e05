"""How a process's first client of the SDK is made."""

from __future__ import annotations

import gc
import gzip
import json
from typing import TYPE_CHECKING

import pytest
from botocore.loaders import create_loader
from botocore.session import get_session

from lakelog.logstores.s3 import models, sdk
from lakelog.logstores.s3.client import S3Client

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.logstores.s3.conf import S3Settings

CONF = {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s", "fs.s3a.endpoint": "http://h"}


@pytest.fixture
def unread() -> None:
    """Nothing is read yet: the SDK completes in place what it has read."""
    models._loader.cache_clear()


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1", "paginators-1"])
def test_the_models_of_s3_are_those_that_the_sdk_reads(kind: str) -> None:
    ours = models.loader_of(get_session()).load_service_model("s3", kind)
    assert ours == create_loader().load_service_model("s3", kind)


@pytest.mark.usefixtures("unread")
def test_what_is_about_all_services_is_the_same_too() -> None:
    ours, theirs = models.loader_of(get_session()), create_loader()
    for name in ("endpoints", "partitions", "_retry", "sdk-default-configuration"):
        assert ours.load_data(name) == theirs.load_data(name)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_models_of_the_users_own_folder_come_first(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"mine": "é"}).encode()
    name = "_retry.json.gz" if packed else "_retry.json"
    (tmp_path / name).write_bytes(gzip.compress(text) if packed else text)
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    assert models.loader_of(get_session()).load_data("_retry") == {"mine": "é"}


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_collected_after_a_client_is_made_as_it_was_before(
    was_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    original = sdk._new_wire

    def watched(settings: S3Settings) -> object:
        seen.append(gc.isenabled())
        if was_on:
            raise RuntimeError("no client")
        return original(settings)

    monkeypatch.setattr(sdk, "_new_wire", watched)
    client = S3Client.from_conf({**CONF, "fs.s3a.user.agent.prefix": str(was_on)}, "bucket")
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        if was_on:
            with pytest.raises(RuntimeError, match="no client"):
                _ = client.sdk
        else:
            _ = client.sdk
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False]
