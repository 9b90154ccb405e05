"""What the run came to: history, commit events, the comparison with the source, two answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from settings import MONTH_NAMES

if TYPE_CHECKING:
    from rich.console import Console
    from settings import Settings

Counts = dict[int, tuple[int, int]]
_MOST_MEETINGS = 12


def load_events(settings: Settings) -> list[dict[str, Any]]:
    """Every attempt of every process, with the process's name under `who`."""
    events = []
    for path in sorted(settings.events.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            events.append(json.loads(line) | {"who": path.stem.replace("-", " ")})
    return events


def section(console: Console, title: str, text: str = "") -> None:
    """A heading."""
    console.print()
    console.rule(f"[bold]{title}[/]", align="left", style="dim")
    if text:
        console.print(f"[dim]{text}[/]", highlight=False)


def _table(*columns: str) -> Table:
    """A plain table; a column whose name starts with `>` is one of numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for each in columns:
        right = each.startswith(">")
        table.add_column(each.lstrip(">"), justify="right" if right else "left", no_wrap=True)
    return table


def show_history(console: Console, history: list[dict[str, Any]]) -> None:
    section(
        console,
        "History",
        "DeltaTable.forPath(spark, path).history(); read at: the version that the writer had seen",
    )
    table = _table(">version", ">after", "mode", "who and what", ">rows", ">files", ">read at")
    first = history[0]["time"]
    for each in history:
        metrics, mode = each["metrics"] or {}, each["parameters"].get("mode", "")
        overwrite = mode == "Overwrite"
        table.add_row(
            str(each["version"]),
            f"{each['time'] - first:.1f} s",
            mode or each["operation"],
            each["who"] or "",
            f"{int(metrics.get('numOutputRows', 0)):,}",
            f"+{metrics.get('numFiles')}"
            + (f" -{metrics.get('numRemovedFiles')}" if overwrite else ""),
            "" if each["read_version"] is None else str(each["read_version"]),
            style="yellow" if overwrite else None,
        )
    console.print(Padding(table, (1, 2), expand=False))


def show_events(console: Console, events: list[dict[str, Any]], settings: Settings) -> None:
    section(console, "Commit events", f"one line of JSON per attempt in {settings.events}/")
    table = _table(
        "process", ">commits", ">attempts", ">rebased", ">refused", "lock", ">write ms", ">check ms"
    )
    for who in sorted({e["who"] for e in events}):
        mine = [e for e in events if e["who"] == who]
        how = Counter(e["outcome"] for e in mine)
        table.add_row(
            who,
            str(how["committed"]),
            str(len(mine)),
            str(how["conflict-rebased"]),
            str(how["conflict-failed"]),
            ", ".join(sorted({e["lock"] for e in mine})),
            _median(e["write_ms"] for e in mine),
            _median(e["check_ms"] for e in mine if e["winners"]),
        )
    console.print(Padding(table, (1, 2), expand=False))
    reasons = sorted({f"lock {e['lock']}: {e['lock_reason']}" for e in events})
    for each in reasons:
        console.print(f"  [dim]{each}[/]", highlight=False)
    _show_meetings(console, events)


def _show_meetings(console: Console, events: list[dict[str, Any]]) -> None:
    """The attempts that found their version taken."""
    met = [e for e in events if e["winners"] and e["outcome"] != "committed"]
    met.sort(key=lambda e: (e["outcome"] != "conflict-failed", e["version"]))
    if not met:
        console.print("  [dim]No two commits wanted the same version this time.[/]")
        return
    names = {e["txn_id"]: e["who"] for e in events}
    table = _table(">wanted", "by", "taken by", "so")
    for each in met[:_MOST_MEETINGS]:
        winner = names.get(each.get("winner_txn_id", ""), "another")
        rebased = each["outcome"] == "conflict-rebased"
        table.add_row(
            str(each["version"]),
            each["who"],
            f"{winner}",
            "[green]rebased[/]: nothing that it read had changed"
            if rebased
            else f"[yellow]{_condition(each.get('error'))}[/]: ran again",
        )
    console.print(Padding(table, (1, 2), expand=False))
    if len(met) > _MOST_MEETINGS:
        console.print(f"  [dim]… and {len(met) - _MOST_MEETINGS} more[/]")


def _condition(error: str | None) -> str:
    """`DELTA_CONCURRENT_APPEND`, of a message that begins with it in brackets."""
    found = re.match(r"\[(\w+)[.\]]", error or "")
    return found[1] if found else "refused"


def _median(values: Any) -> str:
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:.1f}" if ordered else ""


def show_counts(
    console: Console, source: Counts, spark: Counts, deltalake: Counts | None
) -> list[int]:
    """Rows by month beside the source's.

    Returns:
        The months that differ in rows or in miles flown; empty for an exact match.
    """
    section(console, "Rows by month, against the source", "≠ marks rows or miles that differ")
    table = _table("month", ">source", ">lakelog", ">deltalake", ">miles flown", "")
    wrong = []
    for month in sorted({*source, *spark, *(deltalake or {})}):
        found = [each.get(month, (0, 0)) for each in (source, spark, deltalake) if each is not None]
        same = all(each == found[0] for each in found)
        if not same:
            wrong.append(month)
        cells = [f"{rows:,}" for rows, _ in found] + [""] * (3 - len(found))
        table.add_row(
            MONTH_NAMES[month],
            *cells,
            f"{found[1][1]:,}",
            "[green]=[/]" if same else "[bold red]≠[/]",
        )
    console.print(Padding(table, (1, 2), expand=False))
    return wrong


def show_answers(console: Console, answers: dict[str, list[list[Any]]]) -> None:
    section(console, "Who comes late?", "Spark over the finished table")
    table = _table("airline", ">flights", ">minutes late on arrival", ">more than 30 min")
    for airline, flights, late, share in answers["carriers"]:
        table.add_row(airline, f"{flights:,}", _number(late), f"{_number(share)} %")
    console.print(Padding(table, (1, 2), expand=False))
    section(console, "Is it the weather?", "the hour's weather at the airport of departure")
    table = _table("weather", ">flights", ">minutes late at departure", ">cancelled")
    for weather, flights, late, share in answers["weather"]:
        table.add_row(weather, f"{flights:,}", _number(late), f"{_number(share)} %")
    console.print(Padding(table, (1, 2), expand=False))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def read_with_deltalake(settings: Settings) -> tuple[int, Counts] | None:
    """The table as delta-rs sees it; `None` for a storage that needs keys of its own there."""
    if "://" in settings.table and not settings.table.startswith("file:"):
        return None
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(settings.table)
    # By its own engine: where pyarrow reads for it, threads of pyarrow hold objects of Python, and
    # the one that lets go as the interpreter ends takes the process with it.
    query = "SELECT month, count(*) AS flights, sum(distance) AS miles FROM t GROUP BY month"
    found = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    counts = {int(row["month"]): (row["flights"], row["miles"]) for row in found.to_pylist()}
    return table.version(), counts
