"""Questions before what can't be taken back easily: asked on a terminal, answered by `--yes`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lakelog.cli.app import EXIT_CANNOT_RUN
from lakelog.cli.output import ask, error_line

if TYPE_CHECKING:
    from lakelog.cli.shared_options import Option

yes_option: Option = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
"""Answers the question, for scripts. Passed on as `yes`."""


def confirm(what: str) -> None:
    """Ask whether to go on; return if the answer is yes, and end the program otherwise.

    Args:
        what: what would be done, as a question: `Delete all 5 rows of /lake/t?`.

    Raises:
        click.UsageError: there is no one to ask, because standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{what} Standard input is not a terminal, so I can't ask: pass --yes to confirm."
        )
    ask(f"{what} [y/N]")
    # click's own question makes an exit code 1 of Ctrl-C.
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        error_line("not confirmed: nothing was changed")
        sys.exit(EXIT_CANNOT_RUN)
