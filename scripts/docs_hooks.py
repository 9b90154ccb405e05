"""What mkdocs does beside its plugins: pages of the repository's root, and a check of the search.

A page that holds the one line `<!-- file: CHANGELOG.md -->` shows that file, whose links are
rewritten for the place where it is shown. So nothing is copied into `docs/`.

What people look for is found: each of `SOUGHT` in the index of the search, on its page. Where the
prose of a page says it in other words, its front matter has `tags`.
"""

from __future__ import annotations

import json
import os.path
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority

SOUGHT = {
    "airflow": "airflow/",
    "cdc": "change-data-feed/",
    "compaction": "optimize/",
    "dagster": "dagster/",
    "dashboard": "report/",
    "databricks": "deploying/",
    "dbt": "dbt/",
    "deduplicate": "cookbook/",
    "glue": "deploying/",
    "great expectations": "checks/",
    "idempotent": "cookbook/",
    "jupyter": "notebooks/",
    "kubernetes": "deploying/",
    "openlineage": "airflow/",
    "pandera": "checks/",
    "rollback": "restore/",
    "scd": "cookbook/",
    "schema evolution": "spark/",
    "sqlmesh": "checks/",
    "time travel": "spark/",
    "undo": "restore/",
    "upsert": "merge/",
}
"""What is searched for, and the page that has to be among what is found."""

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


@event_priority(-100)
def on_post_build(*, config: Any, **_: Any) -> None:
    """Look up what people search for, in the index that the search plugin has written by now.

    Raises:
        PluginError: the search does not find a page.
    """
    index = json.loads((Path(config.site_dir) / "search/search_index.json").read_text("utf-8"))
    lost = [
        f"{words!r} on {page}"
        for words, page in SOUGHT.items()
        if not any(
            words in f"{entry['title']} {entry['text']} {' '.join(entry.get('tags', ()))}".lower()
            for entry in index["docs"]
            if entry["location"].partition("#")[0] == page
        )
    ]
    if lost:
        raise PluginError(
            f"the search does not find: {', '.join(lost)}. Say it there, or add a tag"
        )
