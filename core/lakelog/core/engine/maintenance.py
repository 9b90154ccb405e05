"""Maintenance: OPTIMIZE's work where an engine does it, and what others read beside the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine import offers

if TYPE_CHECKING:
    from lakelog.core.checkpoints.symlink_manifest import generate_symlink_manifest
    from lakelog.core.maintain.optimize.rewrite_tasks import BinTask
    from lakelog.core.maintain.optimize.running import OptimizeTold
else:
    __getattr__ = offers(
        __name__,
        {
            "lakelog.core.checkpoints.symlink_manifest": "generate_symlink_manifest",
            "lakelog.core.maintain.optimize.running": "OptimizeTold",
            "lakelog.core.maintain.optimize.rewrite_tasks": "BinTask",
        },
    )
