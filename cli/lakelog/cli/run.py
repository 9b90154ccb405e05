"""`lakelog run <program> …`: a program whose Spark sessions are enabled, as it is."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from lakelog.logstores.errors import MissingExtraError
from lakelog.logstores.locations import without_secrets


@click.command(
    short_help="Run a script or a tool whose Spark sessions are enabled.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "module", metavar="MODULE", help="A module, as python -m runs it.")
@click.option("--path", "prints", is_flag=True, help="Print the folder for PYTHONPATH, and end.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(module: str | None, prints: bool, program: tuple[str, ...]) -> None:
    r"""Run PROGRAM with its arguments; each Spark session that it makes goes through lakelog.

    So df.write.format("delta"), spark.sql and `from delta.tables import DeltaTable` work without a
    changed line, and without delta-spark's jar. PROGRAM is a Python script, or any program that
    starts Python: spark-submit, pyspark, jupyter, dbt. Its exit code becomes that of this command.

    \b
        lakelog run job.py --day 2026-11-01
        lakelog run -m jobs.daily
        lakelog run spark-submit --master 'local[2]' job.py

    Where the command line can't be changed (a service, a kernel), one variable does the same:

    \b
        export PYTHONPATH="$(lakelog run --path)"
    """
    folder = _folder()
    if prints:
        click.echo(folder)
        return
    if module is not None:
        argv = [sys.executable, "-m", module, *program]
    elif not program:
        raise click.UsageError("name a script, a program, or a module by -m")
    else:
        argv = [*_started_by(program[0]), *program[1:]]
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([folder, inherited] if inherited else [folder])
    sys.stdout.flush()
    os.execvpe(argv[0], argv, {**os.environ, "PYTHONPATH": path})


def _folder() -> str:
    found = find_spec("lakelog.spark")
    if found is None or find_spec("pyspark") is None:
        raise MissingExtraError("spark", "lakelog run")
    (package,) = found.submodule_search_locations or [""]
    return str(Path(package, "on_start"))


def _started_by(program: str) -> list[str]:
    # Somebody may have given a table's URI.
    named = without_secrets(program)
    if program.endswith(".py"):
        if not Path(program).is_file():
            raise click.UsageError(f"there is no script {named} (in {Path.cwd()})")
        return [sys.executable, program]
    found = shutil.which(program)
    if found is None:
        raise click.UsageError(
            f"there is no program {named} on the PATH; a script ends in .py, and a module is "
            f"named by -m {named}"
        )
    return [found]
