"""What a repair keeps of what it changes, in a folder beside the log's files.

    _delta_log/_repair/<time>-<random>/plan.json    what is to be done; written first
    _delta_log/_repair/<time>-<random>/<file>       a file of the log, as it was

A copy is made, and read back, before its file is touched, so that a repair that is killed anywhere
leaves the table as it was or as it is to be, and nothing lost.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.file_names import log_path
from lakelog.core.log.own_files import REPAIR_FOLDER, OwnFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.delta_log import DeltaLog
    from lakelog.logstores import LogStore

_PLAN = "plan.json"


@dataclass(slots=True)
class Backup:
    """The folder of one repair; made when the first thing is kept."""

    store: LogStore
    table: str
    folder: str
    files: list[str] = field(default_factory=list)
    """The names of the log's files that are kept."""

    @classmethod
    def new(cls, log: DeltaLog) -> Backup:
        """A name of its own."""
        time = datetime.fromtimestamp(log.clock.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        name = f"{time}-{secrets.token_hex(4)}"
        return cls(log.store, log.table, log_path(log.table, f"{REPAIR_FOLDER}/{name}"))

    @property
    def name(self) -> str:
        """Of the folder alone."""
        return self.folder.rpartition("/")[2]

    def begin(
        self, version: int, paths: Sequence[str], gone: list[AddFile], before: list[AddFile]
    ) -> None:
        """Write down what is to be done, before anything is.

        Args:
            version: the table's, so that the commit comes after it.
            paths: files of the log that may be replaced or removed.
            gone: files that are taken out of the table.
            before: files that get another size or other statistics, as they are.

        Raises:
            OSError: the storage refused; nothing was changed.
        """
        plan = {
            "version": version,
            "files": [path.rpartition("/")[2] for path in paths],
            "gone": [each.to_json_value() for each in gone],
            "before": [each.to_json_value() for each in before],
        }
        self._put(_PLAN, orjson.dumps(plan))

    def keep(self, path: str) -> bytes:
        """Copy a file of the log, and look that the copy is whole.

        Raises:
            FileNotFoundError: it is gone.
            OSError: the storage refused, or the copy reads otherwise.
        """
        data = self.store.read_bytes(path)
        name = path.rpartition("/")[2]
        self._put(name, data)
        if self._get(name) != data:
            raise OSError(f"the copy {self.folder}/{name} does not read as {path} does")
        self.files.append(name)
        return data

    def _put(self, name: str, data: bytes) -> None:
        OwnFiles(self.store, self.table).create_folder(self.folder)
        place = self.store.filesystem_path(f"{self.folder}/{name}")
        with self.store.filesystem.open_output_stream(place) as sink:
            sink.write(data)

    def _get(self, name: str) -> bytes:
        place = self.store.filesystem_path(f"{self.folder}/{name}")
        with self.store.filesystem.open_input_file(place) as source:
            return bytes(source.read())


def read_plan(log: DeltaLog, folder: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a backup says: the plan, and the files that are kept.

    Raises:
        DeltaAnalysisError: it is no backup of this table.
    """
    prefix = log_path(log.table, f"{REPAIR_FOLDER}/")
    if not folder.startswith(prefix) or "/" in folder.removeprefix(prefix).strip("/"):
        raise DeltaAnalysisError(
            f"{folder} is no backup of {log.table}: those are folders of {prefix}",
            table=log.table,
            path=folder,
        )
    backup = Backup(log.store, log.table, folder.rstrip("/"))
    try:
        plan = orjson.loads(backup._get(_PLAN))
    except (FileNotFoundError, ValueError) as exc:
        raise DeltaAnalysisError(
            f"{folder} is no backup of a repair: its {_PLAN} can't be read ({exc})",
            table=log.table,
            path=folder,
        ) from exc
    kept = {}
    for name in plan["files"]:
        try:
            kept[name] = backup._get(name)
        except FileNotFoundError:
            continue  # the repair ended before it
    return plan, kept
