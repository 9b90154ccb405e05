"""`lakelog append <uri>`: append the JSON lines of stdin to a table, as they come."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import heading, line, print_json
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.schema import StructType

_CHUNK = 1 << 20


@click.command(short_help="Append JSON lines from stdin, each exactly once.")
@uri_argument
@conf_options
@click.option(
    "--app-id", required=True, help="Who appends: by it the table knows what it has already."
)
@click.option(
    "--seq-field",
    metavar="COLUMN",
    help="The number of a line, larger in each line. Default: the number of the line, from 0.",
)
@click.option("--every", default="1s", show_default=True, help="The longest wait of a line.")
@click.option(
    "--save-every",
    help="The longest wait of a line until it is saved beside the table, where it is safe.",
)
@click.option(
    "--dead-letter",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where lines go that are no JSON or don't fit the table; without it they end the command.",
)
@click.option(
    "--compact", is_flag=True, help="Put the small files together that this command writes."
)
@click.option(
    "--schema-mode", type=click.Choice(["merge"]), help="Add the columns that only lines have."
)
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    app_id: str,
    seq_field: str | None,
    every: str,
    save_every: str | None,
    dead_letter: str | None,
    compact: bool,
    schema_mode: Any,
    as_json: bool,
) -> None:
    """Append the lines of JSON that come on stdin to the table URI, until stdin ends.

    Lines that the table has already are left out: after a crash, send them again from the start,
    or from wherever is before the last one that arrived.
    """
    from lakelog.core import appender
    from lakelog.core.errors import DeltaAnalysisError

    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    known = skipped = 0
    opened = appender(
        log,
        app_id=app_id,
        every=every,
        save_every=save_every,
        dead_letter=dead_letter,
        compact=compact,
        schema_mode=schema_mode,
    )
    read = _readers(log.snapshot.schema)
    with opened as a:
        first, number, sent = a.last_seq, -1, -1
        for batch in _batches():
            rows: list[dict[str, Any]] = []
            for text in batch:
                known += 1
                try:
                    row = _row(text, known)
                    last = known - 1 if seq_field is None else _number(row, seq_field, known)
                except DeltaAnalysisError as exc:
                    if dead_letter is None:
                        raise
                    # Without a number it has a place: after the line before it.
                    number = known - 1 if seq_field is None else number
                    if number > first or (seq_field is not None and number in (first, -1)):
                        unread = {"line": text.decode(errors="replace")}
                        a.reject(unread, str(exc), seq=max(number, 0))
                    continue
                if last <= number:
                    raise DeltaAnalysisError(
                        f"line {known} of stdin has {seq_field} {last}, after {number}: the "
                        "numbers of --seq-field must be larger in each line"
                    )
                number = last
                if last <= first:
                    skipped += 1
                else:
                    rows.append({name: read(name, value) for name, value in row.items()})
            if number > max(sent, first):
                a.append(rows, seq=number)
                sent = number
    done = a.metrics
    found = scrubber.data(
        {
            "table": log.table,
            "lines": known,
            "appended": done.rows,
            "already_there": skipped,
            "rejected": done.rejected,
            "commits": done.commits,
            "last_seq": a.last_seq,
        }
    )
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    line(
        f"Appended {done.rows} of {known} lines in {done.commits} commits; {skipped} were there "
        f"already, {done.rejected} did not fit. The last number is {a.last_seq}.",
        "green",
    )


def _batches() -> Iterator[list[bytes]]:
    """The lines that are there, as soon as there are any."""
    # Not `read`, which waits until it has so many bytes.
    read: Callable[[int], bytes] = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
    begun: list[bytes] = []
    """The parts of a line whose end has not come: joined once, however long it is."""
    while chunk := read(_CHUNK):
        begun.append(chunk)
        if b"\n" not in chunk:
            continue
        *lines, rest = b"".join(begun).split(b"\n")
        begun = [rest]
        if found := [each for each in lines if each.strip()]:
            yield found
    if (rest := b"".join(begun)).strip():
        yield [rest]


def _readers(schema: StructType) -> Callable[[str, Any], Any]:
    """What reads a value of a line: JSON has no times and no decimals."""
    kinds = {field.name.lower(): str(field.data_type) for field in schema}

    def read(name: str, value: Any) -> Any:
        kind = kinds.get(name.lower(), "")
        try:
            if kind.startswith("decimal") and isinstance(value, int | float | str):
                return Decimal(str(value))
            if kind.startswith("timestamp") and isinstance(value, str):
                found = datetime.fromisoformat(value)
                return value if kind == "timestamp_ntz" and found.tzinfo else found
            if kind == "date" and isinstance(value, str):
                return date.fromisoformat(value)
        except (ValueError, InvalidOperation):
            pass  # the table refuses it, and says so
        return value

    return read


def _row(text: bytes, at: int) -> dict[str, Any]:
    from lakelog.core.errors import DeltaAnalysisError

    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise DeltaAnalysisError(f"line {at} of stdin is not JSON: {exc}") from exc
    if not isinstance(row, dict):
        raise DeltaAnalysisError(f"line {at} of stdin is not an object of JSON: {text[:100]!r}")
    return row


def _number(row: dict[str, Any], field: str, at: int) -> int:
    from lakelog.core.errors import DeltaAnalysisError

    found = row.get(field)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise DeltaAnalysisError(
            f"line {at} of stdin has {field} {found!r}, which is no number of --seq-field: a whole "
            "number from 0 on"
        )
    return found
