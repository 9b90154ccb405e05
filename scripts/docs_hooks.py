"""What mkdocs does beside its plugins: files and pictures in pages, and a check of the search.

A page that holds the one line `<!-- file: CHANGELOG.md -->` shows that file, whose links are
rewritten for the place where it is shown. So nothing is copied into `docs/`.

A picture of `pictures/` that stands alone on its line becomes part of the page, so that it takes
the colours that the reader has chosen there; a file of its own knows those of the system alone.

`<!-- report: TITLE -->` is a picture that lakelog makes of the demo's table, `<!-- shown: history
-->` what a notebook shows of its history, and `gallery/flights.html` the report (`docs_gallery`).

What people look for is found: each of `SOUGHT` in the index of the search, on its page. Where the
prose of a page says it in other words, its front matter has `tags`.
"""

from __future__ import annotations

import json
import os.path
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import docs_gallery  # mkdocs loads this file alone

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
_PICTURE = re.compile(r"^!\[([^\]]+)\]\(((?:\.\./)*pictures/[\w-]+\.svg)\)$", re.MULTILINE)
_REPORTED = re.compile(r"^<!-- report: (.+) -->$", re.MULTILINE)
_HISTORY = "<!-- shown: history -->"
_LINK = re.compile(r"(\]\()([^)#\s]+)([^)\s]*\))")


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Add the report of the demo's table."""
    files.append(File.generated(config, "gallery/flights.html", content=docs_gallery.report()))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Put files of the repository, and pictures, where a page names them."""
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

    def drawn(link: re.Match[str]) -> str:
        picture = ((pages / page.file.src_uri).parent / link[2]).read_text(encoding="utf-8")
        words = f'role="img" aria-label="{escape(link[1])}"'
        svg = picture.replace(' alone"', '"', 1).replace("<svg ", f"<svg {words} ", 1)
        return _figure(svg)

    markdown = _PICTURE.sub(drawn, _MARK.sub(shown, markdown))
    markdown = _REPORTED.sub(lambda mark: _figure(docs_gallery.picture(mark[1]), mark[1]), markdown)
    if _HISTORY in markdown:
        markdown = markdown.replace(_HISTORY, _figure(docs_gallery.history()))
    return markdown


def _figure(picture: str, caption: str = "") -> str:
    """A picture as part of a page; in Markdown an empty line would end it."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="picture">{"".join(picture.splitlines())}{below}</figure>'


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
