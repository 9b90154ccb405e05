"""OPTIMIZE, REORG, VACUUM, FSCK and GENERATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog import core
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.table.optimization import optimized_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext

_PATH = "path string"
_DEFECTS = "kind string, path string, problem string, mend string, mended boolean"


def optimize(s: CommandContext) -> Command | None:
    """`OPTIMIZE t [FULL] [WHERE condition] [ZORDER BY (columns)]`."""
    c = s.cursor
    c.need("OPTIMIZE")
    place = s.ours("OPTIMIZE")
    full = c.took("FULL")
    where = c.expression("ZORDER", what="a condition").text if c.took("WHERE") else None
    columns: list[str] | None = None
    if c.took("ZORDER"):
        c.need("BY")
        wrapped = c.took("(")
        columns = [c.name().text]
        while c.took(","):
            columns.append(c.name().text)
        if wrapped:
            c.need(")")
    c.end()

    def run() -> DataFrame:
        log = s.log(place)
        done = core.optimize(log, where, z_order_by=columns, full=full)
        return optimized_row(s.spark, log, done)

    return run


def reorg(s: CommandContext) -> Command | None:
    """`REORG TABLE t [WHERE condition] APPLY (PURGE)`."""
    c = s.cursor
    c.need("REORG", "TABLE")
    place = s.ours("REORG TABLE")
    where = c.expression("APPLY", what="a condition").text if c.took("WHERE") else None
    c.need("APPLY", "(")
    if c.word == "UPGRADE":
        raise s.not_supported("REORG … APPLY (UPGRADE UNIFORM …), which writes Iceberg's metadata,")
    c.need("PURGE", ")")
    c.end()

    def run() -> DataFrame:
        log = s.log(place)
        return optimized_row(s.spark, log, core.purge(log, where))

    return run


def vacuum(s: CommandContext) -> Command | None:
    """`VACUUM t [LITE|FULL] [USING INVENTORY t2] [RETAIN n HOURS] [DRY RUN]`, in any order."""
    c = s.cursor
    c.need("VACUUM")
    place = s.ours("VACUUM")
    hours: str | None = None
    inventory: str | None = None
    mode, dry_run, seen = "FULL", False, set()
    while c.token is not None:
        first, word = c.at, c.need_any("RETAIN", "DRY", "LITE", "FULL", "USING")
        kind = "mode" if word in ("LITE", "FULL") else word
        if kind in seen:
            raise c.error(f"[PARSE_SYNTAX_ERROR] {word} is given twice", first)
        seen.add(kind)
        if word == "RETAIN":
            hours = c.expression("HOURS", what="a number of hours").text
            c.need("HOURS")
        elif word == "DRY":
            c.need("RUN")
            dry_run = True
        elif word == "USING":
            c.need("INVENTORY")
            begin = c.at
            if c.word == "(":
                c.skip_group()
            else:
                c.name()
            inventory = c.text(begin, c.at)
        else:
            mode = word
    c.end()

    def run() -> DataFrame:
        table = s.table(place)
        retained = None if hours is None else float(s.runner.value(hours))
        listed = (
            None if inventory is None else s.runner.query(Statement(f"SELECT * FROM {inventory}"))
        )
        found = table.vacuum(retained, dryRun=dry_run, mode=mode, inventory=listed)
        return found if dry_run else s.answer(_PATH, (table.log.table,))

    return run


def fsck(s: CommandContext) -> Command | None:
    """`FSCK REPAIR TABLE t [DRY RUN]`."""
    c = s.cursor
    c.need("FSCK", "REPAIR", "TABLE")
    place = s.ours("FSCK REPAIR TABLE")
    dry_run = c.took("DRY")
    if dry_run:
        c.need("RUN")
    c.end()

    def run() -> DataFrame:
        done = core.repair(s.log(place), dry_run=dry_run)
        left = set(done.left)
        rows = [(d.kind, d.path, d.problem, d.mend, d not in left) for d in done.defects]
        return s.answer(_DEFECTS, *rows)

    return run


def generate(s: CommandContext) -> Command | None:
    """`GENERATE symlink_format_manifest FOR TABLE t`."""
    c = s.cursor
    c.need("GENERATE")
    mode = c.identifier()
    c.need("FOR", "TABLE")
    place = s.ours("GENERATE")
    c.end()

    def run() -> DataFrame:
        s.table(place).generate(mode)
        return s.nothing()

    return run
