"""The endpoint file: how a client finds the service, and proves that it may.

Its owner alone can read it (mode 600), and it lies in a folder that only the owner can enter where
we have made that. It has a line each for the protocol's version, the Unix socket, the TCP port
where there is one, and the token. It appears whole, after the service has begun to listen, and
goes with the service; one that is left by a service that was killed is replaced by the next.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakelog.logstores.service.frames import PROTOCOL_VERSION

ENVIRONMENT: Final = "LAKELOG_BRIDGE"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service listens, and what it wants to hear first."""

    unix: str
    """The path of its socket; empty where there are none."""
    port: int
    """Its TCP port on 127.0.0.1; 0 where it has none."""
    token: str
    version: int = PROTOCOL_VERSION

    def write(self, path: Path) -> None:
        """Put it into a file of mode 600, all at once.

        Raises:
            OSError: the file can't be made.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = [f"version={self.version}", f"unix={self.unix}", f"port={self.port}"]
        handle, draft = tempfile.mkstemp(prefix=path.name, dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("\n".join([*lines, f"token={self.token}", ""]))
            Path(draft).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(draft).unlink()
            raise

    @classmethod
    def read(cls, path: Path) -> Endpoint:
        """What a file says.

        Raises:
            FileNotFoundError: there is none, and so no service.
            ValueError: it is not an endpoint file.
        """
        lines = [line.partition("=") for line in path.read_text("utf-8").splitlines()]
        found = {key: value for key, _, value in lines}
        try:
            where = found["unix"], int(found["port"])
            return cls(*where, found["token"], int(found["version"]))
        except (KeyError, ValueError):
            raise ValueError(f"{path} is not the endpoint file of a LogStore service") from None


def default_endpoint_file() -> Path:
    """Where a service is looked for by default: `LAKELOG_BRIDGE`, else `~/.lakelog/bridge`."""
    named = os.environ.get(ENVIRONMENT, "").strip()
    return Path(named) if named else Path("~/.lakelog/bridge").expanduser()
