"""Tables that were moved: their log says where to, and accepts no commits.

The property is JSON: `type`, `state`, `spec` (where the table is now), and `noRedirectRules`, by
which some applications may still do some operations here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core import keys
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata
    from lakelog.core.conf import DeltaConf

REDIRECTS = ("delta.redirectReaderWriter-preview", "delta.redirectWriterOnly-preview")
"""Each says that the table is being moved, or was."""
_READY = "REDIRECT-READY"


def check_redirect(metadata: Metadata | None, operation: str, conf: DeltaConf, table: str) -> None:
    """Refuse a commit to a table that is being moved, or was.

    Args:
        metadata: the table's as it is; `None` for a new one.
        operation: the name of the commit's operation.
        conf: `skipRedirectFeature` lets everything pass; rules match `spark.app.name`.
        table: its path, for the message.

    Raises:
        DeltaAnalysisError: the table is between two states, or has moved and no rule lets this
            operation of this application pass.
    """
    if metadata is None or conf.read(keys.REDIRECTS):
        return
    for name in REDIRECTS:
        text = metadata.configuration.get(name)
        if text:
            _check(_parsed(name, text, table), name, operation, conf, table)


def _check(
    redirect: dict[str, Any], name: str, operation: str, conf: DeltaConf, table: str
) -> None:
    state = redirect.get("state")
    if state != _READY:
        raise DeltaAnalysisError(
            f"[DELTA_COMMIT_INTERMEDIATE_REDIRECT_STATE] {table} accepts no commits: its redirect "
            f"is in the state {state}. Wait until it is {_READY}, or unset {name} with the client "
            "that set it.",
            table=table,
            state=state,
        )
    application = conf.read(keys.APP_NAME) or ""
    if any(_allows(rule, application, operation) for rule in redirect.get("noRedirectRules") or ()):
        return
    target = orjson.dumps(redirect.get("spec") or {}).decode()
    raise DeltaAnalysisError(
        f"[DELTA_NO_REDIRECT_RULES_VIOLATED] {table} has moved to {target}, and no rule of {name} "
        f"lets {application or 'an application without a name'} do {operation} here. Write to the "
        "table there.",
        table=table,
        operation=operation,
    )


def _allows(rule: Any, application: str, operation: str) -> bool:
    if not isinstance(rule, dict):
        return False
    named = rule.get("appName")
    operations = rule.get("allowedOperations") or ()
    return named in (None, application) and operation in operations


def _parsed(name: str, text: str, table: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise DeltaAnalysisError(
            f"{table} has moved, as {name} says, but its new location can't be read: {text!r}. "
            "Unset the property with the client that set it.",
            table=table,
            property=name,
        )
    return value
