"""`lakelog describe <uri>`: what a table is, at one version."""

from __future__ import annotations

from typing import Any

import click

from lakelog.cli.output import facts, heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import looked_at, one_line, open_log, version_options
from lakelog.core.engine.shown import bytes_text, count_text
from lakelog.core.engine.tables import one_call

_COLOURS = {"refused": "red", "yes": "green"}


@click.command(short_help="Schema, properties, protocol, size and storage of a table.")
@uri_argument
@conf_options
@version_options
@json_option
@one_call()
def command(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    as_json: bool,
) -> None:
    """Describe the table URI: its schema, partitioning, properties, protocol, files and storage.

    Shows for each table feature whether lakelog can read and write a table that has it, in its
    present state, and also describes tables that it can't read.
    """
    from lakelog.cli.describe.description import description

    scrubber = Scrubber(conf)
    with progress() as tell:
        log = open_log(uri, conf)
        tell("reading the log")
        found = scrubber.data(description(log, looked_at(log, version, timestamp), tell))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    heading(f"{found['table']}, version {found['version']}")
    facts(_facts(found))
    heading("Schema")
    _print_schema(found)
    if found["properties"]:
        heading("Properties")
        table(
            ("Property", "Value", "Default where it differs"),
            [_property(name, each) for name, each in found["properties"].items()],
        )
    _print_protocol(found["protocol"])
    if found["transactions"]:
        heading("Progress of applications")
        table(
            ("Application", "Version", "Recorded (UTC)"),
            [
                (each["app_id"], each["version"], each["last_updated"] or "")
                for each in found["transactions"]
            ],
        )
    if found["domains"]:
        heading("Domain metadata")
        facts([(name, one_line(text)) for name, text in found["domains"].items()])
    heading("Storage")
    store = found["store"]
    facts(
        [
            ("store", store["class"]),
            ("chosen by", store["reason"]),
            ("commit lock", f"{store['commit_lock']}: {store['commit_lock_reason']}"),
        ]
    )


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    unknown = found["files_without_row_count"]
    rows = "unknown" if found["rows"] is None else f"{found['rows']:,}"
    if unknown and found["rows"] is not None:
        rows += f" and those of {count_text(unknown, 'file')} without statistics"
    earliest = found["earliest_version"]
    pairs = (
        ("name", found["name"]),
        ("description", found["description"] and one_line(found["description"])),
        ("id", found["id"]),
        ("created", found["created"]),
        ("committed", found["timestamp"]),
        ("files", f"{found['files']:,}"),
        ("size", bytes_text(found["bytes"])),
        ("rows", rows),
        ("partitioned by", ", ".join(found["partition_columns"]) or "nothing"),
        ("last checkpoint", _checkpoint_text(found["last_checkpoint"])),
        ("earliest version", "none can be rebuilt" if earliest is None else str(earliest)),
    )
    return [(name, value) for name, value in pairs if value]


def _checkpoint_text(found: dict[str, Any] | None) -> str:
    if found is None:
        return "none"
    since = found["commits_since"]
    text = f"version {found['version']}, {bytes_text(found['bytes'])}"
    if len(found["files"]) > 1:
        text += f" in {len(found['files'])} files"
    return f"{text}, {count_text(since, 'commit')} since" if since else text


def _print_schema(found: dict[str, Any]) -> None:
    from lakelog.cli.describe.schema_tree import schema_tree
    from lakelog.core.schema import StructType, type_from_json_value

    schema = type_from_json_value(found["schema"])
    assert isinstance(schema, StructType)
    if len(schema):
        table(("Column", "Type", "", ""), schema_tree(schema, found["partition_columns"]))
    else:
        line("  no columns")


def _property(name: str, each: dict[str, Any]) -> tuple[str, str, str]:
    default = each["default"]
    differs = default is not None and default != each["value"]
    return name, one_line(each["value"]), str(default) if differs else ""


def _print_protocol(protocol: dict[str, Any]) -> None:
    heading(
        f"Protocol: reader {protocol['min_reader_version']}, "
        f"writer {protocol['min_writer_version']}"
    )
    if protocol["features"]:
        table(
            ("Feature", "In use", "lakelog reads it", "lakelog writes it"),
            [
                (
                    each["name"],
                    "yes" if each["in_use"] else "no",
                    (each["read"], _COLOURS.get(each["read"], "")),
                    (each["write"], _COLOURS.get(each["write"], "")),
                )
                for each in protocol["features"]
            ],
        )
    if protocol["cannot_read"]:
        line(protocol["cannot_read"], "red")
    elif protocol["cannot_write"]:
        line(protocol["cannot_write"], "yellow")
