"""Files whose rows were put in order together, and what of a table still has to be.

Delta calls them a Z-cube, and marks each of its files by tags with the cube's id and its columns.
Cubes that are large enough are left alone; new files, and those of small cubes, are ordered again.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.maintain.optimize.plan import TARGET_TAG, deleted_share, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.maintain.optimize.ordering import RowOrder
    from lakelog.core.maintain.optimize.plan import Bin
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings

_ID, _BY, _CURVE = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"
_PROVIDER = "liquid"


def cube_of(file: AddFile) -> tuple[str, tuple[str, ...]] | None:
    """The id and the columns of a file's cube; `None` where it is in none."""
    tags = file.tags or {}
    cube, by = tags.get(_ID), tags.get(_BY)
    if cube is None or by is None:
        return None
    try:
        return cube, tuple(map(str, orjson.loads(by)))
    except (orjson.JSONDecodeError, TypeError):
        return None


def _retagged(add: AddFile, cube: str, columns: Sequence[str], **more: str) -> AddFile:
    by = orjson.dumps(list(columns)).decode()
    return replace(add, tags={**(add.tags or {}), _ID: cube, _BY: by, **more})


class ZOrder:
    """All rows of a partition, in Z-order."""

    def __init__(self, settings: OptimizeSettings, order: RowOrder, columns: Sequence[str]) -> None:
        """Take the limits and the columns, `columns` being their texts."""
        self._settings = settings
        self._columns = tuple(columns)
        self.order: RowOrder | None = order

    def candidates(self, files: pa.Table) -> pa.Table:
        """All files."""
        return files

    def bins(self, files: Sequence[AddFile]) -> Iterator[Sequence[AddFile]]:
        """One bin, unless an earlier run ordered exactly these files by the same columns."""
        if files and not self._is_done(files):
            yield files

    def outputs(self, size: int) -> int:
        """Files of about the target's size."""
        return max(1, size // self._settings.target_size)

    def stats(self, considered: pa.Table, done: Sequence[Bin]) -> dict[str, Any]:
        """What Delta counts of a Z-order: each partition became a cube."""
        del considered
        files = [file for each in done for file in each.files]
        merged = {"num": len(files), "size": sum(file.size for file in files)}
        found = {
            "strategyName": "all",
            "inputCubeFiles": {"num": 0, "size": 0},
            "inputOtherFiles": merged,
            "inputNumCubes": 0,
            "mergedFiles": merged,
            "numOutputCubes": len(done),
            "mergedNumCubes": None,
        }
        return {"z_order_stats": found}

    def tagged(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """As one cube."""
        cube = str(uuid.uuid4())
        target = {TARGET_TAG: str(self._settings.target_size), _CURVE: "zorder"}
        return [_retagged(add, cube, self._columns, **target) for add in adds]

    def _is_done(self, files: Sequence[AddFile]) -> bool:
        cubes = {cube_of(file) for file in files}
        if len(cubes) != 1 or None in cubes:
            return False
        return all(
            (cube_of(file) or ("", ()))[1] == self._columns
            and (file.tags or {}).get(_CURVE) == "zorder"
            and deleted_share(file) <= self._settings.max_deleted_ratio
            for file in files
        )


class Clustering:
    """Rows of a clustered table along Hilbert's curve, cube by cube."""

    def __init__(
        self,
        settings: OptimizeSettings,
        order: RowOrder,
        columns: Sequence[str],
        *,
        full: bool = False,
    ) -> None:
        """Take the limits and the columns, `columns` being their texts.

        Args:
            settings: the limits.
            order: what rows are ordered by.
            columns: the texts of its columns, for the tags.
            full: also order what was ordered by other columns.
        """
        self._settings = settings
        self._columns = tuple(columns)
        self._full = full
        self.order: RowOrder | None = order

    def candidates(self, files: pa.Table) -> pa.Table:
        """All files."""
        return files

    def bins(self, files: Sequence[AddFile]) -> Iterator[Sequence[AddFile]]:
        """Files without a cube, and those of small ones, up to the size of a cube."""
        yield from packed(self._unordered(files), self._settings.cube_size)

    def outputs(self, size: int) -> int:
        """Files of about the target's size."""
        return max(1, size // self._settings.target_size)

    def stats(self, considered: pa.Table, done: Sequence[Bin]) -> dict[str, Any]:
        """What Delta counts of the clustering of a table."""
        inside: list[AddFile] = []
        outside: list[AddFile] = []
        cubes = set()
        for file in to_add_files(considered):
            cube = cube_of(file)
            if cube is not None and (self._full or cube[1] == self._columns):
                inside.append(file)
                cubes.add(cube[0])
            else:
                outside.append(file)
        found = {
            "inputZCubeFiles": _totals(inside),
            "inputOtherFiles": _totals(outside),
            "inputNumZCubes": len(cubes),
            "mergedFiles": _totals([file for each in done for file in each.files]),
            "numOutputZCubes": len(done),
        }
        return {"clustering_stats": found}

    def tagged(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """As one cube of Delta's liquid clustering."""
        cube = str(uuid.uuid4())
        return [
            replace(_retagged(add, cube, self._columns), clustering_provider=_PROVIDER)
            for add in adds
        ]

    def _unordered(self, files: Sequence[AddFile]) -> list[AddFile]:
        loose: list[AddFile] = []
        others: list[AddFile] = []
        cubes: dict[str, list[AddFile]] = {}
        for file in sorted(files, key=lambda file: (file.tags or {}).get(_ID) or ""):
            cube = cube_of(file)
            if file.clustering_provider not in (None, _PROVIDER) or (
                cube is not None and cube[1] != self._columns
            ):
                others.append(file)
            elif cube is None:
                loose.append(file)
            else:
                cubes.setdefault(cube[0], []).append(file)
        small = {key: each for key, each in cubes.items() if self._is_small(each)}
        if self._full and others:
            loose += others
        if not loose and len(small) < 2:
            return []  # it would be ordered as it is
        return [*loose, *(file for each in small.values() for file in each)]

    def _is_small(self, files: Iterable[AddFile]) -> bool:
        size = sum(file.size * (1 - deleted_share(file)) for file in files)
        return size < self._settings.min_cube_size


def _totals(files: Sequence[AddFile]) -> dict[str, int]:
    return {"numFiles": len(files), "size": sum(file.size for file in files)}
