"""Where the Java half of the bridge is."""

from __future__ import annotations

from pathlib import Path


def bridge_jar() -> Path:
    """The jar with `io.lakelog.BridgeLogStore`, as it came with this package.

    It needs nothing but delta-storage 3.2 or later, which is on delta-spark's class path anyway.

    Raises:
        FileNotFoundError: the package lies where a JVM can't read it, in a zip file.
    """
    jar = Path(__file__).with_name("lakelog-bridge.jar")
    if not jar.is_file():
        raise FileNotFoundError(
            f"{jar} is not there as a file: install lakelog as a folder, not as a zip, or run "
            "`make jar` in a clone"
        )
    return jar
