"""What links of a table's folder lead to within the folder: in use, though under another name."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from lakelog.core.log.file_names import LOG_FOLDER

if TYPE_CHECKING:
    from lakelog.core.maintain.vacuum.found import Tree


def drop_linked(tree: Tree, root: str) -> None:
    """Leave out the files and folders that a link leads to: of the table, or of its log.

    Args:
        tree: what was found, and the links on the way.
        root: the table's folder, as the operating system names it.
    """
    real = f"{os.path.realpath(root).rstrip('/')}/"
    places = (os.path.realpath(f"{root}/{link}") for link in (*tree.links, *_links_of_log(root)))
    inner = tuple(place[len(real) :] for place in places if place.startswith(real))
    if not inner:
        return
    below = tuple(f"{place}/" for place in inner)
    tree.files = [f for f in tree.files if f.path not in inner and not f.path.startswith(below)]
    tree.folders = [f for f in tree.folders if not f"{f.path}/".startswith(below)]


def _links_of_log(root: str) -> list[str]:
    found = []
    if os.path.islink(f"{root}/{LOG_FOLDER}"):  # noqa: PTH114
        found.append(LOG_FOLDER)
    with suppress(FileNotFoundError), os.scandir(f"{root}/{LOG_FOLDER}") as entries:
        found += [f"{LOG_FOLDER}/{each.name}" for each in entries if each.is_symlink()]
    return found
