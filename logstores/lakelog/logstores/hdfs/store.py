"""The log on HDFS: a draft next to the file, then a rename that refuses when the name is taken."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from lakelog.logstores.contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.logstores.hdfs.access import Hdfs
from lakelog.logstores.hdfs.client import CHUNK
from lakelog.logstores.hdfs.publish import publish, remove, write_draft
from lakelog.logstores.lines import decode_lines, encode_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import hdfs_native
    import pyarrow.fs

    from lakelog.logstores.hdfs.client import HdfsClient

_CAPABILITIES = Capabilities(
    exclusive_create=Scope.CLUSTER,
    partial_write_visible=False,
    atomic_overwrite=True,
    consistent_listing=True,
    durable=True,
)


class HDFSLogStore(LogStore):
    """A log on HDFS. The default for `hdfs:`.

    The NameNode carries out one rename at a time and journals it before it answers, so exactly
    one writer of the cluster gets a name, and the active NameNode shows it from then on.

    Drafts are written by WebHDFS where the conf names the NameNode's HTTP address and Kerberos is
    not required, else by hdfs-native, which is half a second slower for each file; everything else
    is done by hdfs-native, without a JVM.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect, and read Hadoop's conf folder, at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._hdfs = Hdfs(self._conf)

    def read(self, path: str) -> Iterator[str]:  # noqa: D102  # the contract says it
        client, where = self._client(path)
        return decode_lines(_raw_lines(client, where))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:  # noqa: D102
        body = b"".join(encode_lines(lines))
        authority, target = self._hdfs.split(path)
        if target.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        client, web = self._hdfs.at(authority)
        if not overwrite:  # losers of an old race write no draft
            taken = client.again(target, lambda: client.status(target))
            if taken is not None:
                raise _exists_error(taken, path)
        policy = self._hdfs.policy
        # Not by `create` under the final name, which is exclusive too: the file would be there
        # while it is written, and a writer that dies would leave its part.
        draft = write_draft(client, web, target, body, policy)
        try:
            publish(client, draft, target, body, policy, overwrite=overwrite)
        # The draft stays: a late rename may still make a version of it, and log cleanup removes it
        # otherwise.
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            remove(client, draft)
            raise

    def list_from(self, path: str) -> Iterator[FileStatus]:  # noqa: D102
        # The spelling of the answer is that of the question.
        shown, slash, start = path.rpartition("/")
        client, folder = self._client(shown + slash)
        found = client.again(folder, lambda: client.entries(folder))
        named = [(each.path.rpartition("/")[2], each) for each in found]
        kept = sorted((pair for pair in named if pair[0] >= start), key=lambda pair: pair[0])
        return (
            FileStatus(
                f"{shown}/{name}",
                0 if each.isdir else each.length,
                each.modification_time,
                each.isdir,
            )
            for name, each in kept
        )

    @property
    def capabilities(self) -> Capabilities:  # noqa: D102
        return _CAPABILITIES

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:  # noqa: D102
        from lakelog.logstores.hdfs.filesystem import hdfs_filesystem

        return hdfs_filesystem(self._hdfs)

    def filesystem_path(self, path: str) -> str:
        """`/authority/path`: the file system has all clusters below its root."""
        authority, where = self._hdfs.split(path)
        return f"/{authority}{where}".rstrip("/")

    def settings(self) -> Mapping[str, str]:
        """The conf's, and where Hadoop's own come from."""
        hadoop = self._hdfs.hadoop
        found = dict(super().settings())
        found["Hadoop conf folder"] = hadoop.folder or "none (HADOOP_CONF_DIR is not set)"
        if hadoop.default_authority:
            service = hadoop.service(hadoop.default_authority)
            found["NameNodes"] = ", ".join(service.namenodes)
            found["WebHDFS"] = ", ".join(service.web) or f"not used: {service.why_no_web}"
        found["user"] = "by Kerberos" if hadoop.is_secure else hadoop.user
        return found

    def close(self) -> None:  # noqa: D102
        self._hdfs.close()

    def _client(self, path: str) -> tuple[HdfsClient, str]:
        authority, where = self._hdfs.split(path)
        return self._hdfs.at(authority)[0], where


def _exists_error(found: hdfs_native.FileStatus, path: str) -> OSError:
    if found.isdir:
        return IsADirectoryError(errno.EISDIR, "a folder has that name", path)
    return FileExistsError(errno.EEXIST, "another writer made it", path)


def _raw_lines(client: HdfsClient, path: str) -> Iterator[bytes]:
    """The file's bytes, cut after each newline, a chunk in memory at a time."""
    reader = client.again(path, lambda: client.reader(path))
    size = len(reader)
    rest = b""
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        lines = (rest + _piece(client, path, reader, start, count)).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _piece(
    client: HdfsClient, path: str, reader: hdfs_native.FileReader, start: int, count: int
) -> bytes:
    return client.again(path, lambda: client.piece(path, reader, start, count))
