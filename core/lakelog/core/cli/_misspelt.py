"""Keys that look like one that is read, and are not: a setting that silently does nothing.

And comments that became part of a value.

Only near misses are told. Hadoop knows hundreds of `fs.*` keys that concern the JVM's clients
alone, and a conf that is shared with them is right to hold them.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from lakelog.logstores._known_keys import LAKELOG_KEYS
from lakelog.logstores._probing import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["KNOWN", "misspelt"]

_CLOSE: Final = 0.84
"""Similarity from which a key counts as a misspelling: one or two letters in a dozen."""
_BUCKET: Final = "fs.s3a.bucket."
_COMMENT: Final = re.compile(r"\s#")

KNOWN: Final = (
    *(
        f"fs.s3a.{name}"
        for name in (
            "access.key",
            "assumed.role.arn",
            "assumed.role.credentials.provider",
            "assumed.role.external.id",
            "assumed.role.policy",
            "assumed.role.session.duration",
            "assumed.role.session.name",
            "assumed.role.sts.endpoint",
            "assumed.role.sts.endpoint.region",
            "aws.credentials.provider",
            "connection.establish.timeout",
            "connection.maximum",
            "connection.ssl.enabled",
            "connection.timeout",
            "encryption.algorithm",
            "encryption.key",
            "endpoint",
            "endpoint.region",
            "path.style.access",
            "proxy.host",
            "proxy.password",
            "proxy.port",
            "proxy.ssl.enabled",
            "proxy.username",
            "requester.pays.enabled",
            "secret.key",
            "server-side-encryption-algorithm",
            "server-side-encryption.key",
            "session.token",
            "user.agent.prefix",
        )
    ),
    *(
        f"fs.gs.{name}"
        for name in (
            "auth.null.enable",
            "auth.service.account.json.keyfile",
            "auth.type",
            "auth.workload.identity.federation.credential.config.file",
            "encryption.key",
            "project.id",
            "proxy.address",
            "proxy.password",
            "proxy.username",
            "requester.pays.buckets",
            "requester.pays.mode",
            "requester.pays.project.id",
            "storage.root.url",
        )
    ),
    *(
        f"fs.azure.{name}"
        for name in (
            "account.auth.type",
            "account.key",
            "account.oauth.provider.type",
            "account.oauth2.client.endpoint",
            "account.oauth2.client.id",
            "account.oauth2.client.secret",
            "account.oauth2.msi.authority",
            "account.oauth2.msi.endpoint",
            "account.oauth2.msi.tenant",
            "account.oauth2.token.file",
            "sas.fixed.token",
        )
    ),
    "fs.defaultFS",
    "dfs.namenode.http-address",
    *(f"lakelog.{name}" for name in LAKELOG_KEYS),
)
"""Keys without `spark.` and `spark.hadoop.`; those of Azure may go on with an account's host."""


def misspelt(conf: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each key that is nearly one that is read, and for a comment behind a value.

    Args:
        conf: the user's; no value is shown.
    """
    for key in sorted(conf):
        prefix = next((p for p in ("spark.hadoop.", "spark.") if key.startswith(p)), "")
        named = list(_names(key[len(prefix) :]))
        if any(_is_known(name) for _, name in named):
            if _COMMENT.search(conf[key]):
                said = f"the value of {key} goes on with ' #' and what follows"
                remedy = "In a spark-defaults.conf a comment stands on a line of its own."
                yield Finding("settings", Status.NOTE, said, remedy)
            continue
        for before, name in named:
            near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=_CLOSE)
            if near:
                meant = prefix + before + near[0].removeprefix("fs.s3a." if before else "")
                said = f"nobody reads the key {key}"
                yield Finding("settings", Status.NOTE, said, f"Did you mean {meant}?")
                break


def _names(key: str) -> Iterator[tuple[str, str]]:
    """What stands for a bucket alone, and the key that counts: a bucket's name may have dots."""
    if not key.startswith(_BUCKET):
        yield "", key
        return
    parts = key.removeprefix(_BUCKET).split(".")
    for at in range(1, len(parts)):
        yield f"{_BUCKET}{'.'.join(parts[:at])}.", "fs.s3a." + ".".join(parts[at:])


def _is_known(name: str) -> bool:
    return name in KNOWN or any(
        name.startswith(known + ".") and known.startswith(("fs.azure.", "lakelog.azure.", "dfs."))
        for known in KNOWN
    )
