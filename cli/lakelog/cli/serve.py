"""`lakelog serve`: commits for others, by lakelog's stores or as one version."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakelog.cli.interruption import until_stopped
from lakelog.cli.output import line
from lakelog.cli.rotated_files import RotatedFiles
from lakelog.cli.shared_options import conf_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.cli.commit_server import CommitServer

_PATH: Final = click.Path(dir_okay=False, path_type=Path)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Commit for others: delta-spark on this host, appends of other hosts.")
@conf_options
@click.option(
    "--endpoint",
    type=_PATH,
    help="The endpoint file; LAKELOG_BRIDGE or ~/.lakelog/bridge if not given.",
)
@click.option("--tcp", is_flag=True, help="Also listen on 127.0.0.1, for a Java older than 16.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Commit appends of other processes and hosts as one version, instead.",
)
@click.option(
    "--table",
    "roots",
    metavar="URI",
    multiple=True,
    help="With --listen: a table, or a folder of tables, to commit to. May be repeated.",
)
@click.option(
    "--token-file",
    type=_PATH,
    help="With --listen: the token that clients must have; made if there is no such file.",
)
@click.option("--certificate", type=_FILE, help="With --listen: a PEM file, for TLS.")
@click.option("--key", type=_FILE, help="With --listen: the certificate's key, a PEM file.")
@click.option(
    "--plain", is_flag=True, help="With --listen: without TLS, though others can reach the address."
)
def command(
    conf: dict[str, str],
    endpoint: Path | None,
    tcp: bool,
    listen: str | None,
    roots: tuple[str, ...],
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    plain: bool,
) -> None:
    """Commit for others, until it is interrupted or terminated; what has begun comes to its end.

    Without --listen: serve lakelog's stores to delta-spark, Flink or Thrift servers of this host
    and user. Prints the settings that a JVM needs, as lines for spark-defaults.conf. --conf says
    which store is behind the bridge; its settings win over those that a session comes with.

    With --listen: commit appends of lakelog's clients on any host, to the tables at or below each
    --table, as one version where they would wait for each other. Prints the settings that a client
    needs. --conf says how the service reaches the tables' storage; clients have their own.
    """
    if listen is None:
        if roots or token_file or certificate or key or plain:
            raise click.UsageError(
                "--table, --token-file, --certificate, --key and --plain are for --listen."
            )
        _serve_stores(conf, endpoint, tcp)
        return
    if endpoint or tcp:
        raise click.UsageError("--endpoint and --tcp are not for --listen.")
    if not roots or token_file is None:
        raise click.UsageError("--listen needs --table and --token-file.")
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key are given together.")
    address = _address(listen)
    if certificate is None and not plain and not _is_loopback(address[0]):
        raise click.UsageError(
            f"{address[0]} can be reached by others, and without TLS anybody on the way can read "
            "the token. Give --certificate and --key, or --plain where the network is your own."
        )
    _serve_commits(conf, address, roots, token_file, _tls(certificate, key))


def _serve_stores(conf: dict[str, str], endpoint: Path | None, tcp: bool) -> None:
    from lakelog.logstores.resolution import resolve
    from lakelog.logstores.service import BRIDGE_CLASS, LogStoreService, bridge_jar

    resolve("file:/", conf)  # a wrong conf fails here, not in the first session
    jar = bridge_jar()
    with (
        until_stopped() as wait,
        LogStoreService(conf, endpoint_file=endpoint, tcp=tcp) as service,
    ):
        line("# Serving. For spark-defaults.conf, beside the settings of delta-spark:")
        line(f"spark.jars {jar}")
        line(f"spark.delta.logStore.class {BRIDGE_CLASS}")
        line(f"spark.hadoop.lakelog.bridge.endpoint {service.endpoint_file}")
        wait()


def _serve_commits(
    conf: dict[str, str],
    address: tuple[str, int],
    roots: tuple[str, ...],
    token_file: Path,
    tls: RotatedFiles[ssl.SSLContext] | None,
) -> None:
    from lakelog.cli.commit_server import CommitServer
    from lakelog.core.engine.commit import CommitService
    from lakelog.logstores import keys

    service = CommitService(roots, conf)
    _make_token(token_file)
    token = RotatedFiles(lambda: _token(token_file), token_file)
    try:
        server = CommitServer(address, service, token, tls)
    except OSError as error:
        raise click.UsageError(
            f"{address[0]}:{address[1]} can't be had: {error.strerror}. Give another --listen."
        ) from None
    with until_stopped() as wait, server, _answering(server):
        url, *others = server.urls
        line(f"# Committing to {', '.join(service.roots)}. For the conf of clients:")
        line(f"{keys.COMMIT_SERVICE} {url}")
        line(f"{keys.SERVICE_TOKEN_FILE} {token_file}")
        if others:
            line(f"# Or {', or '.join(others)}: choose what leads here from the host of a client,")
            line("# and what the certificate names, if there is one.")
        wait()
        service.close(keys.TIME_BUDGET.of(conf))


@contextlib.contextmanager
def _answering(server: CommitServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, name="lakelog-serve", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_whole = bool(bare) and (":" not in bare or host == f"[{bare}]")
    if not is_whole or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise click.UsageError(f"--listen is HOST:PORT, as 127.0.0.1:7447, not {text!r}.")
    return bare, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(certificate: Path | None, key: Path | None) -> RotatedFiles[ssl.SSLContext] | None:
    if certificate is None or key is None:
        return None
    return RotatedFiles(lambda: _context(certificate, key), certificate, key)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        raise click.UsageError(
            f"--certificate {certificate} and --key {key} can't be used ({type(error).__name__}): "
            "they are PEM files, of one certificate and its key without a password."
        ) from None
    return context


def _make_token(path: Path) -> None:
    """Make the file of the token for the user alone, where there is none."""
    try:
        with contextlib.suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(made, "w", encoding="ascii") as file:  # noqa: PTH123 (a descriptor)
                file.write(secrets.token_urlsafe(32) + "\n")
    except OSError as error:
        raise click.UsageError(f"--token-file {path} can't be used: {error}") from None


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--token-file {path} can't be used: {error}") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise click.UsageError(
            f"--token-file {path} holds no token: one line of 16 or more characters without "
            "blanks. Remove it, and it is made."
        )
    return token
