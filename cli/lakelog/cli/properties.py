"""`lakelog properties <uri>`: show, set and unset the properties of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.confirmation import confirm, yes_option
from lakelog.cli.output import facts, heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import looked_at, one_line, open_log

if TYPE_CHECKING:
    from lakelog.core import DeltaLog
    from lakelog.core.actions import Metadata, Protocol


@click.command(short_help="Show, set and unset the properties of a table.")
@uri_argument
@conf_options
@click.option(
    "--set",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set a property: delta.appendOnly=true. May be repeated.",
)
@click.option(
    "--unset", "unset", metavar="NAME", multiple=True, help="Remove a property. May be repeated."
)
@click.option("--dry-run", is_flag=True, help="Show what would change; commit nothing.")
@yes_option
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    given: tuple[str, ...],
    unset: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the properties of the table URI, or change them in one commit.

    A property may need a feature, which raises the table's protocol for good: older clients can't
    read or write the table then. That is asked for on a terminal, and needs --yes elsewhere.
    """
    if given and unset:
        raise click.UsageError("Give --set or --unset, not both: each is a commit of its own.")
    wanted = _pairs(given)
    scrubber, log = Scrubber(conf), open_log(uri, conf)
    with progress() as tell:
        tell("reading the log")
        found = _planned(log, wanted, unset) if wanted or unset else _shown(log)
    found["dry_run"] = dry_run
    if wanted or unset:
        protocol = found["protocol"]
        if protocol is not None and not (dry_run or yes):
            confirm(scrubber.text(_question(log.table, protocol)))
        if not dry_run and found["changed"] | (protocol or {}):
            with progress() as tell:
                tell("committing")
                found["version"] = _committed(log, wanted, unset)
    found = scrubber.data(found)
    if as_json:
        print_json(found)
    else:
        _print(found, changes=bool(wanted or unset))


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise click.UsageError(f"--set {pair!r} is not NAME=VALUE.")
        if name in found:
            raise click.UsageError(f"--set gives the property {name} two values.")
        found[name] = value.strip()
        _refuse_bare(name)
    return found


def _refuse_bare(name: str) -> None:
    """Refuse Delta's name without its prefix, which would be a property that no client reads."""
    from lakelog.core.engine.commit import KNOWN

    for known in KNOWN:
        if known.lower() == f"delta.{name}".lower():
            raise click.UsageError(f"Nothing reads the property {name}. Did you mean {known}?")


def _shown(log: DeltaLog) -> dict[str, Any]:
    from lakelog.cli.describe.description import shown_properties

    snapshot = looked_at(log, None, None)
    return _document(log.table, snapshot.version, shown_properties(snapshot.metadata), {}, None)


def _planned(log: DeltaLog, given: dict[str, str], unset: tuple[str, ...]) -> dict[str, Any]:
    from lakelog.cli.describe.description import shown_properties
    from lakelog.core.engine.tables import planned_properties

    snapshot, metadata, protocol = planned_properties(log, given, unset)
    return _document(
        log.table,
        snapshot.version,
        shown_properties(metadata),
        _changed(snapshot.metadata, metadata),
        _raised(snapshot.protocol, protocol),
    )


def _document(
    table: str,
    before: int,
    properties: dict[str, Any],
    changed: dict[str, Any],
    protocol: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "table": table,
        "version_before": before,
        "version": None,
        "properties": properties,
        "changed": changed,
        "protocol": protocol,
    }


def _changed(before: Metadata, after: Metadata) -> dict[str, Any]:
    old, new = before.configuration, after.configuration
    return {
        name: {"before": old.get(name), "after": new.get(name)}
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }


def _raised(before: Protocol, after: Protocol) -> dict[str, Any] | None:
    from lakelog.core.engine.commit import supported_features

    if before == after:
        return None
    return {
        **{
            when: {
                "min_reader_version": each.min_reader_version,
                "min_writer_version": each.min_writer_version,
            }
            for when, each in (("before", before), ("after", after))
        },
        "features_added": sorted(supported_features(after) - supported_features(before)),
    }


def _question(table: str, protocol: dict[str, Any]) -> str:
    after = protocol["after"]
    added = ", ".join(protocol["features_added"])
    return (
        f"Raise the protocol of {table} to reader {after['min_reader_version']}, writer "
        f"{after['min_writer_version']}{f' with {added}' if added else ''}? Older clients can't "
        "use the table then."
    )


def _committed(log: DeltaLog, given: dict[str, str], unset: tuple[str, ...]) -> int:
    from lakelog.core.alter import set_properties, unset_properties

    return set_properties(log, given) if given else unset_properties(log, unset)


def _print(found: dict[str, Any], *, changes: bool) -> None:
    heading(f"{found['table']}, version {found['version_before']}")
    if not changes:
        _print_properties(found["properties"])
        return
    if found["changed"]:
        table(
            ("Property", "Before", "After"),
            [
                (name, *(_value(each[when]) for when in ("before", "after")))
                for name, each in found["changed"].items()
            ],
        )
    protocol = found["protocol"]
    if protocol is not None:
        versions = [
            f"reader {each['min_reader_version']}, writer {each['min_writer_version']}"
            for each in (protocol["before"], protocol["after"])
        ]
        facts([("protocol", " -> ".join(versions))])
        if protocol["features_added"]:
            facts([("features added", ", ".join(protocol["features_added"]))])
    if found["dry_run"]:
        line("Nothing was committed (--dry-run).")
    elif found["version"] is None:
        line("That is so already: nothing was committed.")
    else:
        line(f"Changed by version {found['version']}.", "green")


def _print_properties(properties: dict[str, Any]) -> None:
    if not properties:
        line("  no properties are set")
        return
    rows = []
    for name, each in properties.items():
        default = each["default"]
        differs = default is not None and default != each["value"]
        rows.append((name, one_line(each["value"]), str(default) if differs else ""))
    table(("Property", "Value", "Default where it differs"), rows)


def _value(value: str | None) -> Any:
    return ("not set", "dim") if value is None else one_line(value)
