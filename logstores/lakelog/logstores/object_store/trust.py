"""Trust on first use: an endpoint without documented guarantees is probed before its first commit.

Amazon, Google and Microsoft document that a conditional create has one winner. Of any other
endpoint we only know what it does, and some answer 200 to every writer. So the first exclusive
create on it is preceded by the short probe, about a second, and is refused if that fails.
Processes of one user share what was found, for seven days.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.errors import LogStoreConfError, UnsafeLogStoreError
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.logstores.object_store.client import ObjectClient
    from lakelog.logstores.object_store.create_probe import CreateProbe

PROBE_KEY: Final = keys.ENDPOINT_PROBE.name
"""`auto` (unknown endpoints, once), `always` (every endpoint, once a process), or `never`."""

ROUNDS: Final = 10

WRITERS: Final = 8

_SECONDS: Final = 20.0
"""No race of the probe starts after these."""

_REFUSAL_KEPT: Final = 60.0
"""Seconds for which a refusal is repeated without a new probe: many writers may retry."""

_QUEUE_SECONDS: Final = 60.0

_log = logging.getLogger("lakelog.logstores")

_trusted: set[str] = set()

_refused: dict[str, tuple[float, str]] = {}

_state_lock = threading.Lock()


def forget_trust() -> None:
    """Forget what this process found out about endpoints."""
    global _state_lock
    _state_lock = threading.Lock()
    _trusted.clear()
    _refused.clear()


def _after_fork() -> None:
    # Another thread may have held the lock; what was found out stays true.
    global _state_lock
    _state_lock = threading.Lock()


after_fork(_after_fork)


def probe_folder() -> str:
    """A new name for a folder of probes, hidden from Delta's readers by its dot."""
    return f".lakelog-probe-{uuid.uuid4().hex[:16]}"


def ensure_trusted(client: ObjectClient, key: str, conf: Mapping[str, str], timeout: float) -> None:
    """Return if an exclusive create can be trusted to have one winner.

    Costs a look into a set, but for the first create on an endpoint that is not known.

    Args:
        client: of the bucket that is to be written.
        key: what is to be created; probes are made in a folder of their own next to the log.
        conf: the user's.
        timeout: seconds for each reply.

    Raises:
        UnsafeLogStoreError: the endpoint failed the probe, now or within the last minute.
        LogStoreConfError: `spark.lakelog.store.endpointProbe` has another value.
    """
    endpoint = client.endpoint
    if endpoint in _trusted:
        return
    mode = _mode(conf)
    if mode == "never" or (mode == "auto" and client.is_known):
        return
    with _one_at_a_time(endpoint):
        if endpoint in _trusted or _refused_lately(endpoint):
            return
        if mode == "auto" and passed_lately(endpoint):
            _trusted.add(endpoint)
            return
        _probe(client, key, timeout)


def _mode(conf: Mapping[str, str]) -> str:
    mode = conf.get(PROBE_KEY, "auto").strip().lower()
    if mode not in ("auto", "always", "never"):
        raise LogStoreConfError(f"{PROBE_KEY} must be auto, always or never, but it is {mode!r}")
    return mode


@contextlib.contextmanager
def _one_at_a_time(endpoint: str) -> Iterator[None]:
    """Let one thread of one process of this host probe; the rest wait and take its answer."""
    from lakelog.logstores.locks import host_lock

    with contextlib.ExitStack() as stack:
        # Without the lock there is one more probe, which does no harm.
        with contextlib.suppress(OSError, UnsafeLogStoreError):
            stack.enter_context(host_lock(f"endpoint:{endpoint}", timeout=_QUEUE_SECONDS))
        yield


def _refused_lately(endpoint: str) -> bool:
    """Raise the refusal again if it is fresh.

    Raises:
        UnsafeLogStoreError: it is.
    """
    with _state_lock:
        found = _refused.get(endpoint)
    if found is not None and time.monotonic() - found[0] < _REFUSAL_KEPT:
        raise UnsafeLogStoreError(found[1])
    return False


def _probe(client: ObjectClient, key: str, timeout: float) -> None:
    from lakelog.logstores.object_store.create_probe import CreateVerdict

    endpoint = client.endpoint
    _log.info(
        "%s is not known to create exclusively: probing it once with %d races of %d writers",
        endpoint, ROUNDS, WRITERS,
    )  # fmt: skip
    try:
        try:
            probe = _probed(client, _table(key), timeout)
        except PermissionError:
            # These credentials may be for the log alone. Readers of a log look at no folder in it.
            probe = _probed(client, key[: key.rfind("/") + 1], timeout)
    except OSError as error:
        # Nothing was learnt. The create itself meets the same trouble and reports it, or it
        # may write where the probe may not; then the user has to know that nothing was probed.
        reason = str(error).rstrip(".")
        _log.warning("%s could not be probed: %s. Run `lakelog doctor`.", endpoint, reason)
        return
    if probe.is_failure:
        _refuse(endpoint, probe)
    if probe.verdict is CreateVerdict.UNDECIDED:
        _log.warning("%s: the probe is %s. Run `lakelog doctor`.", endpoint, probe.sentence())
        return
    _trusted.add(endpoint)
    remember(endpoint)


def _probed(client: ObjectClient, prefix: str, timeout: float) -> CreateProbe:
    from lakelog.logstores.object_store.contenders import ObjectContender
    from lakelog.logstores.object_store.create_probe import probe_exclusive_create

    contender = ObjectContender(client, f"{prefix}{probe_folder()}/_delta_log/", timeout)
    try:
        return probe_exclusive_create(
            contender, rounds=ROUNDS, writers=WRITERS, seconds=_SECONDS, stop_early=True
        )
    finally:
        left = contender.clear()
        if left:
            _log.warning(
                "%s: the probe could not delete its files; these may remain: %s",
                client.endpoint,
                left,
            )


def _refuse(endpoint: str, probe: CreateProbe) -> None:
    text = (
        f"{endpoint} can't be trusted to create a file exactly once, so two writers may overwrite "
        f"each other's commits. Seen: {probe.sentence()}. {REMEDY} If you know better, set "
        f"{PROBE_KEY}=never."
    )
    with _state_lock:
        _refused[endpoint] = (time.monotonic(), text)
    raise UnsafeLogStoreError(text)


REMEDY: Final = (
    "Use an endpoint that keeps a conditional create atomic; on S3 without one, "
    "S3DynamoDBLogStore (spark.delta.logStore.<scheme>.impl=io.delta.storage.S3DynamoDBLogStore), "
    "whose lock is a row of a DynamoDB table; or, if only one process ever writes, "
    "lakelog.logstores.S3SingleDriverLogStore with spark.lakelog.unsafe.singleWriter=true."
)
"""What to do about storage that can't create exclusively."""


def _table(key: str) -> str:
    """The table's prefix of a key in its log; the folder of any other key."""
    table, log, _ = key.rpartition("_delta_log/")
    return table if log else key[: key.rfind("/") + 1]


KEPT_SECONDS: Final = 7 * 24 * 3600.0

_FORMAT: Final = 1


def passed_lately(endpoint: str) -> bool:
    """Whether the endpoint passed within the last seven days, as far as this host's user knows."""
    try:
        found = json.loads(_file(endpoint).read_text(encoding="utf-8"))
        age = time.time() - float(found["passed_at"])
        same = found["format"] == _FORMAT and found["endpoint"] == endpoint
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return False
    return bool(same) and 0 <= age < KEPT_SECONDS


def remember(endpoint: str) -> None:
    """Note that the endpoint passed just now; do nothing where that can't be written."""
    note = {"format": _FORMAT, "endpoint": endpoint, "passed_at": time.time()}
    with contextlib.suppress(OSError, RuntimeError):  # no home folder is a RuntimeError
        file = _file(endpoint)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=".draft-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(note, stream)
            Path(draft).replace(file)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def _file(endpoint: str) -> Path:
    # The XDG base directory specification: a relative path is to be ignored.
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if named.startswith("/") else Path.home() / ".cache"
    digest = hashlib.sha256(endpoint.encode()).hexdigest()[:32]
    return base / "lakelog" / "endpoints" / f"{digest}.json"
