"""Maintenance: OPTIMIZE's work where an engine does it, and manifests for others.

`lakelog.core` runs the commands (`optimize`, `vacuum`, `repair`). A `BinTask` is the share of an
OPTIMIZE that can be pickled, and run anywhere; `OptimizeSettings` says which sizes it goes by.
`vacuum_outlook` is a dry run of VACUUM for whoever has read the commits already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.checkpoints.symlink_manifest import generate_symlink_manifest
    from lakelog.core.maintain.optimize.rewrite_tasks import BinTask
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
    from lakelog.core.maintain.optimize.running import GivenOptimizeProgress
    from lakelog.core.maintain.vacuum.from_log import Taken, taken_out
    from lakelog.core.maintain.vacuum.vacuum_table import vacuum_outlook
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "checkpoints.symlink_manifest": "generate_symlink_manifest",
            "maintain.optimize.run_settings": "OptimizeSettings",
            "maintain.optimize.running": "GivenOptimizeProgress",
            "maintain.optimize.rewrite_tasks": "BinTask",
            "maintain.vacuum.from_log": "Taken taken_out",
            "maintain.vacuum.vacuum_table": "vacuum_outlook",
        },
        below="lakelog.core",
    )
