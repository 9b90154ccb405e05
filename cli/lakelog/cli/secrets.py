"""The last guard before anything is printed: no secret of the conf or environment gets out."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.locations import STARS, without_secrets
from lakelog.logstores.settings import masked

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST: Final = 4
"""Shorter values would star out ordinary words."""
_ENVIRONMENT: Final = re.compile(r"(AWS|AZURE|GOOGLE|GCS|OSS|IBM|OCI)_.*", re.IGNORECASE)
_FILE_NAMES: Final = ("_FILE", "_APPLICATION_CREDENTIALS", "_URI")


class Scrubber:
    """Stars out secrets in text, and in anything made of text.

    What counts: the values of conf keys and of the clouds' environment variables that speak of a
    secret, and signatures and passwords in URLs and connection strings.
    """

    def __init__(self, conf: Mapping[str, str]) -> None:
        """Learn the secrets of a conf and of the environment."""
        pairs = list(conf.items())
        # `AWS_SECRET_ACCESS_KEY` reads like `aws.secret.access.key` to the rule for conf keys.
        pairs += [
            (name.replace("_", "."), value)
            for name, value in os.environ.items()
            if _ENVIRONMENT.fullmatch(name) and not name.upper().endswith(_FILE_NAMES)
        ]
        found = {
            value.strip()
            for key, value in pairs
            if len(value.strip()) >= _SHORTEST and (masked(key, value) != value or _is_key(key))
        }
        self._secrets = sorted(found, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, STARS)
        return without_secrets(text)

    def data(self, data: Any) -> Any:
        """The same for each text in lists and mappings, keys included."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {self.text(str(key)): self.data(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.data(each) for each in data]
        return data


def _is_key(name: str) -> bool:
    return _ENVIRONMENT.fullmatch(name.replace(".", "_")) is not None and name.endswith(".KEY")
