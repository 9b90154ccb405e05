"""A proxy answers in the storage's place: what it swallowed is in no commit."""

from __future__ import annotations

import itertools
import re
import uuid
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.portable import arrival
from support.fault_proxy import FaultProxy
from support.oci_server import oci_server
from support.oss_server import oss_server
from support.rsa_key import new_pem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

ANSWERS = ["html:200", "refuse:200", "refuse:201", "refuse:204"]
DATA = re.compile(rb"^(PUT|POST) [^ ]*(part-|deletion_vector)")
SESSION = re.compile(rb"^PUT [^ ]*uploadType=resumable")
"""Of Google Cloud Storage: what a POST has opened takes the bytes."""
QUICK = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.request.timeout": "5",
    "spark.lakelog.store.retry.timeBudget": "1",
}


class Backend:
    """A table, by a conf that leads through a proxy and by one that does not."""

    def __init__(
        self, table: str, proxy: FaultProxy, behind: Mapping[str, str], direct: Mapping[str, str]
    ) -> None:
        self.table, self.proxy = table, proxy
        self.behind, self.direct = {**behind, **QUICK}, {**direct, **QUICK}

    def rows(self) -> list[int]:
        snapshot = DeltaLog.for_table(self.table, self.direct).snapshot
        found: list[int] = snapshot.to_arrow().column("id").to_pylist()
        return sorted(found)


@pytest.fixture(
    params=[
        pytest.param("s3", marks=pytest.mark.needs("minio")),
        pytest.param("gcs", marks=pytest.mark.needs("fake_gcs")),
        pytest.param("azure", marks=pytest.mark.needs("azurite")),
        "oss",
        "oci",
    ]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    def of(name: str) -> Any:
        return request.getfixturevalue(name)

    name = uuid.uuid4().hex
    with ExitStack() as stack:

        def between(url: str) -> FaultProxy:
            return stack.enter_context(FaultProxy(url))

        match request.param:
            case "s3":
                proxy = between(of("minio").url)
                behind = {**of("minio").conf, "spark.hadoop.fs.s3a.endpoint": proxy.url}
                table, direct = f"s3a://{of('s3_bucket')}/{name}", of("minio").conf
            case "gcs":
                proxy = between(of("fake_gcs").url)
                behind = {**of("fake_gcs").conf, "spark.hadoop.fs.gs.storage.root.url": proxy.url}
                table, direct = f"gs://{of('gcs_bucket')}/{name}", of("fake_gcs").conf
            case "azure":
                azurite = of("azurite")
                proxy = between(azurite.url)
                service = stack.enter_context(azurite.client())
                service.create_container(name)
                stack.callback(service.delete_container, name)
                table, behind, direct = (
                    f"az://{name}/t",
                    azurite.conf_at(proxy.url),
                    azurite.conf_at(azurite.url),
                )
            case "oss":
                server = stack.enter_context(oss_server())
                proxy = between(server.url)
                settings = {"accessKeyId": "id", "accessKeySecret": "s", "region": "cn-hangzhou"}
                keys = {f"fs.oss.{key}": value for key, value in settings.items()}
                behind, direct = ({**keys, "fs.oss.endpoint": each.url} for each in (proxy, server))
                table = f"oss://bucket/{name}"
            case _:
                oci = stack.enter_context(oci_server())
                proxy = between(oci.url)
                (tmp_path / "key.pem").write_text(new_pem())
                keys = {
                    "fs.oci.client.auth.tenantId": "ocid1.tenancy.oc1..a",
                    "fs.oci.client.auth.userId": "ocid1.user.oc1..a",
                    "fs.oci.client.auth.fingerprint": ":".join(["00"] * 16),
                    "fs.oci.client.auth.pemfilepath": str(tmp_path / "key.pem"),
                }
                behind, direct = (
                    {**keys, "fs.oci.client.hostname": each.url} for each in (proxy, oci)
                )
                table = f"oci://bucket@ns/{name}"
        yield Backend(table, proxy, behind, direct)


@pytest.mark.one_day_in(5)
def test_what_is_acknowledged_is_in_the_table_and_nothing_else(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "_WAITS", (0.0, 0.0))
    properties = {"delta.enableDeletionVectors": "true"}
    write_arrow(backend.table, {"id": [1, 2, 3, 4]}, conf=backend.direct, properties=properties)
    expected, refused = [1, 2, 3, 4], 0
    matches = (DATA, SESSION) if backend.table.startswith("gs://") else (DATA,)
    for number, (answer, match, times) in enumerate(itertools.product(ANSWERS, matches, (1, 99))):
        backend.proxy.disarm()
        backend.proxy.fired.clear()
        backend.proxy.arm(answer, match, times)
        try:
            write_arrow(backend.table, {"id": [100 + number]}, mode="append", conf=backend.behind)
        except (OSError, pa.ArrowInvalid):  # the second is what Arrow says of a page as JSON
            assert backend.proxy.fired
            refused += 1
        else:
            expected.append(100 + number)
        assert backend.rows() == expected, (answer, match, times)
    assert refused >= len(ANSWERS)
    with _beside_the_proxy(backend.table) as call:
        for number, answer in enumerate(ANSWERS):
            backend.proxy.disarm()
            backend.proxy.arm(answer, DATA, 99)
            try:
                call(delete_rows, backend.table, f"id = {number + 1}", conf=backend.behind)
            except (OSError, pa.ArrowInvalid):
                pass
            else:
                expected.remove(number + 1)
            assert backend.rows() == expected, answer


@contextmanager
def _beside_the_proxy(table: str) -> Iterator[Callable[..., Any]]:
    """Calls what reads data files: where the proxy's threads go on meanwhile.

    Arrow's client of Google Cloud Storage asks for a file's bytes while it holds Python's lock.
    """
    if table.startswith("gs://"):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            yield lambda work, *given, **named: pool.submit(work, *given, **named).result(100)
    else:
        yield lambda work, *given, **named: work(*given, **named)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("step", [b"POST .*uploads", b"PUT .*partNumber=2", b"POST .*uploadId"])
def test_a_large_file_on_s3_is_there_or_not_committed(
    answer: str, step: bytes, minio: Any, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "_WAITS", (0.0,))
    rows = np.random.default_rng(1).bytes(12 << 20)
    data = pa.table({"id": pa.array([1, 2]), "b": [rows[: 6 << 20], rows[6 << 20 :]]})
    with FaultProxy(minio.url) as proxy:
        conf = {**minio.conf, **QUICK, "spark.hadoop.fs.s3a.endpoint": proxy.url}
        backend = Backend(f"s3a://{s3_bucket}/{uuid.uuid4().hex}", proxy, conf, minio.conf)
        write_arrow(backend.table, data.slice(0, 0), conf=minio.conf)
        proxy.arm(answer, re.compile(step), 99)
        try:
            write_arrow(backend.table, data, mode="append", conf=backend.behind)
        except OSError:
            assert backend.rows() == []
        else:
            assert backend.rows() == [1, 2]
        assert proxy.fired


def test_a_checkpoint_that_did_not_arrive_is_not_pointed_at(backend: Backend) -> None:
    for number in range(3):
        write_arrow(backend.table, {"id": [number]}, mode="append", conf=backend.direct)
    log = DeltaLog.for_table(backend.table, backend.behind)
    backend.proxy.arm(
        "html:200", re.compile(rb"^(PUT|POST) [^ ]*(checkpoint.parquet|uploadType=)"), 99
    )
    with pytest.raises(Exception, match="checkpoint"):
        log.checkpoint()
    assert backend.proxy.fired
    hints = [each.name for each in log.store.list_from(f"{backend.table}/_delta_log/_")]
    assert "_last_checkpoint" not in hints
    assert backend.rows() == [0, 1, 2]
