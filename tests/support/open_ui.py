"""`lakelog ui` within this process, and a browser of the plainest kind: no script, one cookie."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from lakelog.cli.ui.lake import Lake
from lakelog.cli.ui.server import HOST, UiServer
from lakelog.cli.ui.site import Site
from support.html_page import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.cli.ui.server import Answer

_SECONDS = 60


class Reply(NamedTuple):
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    text: str


class OpenUi:
    """A server, and a reader whom it has let in."""

    def __init__(self, server: UiServer, lake: Lake) -> None:
        self.server, self.lake = server, lake
        self.cookie = self.ask(self.entry).headers["Set-Cookie"].partition(";")[0]

    @property
    def entry(self) -> str:
        """The path that lets a browser in."""
        url = urlsplit(self.server.url)
        return f"{url.path}?{url.query}"

    def ask(self, path: str, method: str = "GET", **headers: str) -> Reply:
        """A request with just these headers."""
        connection = http.client.HTTPConnection(HOST, self.server.server_port, timeout=_SECONDS)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, headers=named)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.headers), answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str, status: int = 200) -> str:
        """A page, once nothing in it is still being made."""
        ends = time.monotonic() + _SECONDS
        while True:
            reply = self.ask(path, Cookie=self.cookie)
            assert reply.status == status, reply.text[-2000:]
            if 'data-busy="1"' not in reply.text:
                return reply.text
            assert time.monotonic() < ends, reply.text[-2000:]

    def see(self, path: str, status: int = 200) -> Seen:
        """The same, taken apart."""
        return Seen(self.get(path, status))

    def table(self, name: str) -> str:
        """The path of a table's pages, by the end of its name."""
        found = [r.table for r in self.lake.tables(_SECONDS).rows if r.table.name.endswith(name)]
        assert len(found) == 1, found
        return f"/table/{found[0].key}/"


@contextlib.contextmanager
def open_ui(
    *places: str,
    conf: Mapping[str, str] | None = None,
    events: Sequence[str] = (),
    before: Callable[[str], None] = lambda _: None,
) -> Iterator[OpenUi]:
    """Serve the tables below some places.

    Args:
        places: of tables.
        conf: of the storages.
        events: of jobs.
        before: called with the path of each page before it is made.
    """
    lake = Lake(places, conf or {})
    site = Site(lake, events)

    def answer(path: str, fields: Mapping[str, str]) -> Answer:
        before(path)
        return site.answer(path, fields)

    with UiServer(0, answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield OpenUi(server, lake)
        finally:
            server.shutdown()
            thread.join(_SECONDS)
