"""A LogStore on Redis, at redis://host:port/folder/table. One script creates a file or refuses."""

import io

import pyarrow.fs
import redis

from lakelog.logstores import Capabilities, CommitOutcomeUnknownError, FileStatus, LogStore, Scope
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog_redis.files import ABSENT, MADE, TAKEN, files_at


class RedisLogStore(LogStore):
    """Excludes every client of one Redis server; durable as far as that server is."""

    @property
    def _files(self):
        return files_at(self.conf["spark.lakelog.redis.url"])

    def read(self, path):
        return decode_lines(io.BytesIO(self._files.get(self.filesystem_path(path))))

    def write(self, path, lines, *, overwrite=False):
        body = b"".join(encode_lines(lines))
        try:
            answer = self._files.put(self.filesystem_path(path), body, overwrite=overwrite)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            answer = self._settle(path, body, error)
        if answer == TAKEN:
            raise FileExistsError(f"{path} exists: another writer made it")
        if answer == ABSENT:
            raise FileNotFoundError(f"the folder of {path} does not exist")

    def _settle(self, path, body, error):
        """The reply was lost. A commit's bytes hold its txnId, so equal bytes are our own."""
        try:
            if self._files.get(self.filesystem_path(path)) == body:
                return MADE
        except OSError:
            pass
        raise CommitOutcomeUnknownError(path, f"Redis did not answer ({error})") from error

    def list_from(self, path):
        shown, _, start = path.rpartition("/")
        entries = self._files.entries(self.filesystem_path(shown), start)
        return (FileStatus(f"{shown}/{name}", *status) for name, *status in entries)

    @property
    def capabilities(self):
        durable = self.conf.get("spark.lakelog.redis.durable") == "true"  # appendfsync always
        return Capabilities(
            exclusive_create=Scope.CLUSTER, partial_write_visible=False, atomic_overwrite=True,
            consistent_listing=True, durable=durable,
        )  # fmt: skip

    @property
    def filesystem(self):
        from lakelog_redis.filesystem import RedisFileSystem

        handler = pyarrow.fs.FSSpecHandler(RedisFileSystem(self.conf["spark.lakelog.redis.url"]))
        return pyarrow.fs.PyFileSystem(handler)

    def filesystem_path(self, path):
        return path.split("://", 1)[1].rstrip("/")
