"""What mkdocs does beside its plugins: pages that are files of the repository's root.

A page that holds the one line `<!-- file: CHANGELOG.md -->` shows that file, whose links are
rewritten for the place where it is shown. So nothing is copied into `docs/`.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any

_MARK = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s]+)([^)\s]*\))")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Put files of the repository where a page names them."""
    repository = Path(config.config_file_path).parent
    pages = Path(config.docs_dir)

    def shown(mark: re.Match[str]) -> str:
        source = repository / mark[1]

        def moved(link: re.Match[str]) -> str:
            if "://" in link[2]:
                return link[0]
            target = source.parent / link[2]
            here = (pages / page.file.src_uri).parent
            return f"{link[1]}{os.path.relpath(target, here)}{link[3]}"

        return _LINK.sub(moved, source.read_text(encoding="utf-8"))

    return _MARK.sub(shown, markdown)
