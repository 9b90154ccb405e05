"""Nothing that is printed holds a secret of the conf, of the environment, or of a URL."""

from __future__ import annotations

import re

import pytest

from lakelog.cli.doctor.misspelt import KNOWN
from lakelog.cli.secrets import Scrubber
from lakelog.logstores.settings import masked

SECRET = re.compile(
    r"(?i)secret|password|token|credential|private|sas|(account|access|encryption).key"
)


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key",
        "spark.hadoop.fs.azure.account.key.lake.blob.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.s3a.proxy.password",
        # A letter too many, too few, or in the wrong place.
        "spark.hadoop.fs.s3a.secert.key",
        "spark.hadoop.fs.s3a.acess.key",
        "spark.hadoop.fs.s3a.sesion.tokn",
        "spark.hadoop.fs.s3a.proxy.pasword",
        "spark.hadoop.fs.azure.acount.key.lake.blob.core.windows.net",
        "fs.azure.account.kye",
    ],
)
def test_a_secret_of_the_conf_is_starred_out_wherever_it_appears(key: str) -> None:
    clean = Scrubber({key: "hunter2hunter2"})
    assert clean.text("refused: 'hunter2hunter2' is wrong") == "refused: '******' is wrong"


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY",
             "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_SECRET"],
)  # fmt: skip
def test_a_secret_of_the_environment_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hunter2hunter2")
    assert "hunter2" not in Scrubber({}).text("x hunter2hunter2 y")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://me:hunter2@proxy:80/x", "http://******@proxy:80/x"),
        ("https://a.net/c?sv=1&sig=hunter2%3D&se=2", "https://a.net/c?sv=1&sig=******&se=2"),
        ("AccountName=a;AccountKey=hunter2==;B=c", "AccountName=a;AccountKey=******;B=c"),
        ("s3a://bucket/table@v1", "s3a://bucket/table@v1"),
        ("abfss://container@account.dfs.core.windows.net/t",) * 2,
    ],
)
def test_what_urls_and_connection_strings_hold(text: str, expected: str) -> None:
    assert Scrubber({}).text(text) == expected


def test_who_keeps_the_credentials_is_no_secret() -> None:
    key, value = "spark.hadoop.fs.s3a.aws.credentials.provider", "a.b.SimpleProvider"
    assert Scrubber({key: value}).text(value) == value


def test_keys_that_are_known_and_hold_no_secret_stay_readable() -> None:
    open_ones = [key for key in KNOWN if not SECRET.search(key)]
    assert len(open_ones) > 40
    assert [key for key in open_ones if masked(key, "value") != "value"] == []


def test_short_values_and_file_names_stay_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json")
    clean = Scrubber({"spark.hadoop.fs.s3a.secret.key": "a"})
    assert clean.text("a cat at /home/me/key.json") == "a cat at /home/me/key.json"


def test_data_is_cleaned_to_its_leaves() -> None:
    clean = Scrubber({"fs.s3a.secret.key": "hunter2"})
    dirty = {"a": ["hunter2", {"b": ("x hunter2", 1, None, True)}], "hunter2": 2.5}
    assert clean.data(dirty) == {"a": ["******", {"b": ["x ******", 1, None, True]}], "******": 2.5}
