"""Settings of `fs.s3a.*`, as tests write them."""

from __future__ import annotations

from lakelog.logstores.s3.conf import S3Settings

FS = "spark.hadoop.fs.s3a."
SECRET = "Th1s-Is-A-Secret/That+Nobody=Sees"
KEYS = {"access.key": "AKIAEXAMPLE", "secret.key": SECRET}


def settings(bucket: str = "lake", prefix: str = FS, **values: str) -> S3Settings:
    """The settings of a conf; `__` in a name is a dot."""
    return parsed({key.replace("__", "."): value for key, value in values.items()}, bucket, prefix)


def parsed(values: dict[str, str], bucket: str = "lake", prefix: str = FS) -> S3Settings:
    """The settings of a conf that has these keys below `fs.s3a.`."""
    return S3Settings.from_conf({prefix + key: value for key, value in values.items()}, bucket)
