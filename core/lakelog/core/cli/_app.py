"""The group of subcommands: found by name, imported when they are asked for."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from typing import Any, Final

import click

from lakelog.core.cli._output import error_line
from lakelog.core.errors import DeltaError
from lakelog.logstores.errors import LogStoreError

__all__ = ["COMMANDS", "EXIT_CANNOT_RUN", "EXIT_FINDING", "EXIT_FINE", "EXIT_INTERRUPTED", "app"]

EXIT_FINE: Final = 0
EXIT_FINDING: Final = 1
"""The command ran and found something that needs mending."""
EXIT_CANNOT_RUN: Final = 2
"""Wrong usage, or nothing could be done at all."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C, as shells have it. A reader that closes the pipe is none: `lakelog history … | head`."""

COMMANDS: Final = {
    "checkpoint": "lakelog.core.cli.checkpoint",
    "conformance": "lakelog.core.cli.conformance",
    "conflicts": "lakelog.core.cli.conflicts",
    "describe": "lakelog.core.cli.describe",
    "doctor": "lakelog.core.cli.doctor",
    "files": "lakelog.core.cli.files",
    "history": "lakelog.core.cli.history",
    "manifest": "lakelog.core.cli.manifest",
    "migrate": "lakelog.core.cli.migrate",
}
"""Name -> module, which has the click command as `command`."""


class _LazyGroup(click.Group):
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
            # Whoever reads has seen enough. What is buffered goes nowhere, without a word.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(EXIT_FINE)
        else:
            return found

    def main(self, *args: Any, **kwargs: Any) -> Any:
        # What the layers below raise on purpose is told in one line, not as a traceback.
        try:
            return super().main(*args, **kwargs)
        except (LogStoreError, DeltaError, OSError) as error:
            error_line(_told(error))
            sys.exit(EXIT_CANNOT_RUN)


def _told(error: BaseException) -> str:
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
    epilog="Exit codes: 0 fine, 1 something was found, 2 wrong usage or the command can't run, "
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
    """ACID Delta tables on any storage: check a storage, look into a table, mend a setting."""
