"""Can the endpoint be reached, and does it speak what its URL says? Asked without an SDK.

An SDK reports a refused connection, a wrong port and missing TLS in the same words, after its own
retries. A socket distinguishes them at once. The reply also brings the server's clock.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lakelog.logstores.doctor import clock_skew as _probing_clock
from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.object_store.race import trusting

_TLS_ALERT: Final = b"\x15\x03"
_CHECK: Final = "connection"


@dataclass(frozen=True, slots=True)
class Connection:
    """What became of an attempt to reach an endpoint."""

    finding: Finding
    skew: float | None = None
    """Seconds by which the local clock is ahead, if the reply has the time."""


def probe_rpc(host: str, port: int, timeout: float, *, asked_by: str) -> Connection:
    """Open a connection to what should be a NameNode's RPC port, and see who answers.

    An RPC port of Hadoop knows a request of HTTP by its first bytes, and says so. Its web port
    takes connections just as well, and then the client's errors make no sense.

    Args:
        host: name or address.
        port: number.
        timeout: seconds, of each step.
        asked_by: what set the address, for the remedy.
    """
    finding, connection = _open(host, port, timeout, asked_by)
    if connection is None:
        return Connection(finding)
    where = f"{host}:{port}"
    with connection:
        try:
            reply, _ = _reply(connection, host)
        except TimeoutError:
            return _silent(where, timeout, asked_by)
    if reply is not None and b"Hadoop IPC" not in reply[2]:
        return _bad(
            f"{where} speaks HTTP: it is a web port, like that of the NameNode's web page",
            f"Name the RPC port (8020, or 9000) in {asked_by}; the web port belongs in "
            "spark.hadoop.dfs.namenode.http-address.",
        )
    return Connection(finding)


def probe_http(url: str, timeout: float, *, asked_by: str) -> Connection:
    """Ask an HTTP endpoint for anything at all.

    Args:
        url: `http` or `https`, host and maybe port; the rest is ignored.
        timeout: seconds, of each step.
        asked_by: what set the address, for the remedy: `spark.hadoop.fs.s3a.endpoint`.
    """
    parts = urlsplit(url)
    host, tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    if parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        summary = f"{parts.scheme.upper()}_PROXY is set: only the SDK uses it"
        return Connection(Finding(_CHECK, Status.SKIPPED, summary))
    finding, plain = _open(host, port, timeout, asked_by)
    if plain is None:
        return Connection(finding)
    where = f"{host}:{port}"
    with plain:
        if not tls:
            return _ask(plain, host, where, finding, asked_by)
        try:
            with trusting().wrap_socket(plain, server_hostname=host) as secured:
                return _ask(secured, host, where, finding, asked_by)
        except ssl.SSLCertVerificationError as error:
            return _bad(
                f"the certificate of {where} is not trusted: {error.verify_message}",
                "If it is a private certificate, set AWS_CA_BUNDLE (S3) or REQUESTS_CA_BUNDLE to "
                f"the file of its CA. Otherwise check the host name in {asked_by}.",
            )
        except (ssl.SSLError, TimeoutError, OSError):
            return _bad(
                f"{where} answers, but does not speak TLS",
                f"Begin the URL with http:// in {asked_by}{_by_name(asked_by, 'false')}, or name "
                "the port for TLS.",
            )


def _open(
    host: str, port: int, timeout: float, asked_by: str
) -> tuple[Finding, socket.socket | None]:
    where = f"{host}:{port}"
    try:
        connection = socket.create_connection((host, port), timeout=timeout)
    except socket.gaierror:
        return _bad(
            f"the name {host} can't be resolved",
            f"Check the host name in {asked_by}, and this machine's DNS.",
        ).finding, None
    except ConnectionRefusedError:
        return _bad(
            f"nothing listens at {where}: the connection was refused",
            f"Start the service, or correct the port in {asked_by}.",
        ).finding, None
    except TimeoutError:
        return _bad(
            f"no answer from {where} within {timeout:g} s",
            f"Check the host and port in {asked_by}, and whether a firewall drops the packets.",
        ).finding, None
    except OSError as error:
        return _bad(
            f"no connection to {where}: {error.strerror or type(error).__name__}",
            f"Check the host and port in {asked_by}, and this machine's network.",
        ).finding, None
    return Finding(_CHECK, Status.FINE, f"{where} answers"), connection


def _ask(
    connection: socket.socket, host: str, where: str, fine: Finding, asked_by: str
) -> Connection:
    sent = _probing_clock.now()
    try:
        reply, first = _reply(connection, host)
    except TimeoutError:
        return _silent(where, connection.gettimeout(), asked_by)
    received = _probing_clock.now()
    if reply is None:
        if first.startswith(_TLS_ALERT):
            return _speaks_tls(where, asked_by)
        return _bad(
            f"{where} answers, but not in HTTP",
            f"Correct the port in {asked_by}: another service listens there.",
        )
    status, date, body = reply
    if status == 400 and b"HTTPS" in body:
        return _speaks_tls(where, asked_by)
    skew = _probing_clock.skew_of_date(date, sent, received) if date else None
    return Connection(fine, skew)


def _silent(where: str, timeout: float | None, asked_by: str) -> Connection:
    return _bad(
        f"{where} takes connections, and does not answer within {timeout or 0:g} s",
        "The service hangs, or something in between takes connections for one that is down: look "
        f"at its own log, and check the host and port in {asked_by}.",
    )


def _speaks_tls(where: str, asked_by: str) -> Connection:
    return _bad(
        f"{where} speaks TLS, but was contacted without it",
        f"Begin the URL with https:// in {asked_by}{_by_name(asked_by, 'true')}.",
    )


def _by_name(asked_by: str, tls: str) -> str:
    """The setting that decides if S3's endpoint is a bare host; other services take URLs only."""
    key = "spark.hadoop.fs.s3a.connection.ssl.enabled"
    return f" (by host name alone: {key}={tls})" if "fs.s3a.endpoint" in asked_by else ""


def _bad(summary: str, remedy: str) -> Connection:
    return Connection(Finding(_CHECK, Status.FAILED, summary, remedy))


def _reply(
    connection: socket.socket, host: str
) -> tuple[tuple[int, str | None, bytes] | None, bytes]:
    """Status, date and the beginning of the body; or the bytes, if they are not HTTP.

    Raises:
        TimeoutError: there was no answer at all.
    """
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    first = b""
    try:
        connection.sendall(request.encode())
        first = connection.recv(4, socket.MSG_PEEK) if _peeks(connection) else b""
    except TimeoutError:
        raise
    except OSError:
        pass
    reply = http.client.HTTPResponse(connection)
    try:
        reply.begin()
        return (reply.status, reply.getheader("Date"), reply.read(1000)), first
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException):
        return None, first
    finally:
        reply.close()


def _peeks(connection: socket.socket) -> bool:
    return not isinstance(connection, ssl.SSLSocket)
