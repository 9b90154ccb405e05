"""The folder of a service's Unix socket: only its owner can enter it, and the socket is all it has.

A service that was killed leaves it behind, and the endpoint file, which names it. Such a file may
be another user's by then, so a folder is deleted for what it is, not for its name.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

_LONGEST_SOCKET_PATH: Final = 100
"""Bytes: Linux takes 107, macOS 103."""
_PREFIX: Final = "lakelog-"
_NAME: Final = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_SOCKET: Final = "socket"


def make_socket_folder() -> Path:
    """Make a folder under a new name, where a socket's path fits into what a system takes.

    Raises:
        OSError: it can't be made.
    """
    usual = os.path.join(tempfile.gettempdir(), f"{_PREFIX}12345678", _SOCKET)  # noqa: PTH118
    is_short = len(os.fsencode(usual)) <= _LONGEST_SOCKET_PATH
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=None if is_short else "/tmp"))


def socket_in(folder: Path) -> str:
    """The path of the socket."""
    return str(folder / _SOCKET)


def remove_socket_folder(path: str) -> None:
    """Remove what `make_socket_folder` made, and the socket in it, unless somebody listens there.

    Anything else is left alone: a folder of another name, owner or mode, one that is a link, one
    that holds more.

    Args:
        path: of the socket.
    """
    place = Path(path)
    folder = place.parent
    with contextlib.suppress(OSError):
        found = os.lstat(folder)
        is_made = (
            place.name == _SOCKET
            and _NAME.fullmatch(folder.name) is not None
            and stat.S_ISDIR(found.st_mode)
            and stat.S_IMODE(found.st_mode) == stat.S_IRWXU
            and found.st_uid == os.getuid()
        )
        if not is_made or not set(folder.iterdir()) <= {place}:
            return
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(place).st_mode) or _is_heard(path):
                return
            place.unlink()
        folder.rmdir()  # never what is in it


def _is_heard(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # where many wait already, somebody is there
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            return True
    return True
