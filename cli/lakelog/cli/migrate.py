"""`lakelog migrate <uri>`: move a table's log between a DynamoDB table and conditional puts."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Final, Literal

import click

from lakelog.cli.app import EXIT_FINDING
from lakelog.cli.output import error_line, heading, line, print_json
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from lakelog.logstores.s3_dynamodb import Migration

_NEXT: Final = {
    "conditional": (
        "From now on write with lakelog's default store for S3 (S3ConditionalLogStore): unset "
        "spark.delta.logStore.*. Writers that still use the DynamoDB table stop with an error; "
        "so do Delta's own readers that use it. Leave the table's rows where they are."
    ),
    "dynamodb": (
        "From now on every writer must use the DynamoDB table: spark.delta.logStore.s3a.impl="
        "io.delta.storage.S3DynamoDBLogStore, with one tableName, region and ddb.ttl for all. "
        "Nothing stops writers of conditional puts that are still running: stop them all."
    ),
}


@click.command(short_help="Move a table's log to conditional puts, or to DynamoDB.")
@uri_argument
@click.option(
    "--to",
    type=click.Choice(["conditional", "dynamodb"]),
    required=True,
    help="What decides commits from now on: S3's conditional put, or rows of a DynamoDB table.",
)
@click.option(
    "--keep-files",
    is_flag=True,
    help="Where a commit file differs from its row, keep the file.",
)
@conf_options
@json_option
def command(
    uri: str,
    to: Literal["conditional", "dynamodb"],
    keep_files: bool,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Move the log of the table URI between a DynamoDB table and conditional puts.

    Finishes half-finished commits, checks that the log is whole, and leaves marks that
    stop writers of the old kind. Takes the conf of S3DynamoDBLogStore's writers, and the URI
    in their spelling (s3a://…): it is the key of the rows. May be run again.

    Before moving to dynamodb, stop all writers of conditional puts.

    Exits with 1 if the log or the table's rows have to be fixed first; then nothing was moved.
    """
    from lakelog.logstores.s3_dynamodb import (
        LockTableError,
        LostDraftError,
        TableBypassedError,
        migrate,
    )

    scrubber = Scrubber(conf)
    try:
        done = migrate(uri, conf, to=to, keep_files=keep_files)
    except (LockTableError, LostDraftError, TableBypassedError) as error:
        reason = scrubber.text(str(error))
        if as_json:
            print_json({"table": scrubber.text(uri), "to": to, "moved": False, "reason": reason})
        else:
            error_line(reason)
        sys.exit(EXIT_FINDING)
    except LogStoreError:
        raise
    except ValueError as error:
        raise click.UsageError(scrubber.text(str(error))) from None
    if as_json:
        print_json(scrubber.data({**dataclasses.asdict(done), "moved": True}))
    else:
        _print(done, scrubber)


def _print(done: Migration, scrubber: Scrubber) -> None:
    heading(f"lakelog migrate {scrubber.text(done.table)} --to {done.to}")
    for step in done.steps or ("nothing was left to do",):
        line(f"  {scrubber.text(step)}")
    line(f"The newest version is {done.version}.", "green")
    line(_NEXT[done.to])
