"""How every command that writes rows ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.catalogs.refusals import may_maintain
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.maintain.optimize.auto_compaction import AutoCompaction
from lakelog.core.transaction.command_commit import commit_command
from lakelog.logstores.keys import meaning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.conf import DeltaConf
    from lakelog.core.transaction.command_commit import RowsChanged
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_PROPERTY = "delta.autoOptimize.autoCompact"
_OLD_PROPERTY = "delta.autoOptimize"


def end_command(
    txn: OptimisticTransaction,
    actions: Sequence[Action],
    operation: Operation,
    *,
    batch: tuple[str, int] | None = None,
    keeps_row_ids: bool | None = None,
    skips_empty: bool = True,
) -> RowsChanged:
    """`commit_command`, and auto compaction after it where the session or the table wants that.

    `spark.databricks.delta.autoCompact.enabled` comes before `delta.autoOptimize.autoCompact`.

    Raises:
        DeltaError: what `commit_command` raises.
        DeltaAnalysisError: neither true nor false.
    """
    if may_maintain(txn.delta_log.store) and _is_wanted(
        txn.delta_log.conf, txn.metadata.configuration
    ):
        # As a hook: it sees what was committed, and its failure is no failure of the command.
        txn.register_post_commit_hook(AutoCompaction())
    return commit_command(
        txn,
        actions,
        operation,
        batch=batch,
        keeps_row_ids=keeps_row_ids,
        skips_empty=skips_empty,
    )


def _is_wanted(conf: DeltaConf, properties: Mapping[str, str]) -> bool:
    text = conf.read(keys.AUTO_COMPACT)
    where = f"the conf {keys.AUTO_COMPACT}"
    if text is None and (properties.get(_OLD_PROPERTY) or "").strip().lower() == "true":
        return True
    if text is None:
        text, where = properties.get(_PROPERTY, "false"), f"the table property {_PROPERTY}"
    try:
        return bool(meaning("flag", text))
    except ValueError:
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_AUTO_COMPACT_TYPE] Invalid auto-compact type: {text}. Allowed values "
            f"are: (true,false). It comes from {where}.",
            value=text,
        ) from None
