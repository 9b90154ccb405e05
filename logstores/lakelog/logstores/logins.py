"""The keys of a conf by which catalogs and services know who asks; they stay in its process.

Files are read and written by the keys of their storage. So what is pickled with a conf leaves the
logins of all catalogs behind: of Unity Catalog, and of those that only Spark's other connectors ask
(Iceberg's `credential`, the password of a database). A key is kept only where it is known to hold
no secret: each connector has names of its own for what it logs in with.

The service that commits for others is asked by the process alone that commits. With its token goes
its address: who has the one alone would ask in vain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OF_A_CATALOG: Final = re.compile(r"(?s)spark\.(?:sql|lakelog)\.catalog\.[^.]+\.(?P<rest>.+)")
_PLAIN: Final = frozenset(
    (
        *("class", "credentials", "timeout", "token.file", "deltaRestApi.enabled"),
        *("auth.type", "auth.oauth.clientId", "auth.oauth.scope"),
    )
)
_URLS: Final = frozenset(("uri", "auth.oauth.uri"))
_BARE_URL: Final = re.compile(r"https?://[^@?#]*")


def without_logins(conf: Mapping[str, str], but: Iterable[str] = ()) -> dict[str, str]:
    """A conf without what catalogs and the commit service are shown to prove who asks.

    Args:
        conf: the user's.
        but: keys that stay, whatever they hold.
    """
    kept = frozenset(but)
    left = {key for key, value in conf.items() if key not in kept and _is_login(key, value)}
    if keys.SERVICE_TOKEN.name in left and not conf.get(keys.SERVICE_TOKEN_FILE.name):
        left.add(keys.COMMIT_SERVICE.name)
    return {key: value for key, value in conf.items() if key not in left}


def _is_login(key: str, value: str) -> bool:
    if key == keys.SERVICE_TOKEN.name:
        return True
    found = _OF_A_CATALOG.fullmatch(key)
    if found is None or found["rest"] in _PLAIN:
        return False
    return not (found["rest"] in _URLS and _BARE_URL.fullmatch(value.strip()))
