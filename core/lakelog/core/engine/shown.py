"""What people are shown: numbers, times and effects as texts, and small pictures as SVG.

`html_text` is the only way into a page for what a table says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.log.commit_effects import effect_text, metric_value, parameters_text
    from lakelog.core.log.commit_history import History
    from lakelog.core.shown.notebook import rows_page
    from lakelog.core.shown.pictures import LETTER, WIDTH, Canvas, Series, bars, lines, svg
    from lakelog.core.shown.texts import (
        bytes_text,
        count_text,
        html_text,
        is_unseen,
        printable,
        time_text,
    )
    from lakelog.core.state.file_sizes import SMALL, size_classes, size_range
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "log.commit_effects": "effect_text metric_value parameters_text",
            "log.commit_history": "History",
            "shown.notebook": "rows_page",
            "shown.pictures": "Canvas LETTER Series WIDTH bars lines svg",
            "shown.texts": "bytes_text count_text html_text is_unseen printable time_text",
            "state.file_sizes": "SMALL size_classes size_range",
        },
        below="lakelog.core",
    )
