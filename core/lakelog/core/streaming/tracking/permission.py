"""Whether a stream may go past a column that was renamed, dropped or given another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core import keys
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.parts import parts_of
from lakelog.core.schema.types import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.core.conf import DeltaConf
    from lakelog.core.streaming.tracking.metadata_log import TrackedMetadata

_RENAME, _DROP, _TYPE = "RENAME COLUMN", "DROP COLUMN", "TYPE WIDENING"
_OPTION: Final = {
    _RENAME: "allowSourceColumnRename",
    _DROP: "allowSourceColumnDrop",
    _TYPE: "allowSourceColumnTypeChange",
}
_KEYS: Final = {
    _RENAME: (keys.ALLOW_RENAME, keys.ALLOW_RENAME_AND_DROP),
    _DROP: (keys.ALLOW_DROP, keys.ALLOW_RENAME_AND_DROP),
    _TYPE: (keys.ALLOW_TYPE_CHANGE,),
}
ALLOWING_OPTIONS: Final = tuple(_OPTION.values())
_ID: Final = "delta.columnMapping.id"


def check_allowed(
    before: TrackedMetadata,
    now: TrackedMetadata,
    options: Mapping[str, str],
    conf: DeltaConf,
    table: str,
) -> None:
    """Refuse a change of the columns that has not been approved yet: the sink has the old ones.

    Args:
        before: what the stream had.
        now: what it goes on with.
        options: of the stream, names in lower case.
        conf: the session's; it may allow changes, for one checkpoint or for all.
        table: its URI, for the error.

    Raises:
        DeltaAnalysisError: names the columns, and what allows the change.
    """
    found = _changes(before.schema, now.schema)
    kinds = [kind for kind in (_RENAME, _DROP, _TYPE) if kind in {each for each, _ in found}]
    mark = java_hash(now.source_path)
    if all(_allows(kind, now.version, mark, options, conf) for kind in kinds):
        return
    names = [_OPTION[kind] for kind in kinds]
    confs = [_KEYS[kind][0].name for kind in kinds]
    raise DeltaAnalysisError(
        "[DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION] We've detected one or "
        f"more non-additive schema change(s) ({' AND '.join(kinds)}) between Delta version "
        f"{before.version} and {now.version} in the Delta streaming source {table}. Changes: "
        f"{'; '.join(text for _, text in found)}. Please check if you want to propagate them to "
        "the sink table before the stream goes on with the columns of version "
        f"{now.version}. Then allow this series of changes for this stream by the reader option "
        f"{_all(names, str(now.version))}, or all of them by {_all(names, 'always')}; or by the "
        f"conf {_all([f'{each}.ckpt_{mark}' for each in confs], str(now.version))}, or for every "
        f"stream {_all(confs, 'always')}.",
        table=table,
        version=now.version,
        changes=[text for _, text in found],
        options=names,
    )


def _all(names: list[str], value: str) -> str:
    return " and ".join(f"{name} = '{value}'" for name in names)


def _allows(
    kind: str, version: int, mark: int, options: Mapping[str, str], conf: DeltaConf
) -> bool:
    name = _OPTION[kind]
    if options.get(name.lower(), "").strip().lower() in ("always", str(version)):
        return True
    for key in _KEYS[kind]:
        of_checkpoint = conf.get_str(f"{key.name}.ckpt_{mark}") or ""
        if (conf.read(key) or "").lower() == "always":
            return True
        if of_checkpoint.lower() in ("always", str(version)):
            return True
    return False


def java_hash(text: str) -> int:
    """Java's `String.hashCode`, by which Delta's confs name a checkpoint."""
    value = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _changes(before: StructType, now: StructType) -> list[tuple[str, str]]:
    """Kind and description of what was renamed, dropped or retyped."""
    new = {key: (path, field) for key, path, field in _fields(now, (), ())}
    found = []
    for key, path, field in _fields(before, (), ()):
        there = new.get(key)
        if there is None:
            found.append((_DROP, f"{path} was dropped"))
            continue
        if there[1].name != field.name:
            found.append((_RENAME, f"{path} was renamed to {there[0]}"))
        old, other = field.data_type, there[1].data_type
        if type(old) is not type(other) or (not _is_nested(old) and old != other):
            found.append((_TYPE, f"{there[0]} has the type {other} instead of {old}"))
    return found


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | ArrayType | MapType)


_Key = tuple[object, ...]


def _fields(
    kind: DataType, key: _Key, path: tuple[str, ...]
) -> Iterator[tuple[_Key, str, StructField]]:
    """All fields, by what stays the same when one is renamed: its id, where it has one."""
    if isinstance(kind, StructType):
        for field in kind:
            mark = field.metadata.get(_ID, field.name.lower())
            mine, here = (*key, mark), (*path, field.name)
            yield mine, ".".join(here), field
            yield from _fields(field.data_type, mine, here)
    for step, part in parts_of(kind):
        yield from _fields(part, (*key, step), (*path, step))
