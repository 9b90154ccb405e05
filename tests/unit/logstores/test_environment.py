"""Which proxy the environment names for a URL: as the SDKs read it that the logs go by."""

from __future__ import annotations

import itertools

import pytest
from botocore.httpsession import ProxyConfiguration
from botocore.utils import get_environ_proxies

from lakelog.logstores.azure import filesystem as azure
from lakelog.logstores.azure.conf import azure_settings
from lakelog.logstores.azure.uri import parse_azure_uri
from lakelog.logstores.environment import environment_proxy, needs_requests
from lakelog.logstores.gcs.conf import GCSSettings
from lakelog.logstores.gcs.filesystem import gcs_filesystem
from lakelog.logstores.s3.conf import S3Settings
from lakelog.logstores.s3.filesystem import arrow_filesystem

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PROXIES = (None, "http://user:word@proxy:3128", "proxy:3128", "//proxy:3128", "https://proxy")
NONE = (None, "*", ".example.com", "s3.example.com", "s3.example.com:9000", "10.0.0.1", "other")
URLS = (
    *(f"{scheme}://s3.example.com" for scheme in ("http", "https")),
    *("http://s3.example.com:9000", "https://10.0.0.1:9000/path"),
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*NAMES, *BUNDLES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def test_arrow_is_told_the_proxy_that_botocore_uses(bare: pytest.MonkeyPatch) -> None:
    found = set()
    for http, https, no in itertools.product(PROXIES, PROXIES, NONE):
        with bare.context() as patch:
            for name, value in (("HTTP_PROXY", http), ("https_proxy", https), ("no_proxy", no)):
                if value is not None:
                    patch.setenv(name, value)
            for url in URLS:
                expected = ProxyConfiguration(get_environ_proxies(url)).proxy_url_for(url)
                assert environment_proxy(url) == expected, (url, http, https, no)
                found.add(expected)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("variable", "url", "needed"),
    [
        (("HTTPS_PROXY", "http://proxy:1"), "https://host", True),
        (("HTTPS_PROXY", "http://proxy:1"), "http://host", False),
        (("HTTP_PROXY", "http://proxy:1"), "http://host", True),
        (("ALL_PROXY", "http://proxy:1"), "http://host", True),
        (("NO_PROXY", "host"), "https://host", False),
        (("REQUESTS_CA_BUNDLE", "/bundle"), "https://host", True),
        (("CURL_CA_BUNDLE", "/bundle"), "https://host", True),
        (("REQUESTS_CA_BUNDLE", "/bundle"), "http://host", False),
    ],
)
def test_an_sdk_is_needed_where_the_environment_says_how_a_url_is_reached(
    bare: pytest.MonkeyPatch, variable: tuple[str, str], url: str, needed: bool
) -> None:
    bare.setenv(*variable)
    assert needs_requests(url) is needed


def test_what_no_proxy_names_is_reached_by_arrow(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("HTTPS_PROXY", "http://proxy:1")
    bare.setenv("NO_PROXY", "host,.example.com")
    assert not needs_requests("https://host")
    assert not needs_requests("https://a.example.com")
    assert needs_requests("https://elsewhere")


def test_data_files_go_where_the_log_goes(bare: pytest.MonkeyPatch) -> None:
    google = GCSSettings(root_url="https://storage.googleapis.com", auth="anonymous")
    found = parse_azure_uri("abfss://c@account.dfs.core.windows.net/")
    account = azure_settings({"fs.azure.account.key": "a2V5"}, found, 5.0)

    def kinds() -> tuple[str, str]:
        by_sdk = needs_requests(account.endpoint)
        one = gcs_filesystem(google, 1.0)
        other = azure._account(0, account, 1.0, by_sdk=by_sdk)
        return one.type_name, other.type_name

    assert kinds() == ("gcs", "abfs")
    bare.setenv("HTTPS_PROXY", "http://proxy:1")
    assert all(kind.startswith("py::") for kind in kinds())


@pytest.mark.parametrize(
    ("proxy", "port"),
    [
        ("proxy", 80),
        ("https://proxy/", 443),
        ("http://u:w@proxy:", 80),
        ("http://[::1]:3128", 3128),
    ],
)
def test_arrow_is_told_the_port_of_a_proxy_that_names_none(
    bare: pytest.MonkeyPatch, proxy: str, port: int
) -> None:
    bare.setenv("HTTPS_PROXY", proxy)
    settings = S3Settings(region="eu-west-1", access_key="a", secret_key="b")
    assert f"'port': {port}," in str(arrow_filesystem(settings).__reduce__())


def test_the_endpoints_of_china_are_known_to_no_proxy(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("HTTPS_PROXY", "http://proxy:3128")
    bare.setenv("NO_PROXY", ".amazonaws.com.cn")
    for region, direct in (("cn-north-1", True), ("eu-west-1", False)):
        settings = S3Settings(region=region, access_key="a", secret_key="b")
        assert ("'host': 'proxy'" not in str(arrow_filesystem(settings).__reduce__())) is direct
