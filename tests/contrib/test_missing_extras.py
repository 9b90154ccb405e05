"""A store whose SDK is not installed names the extra that brings it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.alibaba_oss import OSSLogStore
from lakelog.contrib.fsspec_store import FsspecLogStore
from lakelog.contrib.oracle_oci import OracleCloudLogStore
from lakelog.logstores import MissingExtraError

if TYPE_CHECKING:
    from lakelog.logstores import LogStore


@pytest.mark.parametrize(
    ("store", "path", "module", "extra"),
    [
        (OSSLogStore(), "oss://bucket/t/0.json", "alibabacloud_oss_v2", "oss"),
        (OracleCloudLogStore(), "oci://bucket@ns/t/0.json", "oci", "oci"),
        (FsspecLogStore(), "memory://t/0.json", "fsspec", "fsspec"),
    ],
)
def test_the_extra_is_named_at_the_first_use(
    store: LogStore, path: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install '\.\[{extra}\]'") as caught:
        list(store.read(path))
    assert caught.value.extra == extra
