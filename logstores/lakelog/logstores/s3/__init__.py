"""A log on Amazon S3, or on what speaks its protocol."""

from lakelog.logstores.s3.store import S3ConditionalLogStore, S3SingleDriverLogStore

__all__ = ["S3ConditionalLogStore", "S3SingleDriverLogStore"]
