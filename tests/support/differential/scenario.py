"""A conflict as a short story: a table, what a job reads, what others commit, what it commits.

    Scenario(
        "a delete meets an append to its partition",
        Table(by=("p",), files=(add("a", p="1"),)),
        reads("p = '1'"),
        wins(add("b", p="1"), blind=True),
        commits("DELETE", remove("a", p="1")),
    )

The steps run in their order, by lakelog and by delta-spark, each on a table of its own that
has the same log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from support.differential.lines import MOMENT, Line, info, protocol, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

DEFAULT_SCHEMA = {"id": "long", "p": "string"}


def _none() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Table:
    """The table that the job starts from, as its version 0."""

    by: tuple[str, ...] = ()
    """The partition columns."""
    files: tuple[Line, ...] = ()
    """And whatever else version 0 holds."""
    features: tuple[str, ...] = ()
    """Of the protocol; none is version 1 of the reader and 2 of the writer."""
    properties: Mapping[str, str] = field(default_factory=_none)
    columns: Mapping[str, str] = field(default_factory=lambda: DEFAULT_SCHEMA)
    own_protocol: Line | None = None
    """Instead of what `features` say."""
    own_schema: str | None = None
    """Instead of what `columns` say, as JSON text."""

    @property
    def metadata(self) -> Line:
        """Its metaData line."""
        return {
            "metaData": {
                "id": "the-table",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": self.own_schema or schema(**self.columns),
                "partitionColumns": list(self.by),
                "configuration": dict(self.properties),
                "createdTime": MOMENT,
            }
        }

    def changed(self, properties: Mapping[str, str | None] | None = None, **fields: Any) -> Line:
        """Its metadata with properties set (None: taken away) and fields replaced."""
        value = self.metadata["metaData"] | fields
        merged = {**self.properties, **(properties or {})}
        value["configuration"] = {k: v for k, v in merged.items() if v is not None}
        return {"metaData": value}

    @property
    def lines(self) -> list[Line]:
        """Version 0."""
        in_commit = {}
        if self.properties.get("delta.enableInCommitTimestamps") == "true":
            in_commit = {"inCommitTimestamp": MOMENT}
        first = info("CREATE TABLE", blind=True, **in_commit)
        head = self.own_protocol or protocol(*self.features)
        return [first, head, self.metadata, *self.files]


class Step(NamedTuple):
    """One thing that happens; its fields are JSON values."""

    kind: str
    args: tuple[Any, ...] = ()


def reads(*filters: str | None) -> list[Step]:
    """The job asks for the files that match each filter; None asks for all."""
    return [Step("reads", (each,)) for each in filters or (None,)]


def reads_whole_table() -> Step:
    """The job says that it read everything."""
    return Step("reads_whole_table")


def reads_app(app_id: str) -> Step:
    """The job asks how far an application is."""
    return Step("reads_app", (app_id,))


def replaces_partitions_of(*adds: Line) -> Step:
    """The job asks for the files that a dynamic overwrite with these files replaces."""
    return Step("replaces_partitions_of", (list(adds),))


def sets_metadata(line: Line) -> Step:
    """The job changes the metadata, as a command does before it writes."""
    return Step("sets_metadata", (line,))


def wins(*lines: Line, operation: str = "WRITE", blind: bool | None = False, **fields: Any) -> Step:
    """Another writer commits the next version."""
    return Step("wins", ([info(operation, blind=blind, **fields), *lines],))


def wins_silently(*lines: Line) -> Step:
    """Another writer commits the next version, without a commitInfo."""
    return Step("wins", (list(lines),))


def commits(operation: str, *lines: Line) -> Step:
    """The job commits."""
    return Step("commits", (operation, list(lines)))


def commits_if_needed(operation: str, *lines: Line) -> Step:
    """The job commits, unless there is nothing to say."""
    return Step("commits_if_needed", (operation, list(lines)))


class Scenario:
    """One conflict, or one that is none.

    Args:
        name: what tells it from others.
        table: None where the job finds no table.
        steps: in their order; lists among them are taken apart.
    """

    def __init__(self, name: str, table: Table | None, *steps: Step | list[Step]) -> None:
        self.name = name
        self.table = table
        self.steps: list[Step] = []
        for each in steps:
            self.steps.extend([each] if isinstance(each, Step) else each)

    def lay_out(self, path: Path) -> None:
        """Make the table, at a path that does not exist yet."""
        log = path / "_delta_log"
        log.mkdir(parents=True)
        if self.table is None:
            return
        text = "".join(f"{json.dumps(line)}\n" for line in self.table.lines)
        (log / f"{0:020d}.json").write_text(text)

    def story(self) -> str:
        """What happens, a line a step."""
        first = 0 if self.table is None else 1
        described = _step_lines(self.steps, first)
        return "\n".join([_table_line(self.table), *(f"  {each}" for each in described)])


def _table_line(table: Table | None) -> str:
    if table is None:
        return "no table"
    parts = [f"a table by {', '.join(table.by)}" if table.by else "a table without partitions"]
    if table.own_protocol:
        parts.append(_action_text(table.own_protocol))
    parts.extend(filter(None, [" ".join(table.features)]))
    parts.extend(f"{key}={value}" for key, value in table.properties.items())
    parts.extend(map(_action_text, table.files))
    return ", ".join(parts)


def _step_lines(steps: list[Step], version: int) -> Iterator[str]:
    for kind, args in steps:
        match kind:
            case "reads":
                yield f"the job reads {'all files' if args[0] is None else args[0]}"
            case "reads_whole_table":
                yield "the job says that it read the whole table"
            case "reads_app":
                yield f"the job reads how far {args[0]} is"
            case "replaces_partitions_of":
                yield f"the job replaces the partitions of: {_joined(args[0])}"
            case "sets_metadata":
                yield f"the job sets: {_action_text(args[0])}"
            case "wins":
                yield f"version {version} of another: {_joined(args[0]) or 'nothing'}"
                version += 1
            case _:
                yield f"the job {kind.replace('_', ' ')} {args[0]}: {_joined(args[1])}"


def _joined(lines: list[Line]) -> str:
    return "; ".join(map(_action_text, lines))


def _action_text(line: Line) -> str:
    ((kind, value),) = line.items()
    match kind:
        case "commitInfo":
            blind = value.get("isBlindAppend")
            note = {True: "blind append", False: "read the table", None: "says not if blind"}
            return f"{value['operation']} ({note[blind]})"
        case "add" | "remove" | "cdc":
            partition = ",".join(f"{k}={v}" for k, v in value["partitionValues"].items())
            vector = value.get("deletionVector", {}).get("pathOrInlineDv", "").rstrip("v")
            notes = [
                partition,
                f"vector {vector}" if vector else "",
                "" if kind == "cdc" or value["dataChange"] else "no data change",
                f"row ids from {value['baseRowId']}" if "baseRowId" in value else "",
            ]
            text = ", ".join(filter(None, notes))
            return f"{kind} {value['path']}{f' ({text})' if text else ''}"
        case "metaData":
            columns = [f["name"] for f in json.loads(value["schemaString"])["fields"]]
            return f"metaData of {'/'.join(columns)} {value['configuration'] or ''}".rstrip()
        case "protocol":
            versions = f"{value['minReaderVersion']}/{value['minWriterVersion']}"
            return f"protocol {versions} {' '.join(value.get('writerFeatures', []))}".rstrip()
        case "txn":
            return f"txn {value['appId']} at {value['version']}"
        case _:
            return f"{kind} {' '.join(str(v) for v in value.values() if v is not False)}"
