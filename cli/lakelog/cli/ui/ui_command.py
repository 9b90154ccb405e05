"""`lakelog ui <place>…`: tables in the browser, served to this host alone."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakelog.cli import startup
from lakelog.cli.interruption import until_stopped
from lakelog.cli.output import line
from lakelog.cli.shared_options import conf_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.cli.ui.server import UiServer


@click.command(short_help="Tables in the browser: lists, growth, versions, rows, conflicts.")
@click.argument("places", metavar="PLACE...", nargs=-1, required=True)
@conf_options
@click.option(
    "--events",
    multiple=True,
    metavar="EVENTS",
    help="Commit events of jobs, as lakelog conflicts takes them. May be repeated.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Of 127.0.0.1; any that is free by default.",
)
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
def command(
    places: tuple[str, ...],
    conf: dict[str, str],
    events: tuple[str, ...],
    port: int,
    no_open: bool,
) -> None:
    """Show the tables at or below each PLACE in a browser.

    A PLACE is a table or a folder on any storage, or a catalog, a schema or a table by its name:
    lake, lake.sales, lake.sales.orders.

    The pages show the list of tables with their sizes and health, what lakelog report shows of
    each, its history, the table as it was at any version, rows, files, two versions compared, and
    conflicts as they happen. Nothing is written to a table.

    Serves 127.0.0.1 alone, to whoever has the printed address, until it is interrupted.
    """
    from lakelog.cli.ui.lake import Lake
    from lakelog.cli.ui.server import UiServer
    from lakelog.cli.ui.site import Site

    if startup.is_program:
        startup.keep_pandas_out()
    lake = Lake(places, conf)
    lake.require_places()
    try:
        server = UiServer(port, Site(lake, events).answer)
    except OSError as error:
        raise click.UsageError(
            f"Port {port} of 127.0.0.1 can't be had: {error.strerror}. Give another --port, or "
            "leave it out for any that is free."
        ) from None
    with server, until_stopped() as wait:
        thread = threading.Thread(target=server.serve_forever, name="lakelog-ui", daemon=True)
        thread.start()
        line(f"The tables are shown at {server.url}", "green")
        line("Whoever has this address can see them. Ctrl-C ends it.")
        with contextlib.nullcontext() if no_open else _opened(server):
            wait()
        server.shutdown()


@contextlib.contextmanager
def _opened(server: UiServer) -> Iterator[None]:
    """The pages in the user's browser, where there is one that has a window of its own."""
    windows = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not windows or not sys.stdout.isatty():
        yield
        return
    # By a file that others can't read: they could see the token in the browser's command line.
    with tempfile.TemporaryDirectory(prefix="lakelog-ui-") as folder:
        path = Path(folder, "open.html")
        url = escape(server.url)
        path.write_text(
            f'<meta http-equiv="refresh" content="0;url={url}"><a href="{url}">Open</a>'
        )
        webbrowser.open(path.as_uri())
        yield
