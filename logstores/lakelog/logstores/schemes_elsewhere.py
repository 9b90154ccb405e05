"""Schemes that other tools know, and what to write here."""

from __future__ import annotations

from typing import Final

_ENDPOINT: Final = (
    "its service speaks S3's protocol: write s3://bucket/table, and set "
    "spark.hadoop.fs.s3a.endpoint to "
)
_MOUNTED: Final = (
    "no way is known there to create a file for one writer alone, as a commit does. Write the URI "
    "of an object store, or a path on a disk"
)
_IN_THE_CATALOG: Final = (
    "a catalog has names, and tables have locations: give the table's own, which SQL shows by "
    "DESCRIBE DETAIL, such as s3://bucket/table or abfss://container@account.dfs.core.windows.net/"
    "table"
)
_BY_URL: Final = (
    "a web address is not where a table can be written. Write the storage's own URI, such as "
    "s3://bucket/table, gs://bucket/table or abfss://container@account.dfs.core.windows.net/table, "
    "and give the address by the store's key, such as spark.hadoop.fs.s3a.endpoint"
)
_BY_NAME_NODE: Final = "write hdfs://namenode/path for the cluster that it leads to"

SCHEMES: Final = {
    "dbfs": "only Databricks knows where it leads. Write the URI of the storage itself (s3://, "
    "abfss:// or gs://): dbutils.fs.mounts() shows that of a mount, and DESCRIBE DETAIL that of a "
    "table",
    **dict.fromkeys(("uc", "unity", "glue", "hive"), _IN_THE_CATALOG),
    "delta": "write the path alone, without that prefix",
    "adl": "Azure Data Lake Storage Gen1 no longer exists. Write where its data went, such as "
    "abfss://container@account.dfs.core.windows.net/table",
    **dict.fromkeys(
        ("adls", "azure", "onelake"),
        "write abfss://container@account.dfs.core.windows.net/table",
    ),
    "r2": f"{_ENDPOINT}https://ACCOUNT.r2.cloudflarestorage.com",
    "b2": f"{_ENDPOINT}https://s3.REGION.backblazeb2.com",
    "cosn": f"{_ENDPOINT}https://cos.REGION.myqcloud.com",
    "obs": f"{_ENDPOINT}https://obs.REGION.myhuaweicloud.com",
    "minio": f"{_ENDPOINT}the server's address, such as http://localhost:9000",
    **dict.fromkeys(("http", "https"), _BY_URL),
    **dict.fromkeys(("ftp", "ftps", "sftp", "scp", "ssh", "smb", "webdav"), _MOUNTED),
    **dict.fromkeys(("viewfs", "webhdfs", "swebhdfs", "hftp"), _BY_NAME_NODE),
    "hf": "a repository of Hugging Face is read after a download: give the folder that "
    "huggingface_hub.snapshot_download() returns",
    "sharing": "Delta Sharing gives rows, not a log: read it with the package delta-sharing",
}
"""Scheme -> what to do instead."""
