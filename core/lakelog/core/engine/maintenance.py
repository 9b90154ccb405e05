"""Maintenance: OPTIMIZE's work where an engine does it, and manifests for others.

`lakelog.core` runs the commands (`optimize`, `vacuum`, `repair`). A `BinTask` is the share of an
OPTIMIZE that can be pickled, and run anywhere.
"""

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
