"""A URI or an endpoint with credentials is refused before anything could keep or show it."""

from __future__ import annotations

import inspect
import logging
import pickle
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lakelog.core
from lakelog.core import DeltaLog, alter
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaError
from lakelog.core.paths import normalize_table_uri
from lakelog.logstores import LogStoreConfError, log_store_for, resolve
from lakelog.logstores.locations import check_uri, shown, without_secrets
from lakelog.logstores.settings import masked, storage_settings
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "hunter2/hunter2+"
URIS = [
    f"s3a://AKIAKEY:{SECRET}@bucket/t",
    "s3://AKIAKEY:hunter2hunter2%2F@bucket/t",
    "S3A://AKIAKEY:hunter2@hunter2@bucket/t",
    "s3n://hunter2hunter2@bucket/t",
    "s3a:/AKIAKEY:hunter2hunter2@bucket/t",
    "gs://me:hunter2hunter2@bucket/t",
    "hdfs://me:hunter2hunter2@nn:8020/t",
    "x-own://me:hunter2hunter2@host/t",
    "oss://id:hunter2hunter2@bucket.oss-cn.aliyuncs.com/t",
    "abfss://c:hunter2hunter2@account.dfs.core.windows.net/t",
    "abfss://c@account.dfs.core.windows.net/t?sv=1&sig=hunter2hunter2&se=2",
    "az://c/t?SharedAccessSignature=hunter2hunter2",
    "s3a://bucket/t?X-Amz-Signature=hunter2hunter2",
]
PLAIN = [
    "/lake/a:b@c/t",
    "relative/a@b",
    "file:///lake/t",
    "s3a://bucket/a:b@c/t",
    "s3a://bucket/day=2024-01-01 10:00/me@example.com",
    "hdfs://nn:8020/user/me@REALM/t",
    "hdfs://me@nn:8020/t",
    "hdfs:///t",
    "abfss://container@account.dfs.core.windows.net/a@b:c",
    "oci://bucket@namespace/t",
    "cos://bucket.service/t",
    "memory://name/t",
    "gs://bucket/sign=1/t",
]


@pytest.mark.parametrize("uri", PLAIN)
def test_other_uris_are_no_one_s_secret(uri: str) -> None:
    check_uri(uri)
    assert without_secrets(uri) == uri
    assert shown(uri) == repr(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "file:/data:v1/me@example.com/t",
        "file:///C:/Users/me@example.com/t",
        "/lake/sig=1/t",
        "s3a://bucket/t/signature=x/p=1",
        "abfss://c@account.dfs.core.windows.net/sig=1",
    ],
)
def test_what_only_looks_like_one_is_taken(uri: str) -> None:
    check_uri(uri)


def test_a_folder_hides_no_signature_behind_it() -> None:
    for uri in ("wasbs://c@a/sig=1/t?sig=xx", "az://c/sig=1?sig=xx", "az://c/sig=1&sig=xx"):
        with pytest.raises(LogStoreConfError):
            check_uri(uri)


def everything_of(error: BaseException) -> str:
    """All that anybody could print, log, keep or send of an error."""
    text = "".join(traceback.format_exception(error))
    parts = [text, repr(error), str(error.args), str(vars(error))]
    return "".join(parts) + pickle.dumps(error).decode("latin-1")


def doors() -> dict[str, Callable[[str], object]]:
    """Every public function of the core that takes a table, and what it stands on."""
    found: dict[str, Callable[[str], object]] = {
        "log_store_for": log_store_for,
        "resolve": resolve,
        "normalize_table_uri": normalize_table_uri,
        "DeltaLog": lambda uri: DeltaLog.for_table(uri),
        "a conf": lambda uri: DeltaLog.for_table(uri, DeltaConf.from_mapping({"a": "b"})),
    }
    functions = {
        name: getattr(home, name) for home in (lakelog.core, alter) for name in home.__all__
    }
    for name, function in functions.items():
        if not inspect.isfunction(function):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].name not in ("uri", "source", "table"):
            continue
        needed: list[Any] = [
            _argument(each.name)
            for each in parameters[1:]
            if each.default is each.empty
            and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        named = {
            each.name: _argument(each.name)
            for each in parameters[1:]
            if each.default is each.empty and each.kind is each.KEYWORD_ONLY
        }
        found[name] = partial(_called, partial(function, **named), needed)
    return found


def _called(function: Callable[..., Any], others: list[Any], uri: str) -> Any:
    """Builders do nothing before they are executed."""
    found = function(uri, *others)
    execute = getattr(found, "when_matched_delete", None)
    return found if execute is None else execute().execute()


def _argument(name: str) -> Any:
    return {
        "data": pa.table({"a": [1]}),
        "source": pa.table({"a": [1]}),
        "rows": pa.table({"a": [1]}),
        "schema": "a int",
        "target": "memory://elsewhere/t",
        "set": {"a": "1"},
        "properties": {"a": "b"},
    }.get(name, "a")


@pytest.mark.parametrize("name", doors())
def test_no_door_keeps_shows_or_logs_it(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for uri in URIS:
        with pytest.raises(LogStoreConfError) as caught:
            doors()[name](uri)
        said = everything_of(caught.value.with_traceback(None)) + caplog.text
        assert "hunter2" not in said, uri
        assert "******" in str(caught.value)


@pytest.mark.parametrize("name", sorted(set(doors()) - {"log_store_for", "resolve"}))
def test_what_can_be_no_path_is_refused_in_words_by_every_door(name: str) -> None:
    for uri in (b"/tmp/t", None, 5, ["t"]):
        with pytest.raises((TypeError, DeltaError), match=r"must be") as caught:
            doors()[name](uri)  # type: ignore[arg-type]
        assert type(uri).__name__ in str(caught.value)
    with pytest.raises(ValueError, match=r"can't hold the character U\+0000"):
        doors()[name]("/tmp/a\0b")


def test_the_doors_are_many() -> None:
    assert len(doors()) > 25


ENDPOINTS = [
    "https://me:hunter2hunter2@minio:9000",
    "https://hunter2hunter2@minio:9000",
    "https://account.blob.core.windows.net?sv=1&sig=hunter2hunter2",
    "http://127.0.0.1:10000/devstoreaccount1?SharedAccessSignature=hunter2hunter2",
]
KEYS = [
    "spark.hadoop.fs.s3a.endpoint",
    "fs.s3a.bucket.lake.endpoint",
    "spark.hadoop.fs.gs.storage.root.url",
    "spark.lakelog.azure.endpoint",
    "spark.hadoop.fs.oss.endpoint",
    "spark.hadoop.fs.cos.service.endpoint",
    "spark.lakelog.s3dynamodb.endpoint",
]


@pytest.mark.parametrize("value", ENDPOINTS)
@pytest.mark.parametrize("key", KEYS)
def test_an_endpoint_with_credentials_is_refused_and_masked(key: str, value: str) -> None:
    assert "hunter2" not in masked(key, value)
    assert "hunter2" not in str(storage_settings({key: value}))
    for uri in ("s3a://bucket/t", "abfss://c@account.dfs.core.windows.net/t", "/lake/t"):
        with pytest.raises(LogStoreConfError, match="credentials") as caught:
            log_store_for(uri, {key: value})
        assert key in str(caught.value)
        assert "hunter2" not in everything_of(caught.value)


@pytest.mark.parametrize(
    "uri", ["s3a:/bucket/t", "s3a:bucket/t", "s3://", "gs:/b/t", "abfss:/c/t", "oci:/b", "S3:/b/t"]
)
def test_a_uri_of_an_object_store_without_a_bucket_is_told_how_to_write_it(uri: str) -> None:
    for door in (resolve, log_store_for, normalize_table_uri, DeltaLog.for_table):
        with pytest.raises(ValueError, match=r"names no bucket.*://") as caught:
            door(uri)
        assert isinstance(caught.value, LogStoreConfError)


@pytest.mark.parametrize(
    ("uri", "here"),
    [
        ("C:\\lake\\t", "/mnt/c/lake/t"),
        ("d:/lake/t", "/mnt/d/lake/t"),
        ("\\\\host\\lake\\t", "/mnt/share"),
    ],
)
def test_a_path_of_windows_is_answered_with_where_it_is_mounted(uri: str, here: str) -> None:
    for door in (resolve, log_store_for, normalize_table_uri, DeltaLog.for_table):
        with pytest.raises(LogStoreConfError, match=f"is a path of Windows.* {here}$"):
            door(uri)
    assert normalize_table_uri(f"/lake/{uri}").startswith("/lake/")


def test_a_path_of_windows_is_one_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelog.logstores.locations.os.name", "nt")
    check_uri("C:\\lake\\t")
    monkeypatch.undo()  # pathlib goes by it


def test_a_file_uri_with_a_relative_path_is_neither() -> None:
    for door in (resolve, log_store_for, normalize_table_uri, DeltaLog.for_table):
        with pytest.raises(LogStoreConfError, match="write file:///path, or lake/t alone"):
            door("file:lake/t")


WORD = st.text(st.sampled_from("abc/+=%:@ß_-.~"), min_size=1, max_size=12)


@settings(max_examples=examples(40))
@given(st.sampled_from(["s3", "s3a", "gs", "hdfs", "ftp", "abfss"]), WORD, WORD)
@example("s3a", "id", "a/b/c")
def test_whatever_a_password_is_made_of_it_is_not_shown(scheme: str, user: str, word: str) -> None:
    secret = f"hunter2{word}hunter2"
    user = user.translate(str.maketrans("/:@", "___"))
    text = f"reading {scheme}://{user}:{secret}@host.name/path failed"
    assert "hunter2" not in without_secrets(text)
    assert "host.name/path failed" in without_secrets(text)


@pytest.mark.parametrize("value", ENDPOINTS[:2])
def test_so_is_one_of_the_environment(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    # A region of its own, because clients of the same settings are shared.
    store = log_store_for("s3a://bucket/t", {"fs.s3a.endpoint.region": f"eu-{len(value)}"})
    with pytest.raises(LogStoreConfError, match="endpoint_url of AWS") as caught:
        list(store.list_from("s3a://bucket/t/_delta_log/"))
    assert "hunter2" not in everything_of(caught.value)
