"""Lost, late, torn and foreign replies between the store and Google Cloud Storage.

Each harm is done twice: where nobody else wrote, the write has to succeed; and where another
writer has stored the very same bytes before, it has to be refused.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, GCSLogStore
from support.bad_networks import brief_last_look
from support.fault_proxy import FaultProxy
from support.servers._service import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.fake_gcs import GCSEndpoint

LINES = ['{"commitInfo":{}}', "grüße"]
UPLOAD = b"POST /upload/"
LOOK = b"GET /storage/v1/b/"
DOWNLOAD = b"alt=media"
QUICK = {
    "spark.lakelog.gcs.minWriteInterval": "0",
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "0.5",
    "spark.lakelog.store.retry.timeBudget": "20",
}
LOST = ("drop_reply", "hang_reply", "cut_reply", "tell:500", "tell:503", "tell:504", "tell:408")
ASKED = ("drop_reply", "hang_reply", "cut_reply", "refuse:503", "html:502", "html:200", "reset")
NOT_DONE = ("reset", "refuse:429", "refuse:503", "refuse:409", "html:502", "html:200")


@pytest.fixture
def proxy(fake_gcs: GCSEndpoint) -> Iterator[FaultProxy]:
    with FaultProxy(fake_gcs.url) as between:
        yield between


def behind(proxy: FaultProxy, fake_gcs: GCSEndpoint, **more: str) -> GCSLogStore:
    """A store that goes through the proxy."""
    conf = {**fake_gcs.conf, **QUICK, "spark.hadoop.fs.gs.storage.root.url": proxy.url}
    return GCSLogStore({**conf, **{key.replace("_", "."): value for key, value in more.items()}})


def direct(fake_gcs: GCSEndpoint) -> GCSLogStore:
    return GCSLogStore({**fake_gcs.conf, **QUICK})


@pytest.fixture
def path(gcs_bucket: str) -> str:
    return f"gs://{gcs_bucket}/t/_delta_log/00000000000000000000.json"


@pytest.mark.parametrize("fault", [*LOST, *NOT_DONE, "delay:0.2", "twice"])
def test_a_harmed_create_still_makes_the_file_once(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    proxy.arm(fault, UPLOAD)
    behind(proxy, fake_gcs).write(path, LINES)
    assert proxy.fired == [fault]
    assert list(direct(fake_gcs).read(path)) == LINES


@pytest.mark.parametrize("fault", [*LOST, *NOT_DONE, "delay:0.2", "twice"])
def test_the_same_bytes_of_another_writer_are_a_conflict(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    direct(fake_gcs).write(path, LINES)
    proxy.arm(fault, UPLOAD)
    with pytest.raises(FileExistsError, match="another writer"):
        behind(proxy, fake_gcs).write(path, LINES)
    assert proxy.fired == [fault]


def test_a_lost_reply_and_two_lost_looks_are_settled(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    proxy.arm("drop_reply", UPLOAD)
    proxy.arm("drop_reply", LOOK)
    proxy.arm("refuse:503", LOOK)
    behind(proxy, fake_gcs).write(path, LINES)
    assert proxy.fired == ["drop_reply", "drop_reply", "refuse:503"], "looked for, not sent again"


def test_a_service_that_falls_silent_after_the_upload_leaves_the_outcome_unknown(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief_last_look(monkeypatch)
    proxy.arm("drop_reply", UPLOAD)
    proxy.arm("reset", b"HTTP/1.1", times=500)
    store = behind(proxy, fake_gcs, spark_lakelog_store_retry_timeBudget="1")
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        store.write(path, LINES)
    assert caught.value.path == path
    assert list(direct(fake_gcs).read(path)) == LINES, "it had landed, and nobody could know"


def test_a_refusal_by_rate_to_the_last_says_that_nothing_was_written(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    proxy.arm("refuse:429:rateLimitExceeded", UPLOAD, times=500)
    store = behind(
        proxy,
        fake_gcs,
        spark_lakelog_store_retry_timeBudget="0.5",
        spark_lakelog_store_request_timeout="20",
    )
    with pytest.raises(OSError, match=r"was not written.*one write per second"):
        store.write(path, LINES)
    with pytest.raises(FileNotFoundError):
        list(direct(fake_gcs).read(path))


def test_an_endpoint_that_is_down_is_reported_within_the_budget(
    fake_gcs: GCSEndpoint, path: str
) -> None:
    conf = {**fake_gcs.conf, **QUICK, "spark.lakelog.store.retry.timeBudget": "0.5"}
    conf["spark.hadoop.fs.gs.storage.root.url"] = f"http://127.0.0.1:{free_port()}"
    store = GCSLogStore(conf)
    began = time.monotonic()
    with pytest.raises(OSError, match=r"was not written.*could not connect to the endpoint"):
        store.write(path, LINES)
    with pytest.raises(OSError, match=r"could not connect to the endpoint.*given up after 0.5 s"):
        list(store.read(path))
    with pytest.raises(OSError, match="could not connect to the endpoint"):
        list(store.list_from(path))
    assert time.monotonic() - began < 30, "bounded, whatever the machine does"


@pytest.mark.parametrize(
    "fault",
    ["drop_reply", "hang_reply", "cut_reply", "refuse:503", "html:502", "html:200", "reset"],
)
def test_a_harmed_read_gives_the_whole_file(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    lines = ["x" * 70_000, "end"]
    direct(fake_gcs).write(path, lines)
    proxy.arm(fault, DOWNLOAD)
    assert list(behind(proxy, fake_gcs).read(path)) == lines
    assert proxy.fired == [fault]


@pytest.mark.parametrize(
    "fault",
    ["drop_reply", "hang_reply", "cut_reply", "refuse:503", "html:502", "html:200", "reset"],
)
def test_a_harmed_listing_is_whole(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    direct(fake_gcs).write(path, LINES)
    proxy.arm(fault, LOOK)
    assert [each.path for each in behind(proxy, fake_gcs).list_from(path)] == [path]
    assert proxy.fired == [fault]


def test_a_page_instead_of_a_listing_is_no_empty_folder(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    direct(fake_gcs).write(path, LINES)
    proxy.arm("html:200", LOOK, times=500)
    store = behind(
        proxy,
        fake_gcs,
        spark_lakelog_store_retry_timeBudget="0.3",
        spark_lakelog_store_request_timeout="20",
    )
    with pytest.raises(OSError, match=r"has no storage#objects.*fs.gs.storage.root.url"):
        list(store.list_from(path))


@pytest.mark.parametrize("fault", ["drop_reply", "hang_reply", "reset", "refuse:503", "html:502"])
def test_a_harmed_overwrite_is_done_again(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    proxy.arm(fault, UPLOAD)
    behind(proxy, fake_gcs).write(path, LINES, overwrite=True)
    assert proxy.fired == [fault]
    assert list(direct(fake_gcs).read(path)) == LINES


@pytest.mark.parametrize("fault", ["drop_reply", "reset", "refuse:503"])
def test_a_harmed_checkpoint_is_uploaded_again(
    fault: str, proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    proxy.arm(fault, UPLOAD)
    with behind(proxy, fake_gcs).staged(path) as (filesystem, draft):
        with filesystem.open_output_stream(draft) as stream:
            stream.write(b"PAR1")
        assert proxy.requests == [], "nothing is sent before the draft is whole"
    assert proxy.fired == [fault]
    assert list(direct(fake_gcs).read(path)) == ["PAR1"]


def test_a_commit_is_one_request_and_so_are_a_read_and_a_short_listing(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    store = behind(proxy, fake_gcs, spark_lakelog_store_request_timeout="20")
    store.write(path, LINES)
    assert len(proxy.requests) == 1
    assert "ifGenerationMatch=0" in proxy.requests[0]
    list(store.read(path))
    list(store.list_from(path))
    assert len(proxy.requests) == 3


def test_even_a_large_commit_is_one_request(
    proxy: FaultProxy, fake_gcs: GCSEndpoint, path: str
) -> None:
    lines = ["x" * (1 << 20)] * 12
    store = behind(proxy, fake_gcs, spark_lakelog_store_request_timeout="20")
    store.write(path, lines)
    assert len(proxy.requests) == 1
    assert list(direct(fake_gcs).read(path)) == lines
