"""hdfs-native's errors as Python exceptions."""

from __future__ import annotations

import errno
import os
import re
from typing import Final, NoReturn

from lakelog.logstores.errors import LogStoreConfError, StorageUnavailableError
from lakelog.logstores.object_store.store import TryAgainError

REFUSED: Final = getattr(errno, "EREMOTEIO", errno.EINVAL)
"""What HDFS refused. `EIO` would leave open whether it was carried out."""

_WRAPPED: Final = re.compile(r'^(\w+)(?:\((?:"((?:[^"\\]|\\.)*)")?(?:, "(.*)"\)?)?|$)', re.DOTALL)
"""`Kind("java.class.Name", "message\\n\\tat stack…")`, the text of a Rust error."""
_NOT_SENT: Final = ("Connection refused", "unreachable", "os error 111", "os error 113")
_NO_HOST: Final = ("failed to lookup address", "Name or service not known")
_FOR_NOW: Final = (
    "Temporary failure in name resolution",
    "Too many open files",
    "Cannot assign requested address",
    "os error 24",
    "os error 99",
)
_DATANODES: Final = ("DataTransferError", "ChecksumError")
"""Blocks that did not come or go: Hadoop's own client asks the DataNodes again, and so do we."""
_SIGN_IN: Final = ("SASL", "GSS", "InvalidToken", "NoSASLMechanism", "Authentication")


def raise_translated(error: Exception, path: str, where: str) -> NoReturn:
    """Raise what the error means.

    Args:
        error: from hdfs-native: RuntimeError with the Java class in its text, or an OSError.
        path: the subject of the request.
        where: the NameNodes, for messages.

    Raises:
        TryAgainError: the NameNode can't be reached, is a standby, or asks to come back; or the
            DataNodes did not give or take the data.
        OSError: its subclass that fits, for good.
        LogStoreConfError: the client can't be made of these settings.
    """
    kind, java, text = _parts(error)
    if isinstance(error, FileExistsError):
        raise FileExistsError(errno.EEXIST, text, path) from error
    if isinstance(error, IsADirectoryError) or "Path is not a file" in text:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from error
    if isinstance(error, FileNotFoundError):
        raise FileNotFoundError(errno.ENOENT, text, path) from error
    if isinstance(error, OSError):
        _raise_io(error, text, where)
    if kind == "InvalidArgument":
        raise LogStoreConfError(f"{path}: could not create a client for {where}: {text}") from error
    _raise_java(error, kind, java, text, path, where)


def _parts(error: Exception) -> tuple[str, str, str]:
    """The kind, the Java class and the first line of the message."""
    original = str(error)
    match = _WRAPPED.match(original) if isinstance(error, RuntimeError) else None
    kind, java, message = (
        (match[1], match[2] or "", match[3] or "") if match else ("", "", original)
    )
    text = re.split(r"\\?\n|\\n", message or java or original, maxsplit=1)[0].strip().rstrip('")')
    return kind, java.rpartition(".")[2] if message else "", text


def _raise_io(error: OSError, text: str, where: str) -> NoReturn:
    if any(part in text for part in _NO_HOST) and not any(part in text for part in _FOR_NOW):
        raise StorageUnavailableError(
            errno.EHOSTUNREACH,
            f"the host name in {where} can't be resolved. If it is a name service, set "
            "HADOOP_CONF_DIR, or spark.hadoop.dfs.ha.namenodes.* and "
            "spark.hadoop.dfs.namenode.rpc-address.*",
        ) from error
    for_now = any(part in text for part in _FOR_NOW)
    sent = not for_now and not any(part in text for part in _NOT_SENT)
    # Of several NameNodes one may be down while another takes over, which takes time.
    raise TryAgainError(
        f"NameNode {where}: {text}",
        may_have_landed=sent,
        unreached=not (sent or for_now or "," in where),
    ) from error


def _raise_java(
    error: Exception, kind: str, java: str, text: str, path: str, where: str
) -> NoReturn:
    if "safe mode" in text.lower() or java == "SafeModeException":
        raise OSError(
            errno.EROFS,
            f"NameNode {where} is in safe mode and accepts no writes: nothing was written. Try "
            "again when it has left safe mode (hdfs dfsadmin -safemode get)",
            path,
        ) from error
    if kind in _DATANODES:
        what = text.partition(": [")[0]
        raise TryAgainError(f"DataNodes of {where}: {what}", may_have_landed=True) from error
    if java in ("StandbyException", "RetriableException", "ObserverRetryOnActiveException"):
        raise TryAgainError(f"NameNode {where}: {java}: {text}", may_have_landed=False) from error
    if java == "AccessControlException" and "Permission denied" in text:
        raise PermissionError(errno.EACCES, text, path) from error
    if any(part in kind or part in java for part in _SIGN_IN) or java == "AccessControlException":
        raise PermissionError(
            errno.EACCES,
            f"NameNode {where} did not accept this user ({kind or java}: {text}). For Kerberos "
            "run kinit, or set spark.kerberos.principal and spark.kerberos.keytab; without it set "
            "HADOOP_USER_NAME",
            path,
        ) from error
    if "QuotaExceeded" in java or "QuotaByStorageType" in java:
        raise OSError(errno.EDQUOT, f"a quota of HDFS is used up: {text}", path) from error
    if java == "ParentNotDirectoryException":
        raise NotADirectoryError(errno.ENOTDIR, text, path) from error
    if "must both be directories" in text or "must both be files" in text:
        raise IsADirectoryError(errno.EISDIR, f"a folder has that name: {text}", path) from error
    if "TooLong" in java:
        raise OSError(errno.ENAMETOOLONG, text, path) from error
    if java == "InvalidPathException":
        raise OSError(errno.EINVAL, f"HDFS does not accept the name: {text}", path) from error
    raise OSError(REFUSED, f"{where}: {kind} {java} {text}".replace("  ", " "), path) from error
