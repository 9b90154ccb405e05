"""The command `lakelog`: one program, whose subcommands are modules of this package.

`main` is the entry point. Nothing here needs click before a command is run, so that the base
install, which lacks it, can say what to install.
"""

from __future__ import annotations

import sys

from lakelog.logstores.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit.

    0: fine. 1: something was found. 2: it could not run. 130: Ctrl-C.
    """
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.stderr.write(f"{MissingExtraError('cli', 'the command lakelog')}\n")
        sys.exit(2)
    try:
        from lakelog.cli import startup
        from lakelog.cli.app import app

        startup.is_program = True
        startup.escape_what_others_print()
        app()
    except KeyboardInterrupt:  # before a command had begun
        sys.exit(130)
