"""How many requests an append on Google Cloud Storage makes: they are waited for, and paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import write_arrow
from lakelog.core.delta_log import DeltaLog
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from support.servers.fake_gcs import GCSEndpoint


def test_an_append_of_one_file_is_six_requests(fake_gcs: GCSEndpoint, gcs_bucket: str) -> None:
    with FaultProxy(fake_gcs.url) as proxy:
        conf = {
            **fake_gcs.conf,
            "spark.hadoop.fs.gs.storage.root.url": proxy.url,
            "spark.lakelog.store.endpointProbe": "never",
        }
        log = DeltaLog.for_table(f"gs://{gcs_bucket}/requests of an append", conf)
        write_arrow(log, {"a": [1, 2]})
        before = len(proxy.requests)
        write_arrow(log, {"a": [3]}, mode="append")
        made = [line.split(" ")[0] for line in proxy.requests[before:]]
        # Arrow's file system begins an upload before it sends the file.
        assert made == ["GET", "POST", "PUT", "GET", "GET", "POST"]
        assert log.update().num_files == 2
