"""What hdfs-native raises becomes one exception that says what to do."""

from __future__ import annotations

import errno

import pytest

from lakelog.logstores import LogStoreConfError
from lakelog.logstores.hdfs.errors import raise_translated
from lakelog.logstores.object_store.store import TryAgainError

STACK = "\\n\\tat org.apache.hadoop.hdfs.Thing(Thing.java:1)"


def rpc(java: str, message: str) -> RuntimeError:
    return RuntimeError(f'RPCError("{java}", "{message}{STACK}\\n")')


def translated(error: Exception) -> Exception:
    with pytest.raises((OSError, TryAgainError, LogStoreConfError)) as raised:
        raise_translated(error, "/t/_delta_log/0.json", "nn:8020")
    assert "Thing.java" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (FileExistsError("it exists\n\tat Thing.java"), errno.EEXIST, "it exists"),
        (FileNotFoundError("gone\n\tat Thing.java"), errno.ENOENT, "gone"),
        (FileNotFoundError("Path is not a file: /t"), errno.EISDIR, "directory"),
        (rpc("a.b.SafeModeException", "Name node is in safe mode."), errno.EROFS, "safe mode"),
        (rpc("a.AccessControlException", "Permission denied: user=x"), errno.EACCES, "user=x"),
        (rpc("a.AccessControlException", "SIMPLE is not enabled"), errno.EACCES, "kinit"),
        (rpc("a.NSQuotaExceededException", "quota: 2"), errno.EDQUOT, "quota"),
        (rpc("a.ParentNotDirectoryException", "/t is a file"), errno.ENOTDIR, "/t"),
        (rpc("java.io.IOException", "x must both be directories"), errno.EISDIR, "folder"),
        (rpc("a.PathComponentTooLongException", "limit 255"), errno.ENAMETOOLONG, "255"),
        (rpc("a.InvalidPathException", "Invalid path name a:b"), errno.EINVAL, "does not accept"),
        (rpc("java.io.IOException", "disk on fire"), errno.EREMOTEIO, "disk on fire"),
        (RuntimeError('SASLError("no ticket")'), errno.EACCES, "kinit"),
        (RuntimeError("NoSASLMechanism"), errno.EACCES, "kinit"),
        (RuntimeError('GSSAPIError(GSS_S_FAILURE, 1, "no cache")'), errno.EACCES, "kinit"),
        (OSError("failed to lookup address information: x"), errno.EHOSTUNREACH, "name service"),
    ],
)
def test_a_refusal_is_an_error_of_the_operating_system(
    error: Exception, code: int, expected: str
) -> None:
    found = translated(error)
    assert isinstance(found, OSError)
    assert found.errno == code
    assert expected in str(found)


@pytest.mark.parametrize(
    ("error", "may_have_landed"),
    [
        (OSError("Connection refused (os error 111)"), False),
        (OSError("failed to lookup address: Temporary failure in name resolution"), False),
        (OSError("RPC listener disconnected"), True),
        (OSError("Connection reset by peer (os error 104)"), True),
        (rpc("org.apache.hadoop.ipc.StandbyException", "state standby"), False),
        (rpc("org.apache.hadoop.ipc.RetriableException", "later"), False),
        (RuntimeError('DataTransferError("All DataNodes failed: [Info { id: \\"1\\" }]")'), True),
        (RuntimeError("ChecksumError"), True),
    ],
)
def test_what_may_go_better_later(error: Exception, may_have_landed: bool) -> None:
    found = translated(error)
    assert isinstance(found, TryAgainError)
    assert found.may_have_landed is may_have_landed
    assert "nn:8020" in str(found)


def test_settings_without_a_namenode_are_an_error_of_the_conf() -> None:
    found = translated(RuntimeError('InvalidArgument("No NameNode hosts found")'))
    assert isinstance(found, LogStoreConfError)


def test_datanodes_are_not_told_in_full() -> None:
    found = translated(RuntimeError('DataTransferError("All failed: [Info { id: \\"1\\" }]")'))
    assert str(found) == "DataNodes of nn:8020: All failed"
