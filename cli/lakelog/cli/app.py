"""The group of subcommands: found by name, imported when they are asked for."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from typing import Any, Final

import click

from lakelog.cli.output import error_line
from lakelog.core.engine.shown import printable
from lakelog.core.errors import DeltaError
from lakelog.logstores.errors import LogStoreError

EXIT_FINE: Final = 0
EXIT_FINDING: Final = 1
"""The command ran and found something that needs fixing."""
EXIT_CANNOT_RUN: Final = 2
"""Wrong usage, or nothing could be done at all."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C, as shells have it. A closed pipe does not count: `lakelog history … | head`."""

COMMANDS: Final = {
    "alter": "lakelog.cli.alter",
    "append": "lakelog.cli.append",
    "checkpoint": "lakelog.cli.checkpoint",
    "clone": "lakelog.cli.clone",
    "conformance": "lakelog.cli.conformance",
    "conflicts": "lakelog.cli.conflicts.conflicts_command",
    "convert": "lakelog.cli.convert",
    "delete": "lakelog.cli.row_changes.delete",
    "describe": "lakelog.cli.describe.describe_command",
    "diff": "lakelog.cli.diff.diff_command",
    "doctor": "lakelog.cli.doctor.doctor_command",
    "drop": "lakelog.cli.drop",
    "files": "lakelog.cli.files.files_command",
    "history": "lakelog.cli.history",
    "manifest": "lakelog.cli.manifest",
    "merge": "lakelog.cli.merge",
    "migrate": "lakelog.cli.migrate",
    "optimize": "lakelog.cli.optimize",
    "properties": "lakelog.cli.properties",
    "rename": "lakelog.cli.rename",
    "repair": "lakelog.cli.repair",
    "report": "lakelog.cli.report.report_command",
    "restore": "lakelog.cli.restore",
    "run": "lakelog.cli.run",
    "sample": "lakelog.cli.sample.sample_command",
    "schema": "lakelog.cli.schema.schema_command",
    "serve": "lakelog.cli.serve",
    "ui": "lakelog.cli.ui.ui_command",
    "update": "lakelog.cli.row_changes.update",
    "vacuum": "lakelog.cli.vacuum",
    "write": "lakelog.cli.write",
}
"""Name -> module, which has the click command as `command`."""

SECTIONS: Final = {
    "Look at a table": {
        "describe": "Schema, properties, protocol, size and storage of a table.",
        "diff": "What differs between two versions of a table.",
        "files": "The live files of a version, or a summary of them.",
        "history": "The commits of a table, newest first.",
        "report": "A table as one HTML page: growth, files, columns, advice.",
        "sample": "Some rows of a table.",
        "schema": "The columns of a table, as a tree, as SQL or as JSON.",
        "ui": "Tables in the browser: lists, growth, versions, rows, conflicts.",
    },
    "Change a table": {
        "alter": "Change columns, constraints and clustering.",
        "append": "Append JSON lines from stdin, each exactly once.",
        "delete": "Delete the rows that match a condition.",
        "merge": "Update, insert and delete rows by those of files.",
        "properties": "Show, set and unset the properties of a table.",
        "update": "Give columns new values in the rows that match.",
        "write": "Write the rows of Parquet, CSV or JSON files.",
    },
    "Maintain a table": {
        "checkpoint": "Write a checkpoint, and read it back.",
        "clone": "Make a table of another one, with or without its files.",
        "convert": "Make a table of a folder of Parquet files.",
        "drop": "Remove a table from its catalog.",
        "manifest": "Write symlink manifests, for Presto, Athena and the like.",
        "optimize": "Put small files together, or rows in order.",
        "rename": "Give a table of a catalog another name.",
        "repair": "Find what is broken in a table, and mend it.",
        "restore": "Go back to an older version.",
        "vacuum": "Delete files that no version needs.",
    },
    "Storages and writers": {
        "conflicts": "Which jobs lose commits to which, and how to separate them.",
        "conformance": "Run the whole conformance kit on a storage.",
        "doctor": "Probe a storage and its settings; say what to fix.",
        "migrate": "Move a table's log to conditional puts, or to DynamoDB.",
        "run": "Run a script or a tool whose Spark sessions are enabled.",
        "serve": "Commit for others: delta-spark on this host, appends of other hosts.",
    },
}
"""Heading -> command -> its short help, so that `--help` imports none of them."""


class _LazyGroup(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = {name for section in SECTIONS.values() for name in section}
        others = {
            name: command.get_short_help_str(limit=80)
            for name in self.list_commands(ctx)
            if name not in listed and (command := self.get_command(ctx, name)) is not None
        }
        width = max(map(len, COMMANDS))
        for heading, section in {**SECTIONS, "Others": others}.items():
            if section:
                with formatter.section(heading):
                    formatter.write_dl(
                        [(name.ljust(width), text) for name, text in section.items()]
                    )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
        if near and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        # Here and not in `main`, where click has made an exit code 1 of both.
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            error_line("interrupted")
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            # The reader has seen enough: drop what is buffered, silently.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(EXIT_FINE)
        except click.ClickException as error:
            # It may quote a table, and click prints it as it is.
            vars(error)["message"] = printable(error.message, line_breaks=True)
            raise
        else:
            return found

    def main(self, *args: Any, **kwargs: Any) -> Any:
        # What the layers below raise on purpose is reported in one line, not as a traceback.
        try:
            return super().main(*args, **kwargs)
        except (LogStoreError, DeltaError, OSError) as error:
            error_line(_message_of(error))
            sys.exit(EXIT_CANNOT_RUN)


def _message_of(error: BaseException) -> str:
    return "\n".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"lakelog {version('lakelog')}")
    ctx.exit()


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 problems found, 2 wrong usage or the command can't run, "
    "130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def app() -> None:
    """ACID Delta tables on any storage: read, change and maintain a table, check a storage."""
