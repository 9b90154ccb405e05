"""A log on Google Cloud Storage."""

from lakelog.logstores.gcs.store import GCSLogStore

__all__ = ["GCSLogStore"]
