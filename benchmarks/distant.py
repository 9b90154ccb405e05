"""A line to a server that is a network away: every byte takes half a round trip, each way.

    python benchmarks/distant.py HOST PORT MILLISECONDS

prints the port on 127.0.0.1 where it listens, and forwards until its standard input ends. It is a
process of its own, so that it takes no time from what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 18


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, one_way: float) -> None:
    """Deliver each chunk that much after it came, without holding up those after it."""
    loop = asyncio.get_running_loop()
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

    async def deliver() -> None:
        while True:
            at, data = await due.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not data:
                break
            target.write(data)
            await target.drain()
        target.close()

    delivering = asyncio.create_task(deliver())
    with contextlib.suppress(ConnectionError):
        while data := await source.read(_CHUNK):
            await due.put((loop.time() + one_way, data))
    await due.put((loop.time() + one_way, b""))
    with contextlib.suppress(ConnectionError):
        await delivering


async def _serve(host: str, port: int, round_trip: float) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(round_trip)  # TCP's own greeting
        there, back = await asyncio.open_connection(host, port)
        one_way = round_trip / 2
        await asyncio.gather(_pump(reader, back, one_way), _pump(there, writer, one_way))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


@contextlib.contextmanager
def distant(url: str, milliseconds: float) -> Iterator[str]:
    """The URL at which a server seems to be that far away.

    Args:
        url: of the server, with a port.
        milliseconds: of a round trip.
    """
    parts = urlsplit(url)
    command = [sys.executable, str(Path(__file__)), str(parts.hostname), str(parts.port)]
    with subprocess.Popen(
        [*command, str(milliseconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"{parts.scheme}://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000))
