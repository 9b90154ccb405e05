"""Run the benchmarks and put their tables into RESULTS.md.

    python benchmarks/run.py [PART …] [--folder DIR] [--rows N] [--rounds N] [--tuned]

The parts are core, fresh, s3, bare, small, writers, appends, memory, opening, scale, many,
planning, growth, spark, commands, alone, tpch, streams, sql, bridge and catalog. Each replaces its
own section of the file and leaves the others as they were.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import commits
import imports
import races
from measure import HEADER, Measurement

if TYPE_CHECKING:
    from growth import Growth

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
INTRODUCTION = """# Results

Ratios of medians from one run, lakelog's figure over the peer's; the rows say what was reached.
Absolute times belong to the machine named, and carry over to no other. Each section names the day
and the commit of its run.
"""


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {datetime.now(UTC).date()}, "
        f"load average {os.getloadavg()[0]:.1f} at the end, commit {_commit()}"
    )


def _commit() -> str:
    argv = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _section(name: str, command: str, measurements: list[Measurement], prose: list[str]) -> str:
    rows = [m.row() for m in measurements]
    parts = [f"`{command}` on {_machine()}.", *prose, "\n".join([HEADER, *rows])]
    return f"<!-- {name} -->\n" + "\n\n".join(parts) + f"\n<!-- end of {name} -->\n"


def _plain(name: str, parts: list[str]) -> str:
    return f"<!-- {name} -->\n" + "\n\n".join(parts) + f"\n<!-- end of {name} -->\n"


def _growth_section(command: str, grown: list[Growth]) -> str:
    import growth

    about = (
        "CPU time of the process. Growth is what the second doubling of n adds, as a multiple of "
        "what the first one added: 2 is linear, 2.2 is n·log n, 4 is quadratic; "
        f"{growth.LIMIT} is the most that passes, unless four times the table costs less than "
        "four times as much: what the doublings add to a cost that hardly grows is chance. Without "
        f"a figure: done within {1000 * growth.TOO_QUICK:.0f} ms at 4n."
    )
    parts = [f"`{command}` on {_machine()}.", about, growth.summary(grown)]
    return "<!-- growth -->\n" + "\n\n".join(parts) + "\n<!-- end of growth -->\n"


def _fewer(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """What is asked for of rounds, warm-ups and peers, and how that is written."""
    few: dict[str, Any] = {}
    said = ""
    if args.rounds:
        few["rounds"] = args.rounds
        said += f" --rounds {args.rounds}"
    if args.warm_ups is not None:
        few["warm_ups"] = args.warm_ups
        said += f" --warm-ups {args.warm_ups}"
    if args.tuned:
        few["peers"] = ("tuned",)
        said += " --tuned"
    return few, said


def _publish(name: str, section: str) -> None:
    text = RESULTS.read_text() if RESULTS.exists() else INTRODUCTION
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->\n", re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: section, text)
    else:
        titles = {
            "core": "## Commits",
            "fresh": "## A fresh process",
            "s3": "## Commits on S3",
            "bare": "## One commit against a bare put",
            "writers": "## Many writers",
            "appends": "## Rows as they come",
            "small": "## Small writes",
            "memory": "## Memory of streams",
            "opening": "## Opening over a network",
            "scale": "## Tables of a million files",
            "many": "## Logs of very many commits",
            "planning": "## Planning against delta-spark",
            "growth": "## Growth",
            "spark": "## Spark",
            "commands": "## Commands against delta-spark",
            "alone": "## Commands without Spark",
            "tpch": "## TPC-H",
            "streams": "## Streams",
            "sql": "## Statements that are not lakelog's",
            "bridge": "## The bridge to delta-spark",
            "catalog": "## Commits through Unity Catalog",
        }
        text += f"\n{titles[name]}\n\n{section}"
    RESULTS.write_text(text)
    print(section)


def main() -> int:
    """Run what was asked for; the exit code says whether all targets were reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        default=[
            "core",
            "fresh",
            "s3",
            "bare",
            "small",
            "writers",
            "appends",
            "memory",
            "opening",
            "scale",
            "many",
            "planning",
            "growth",
            "spark",
            "commands",
            "alone",
            "tpch",
            "streams",
            "sql",
            "bridge",
            "catalog",
        ],
    )
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".cache" / "bench")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, help="of streams (2), commands and tpch (3)")
    parser.add_argument("--warm-ups", type=int, help="of commands and tpch, before the rounds")
    parser.add_argument("--tuned", action="store_true", help="of the same: only the tuned peer")
    parser.add_argument("--factor", type=int, default=32, help="growth: times the tests' sizes")
    parser.add_argument("--times", type=int, default=3, help="growth: runs, of which the least")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE.parent / "tests"))
    missed = 0
    if "core" in args.parts:
        print("core: commits, races, import", flush=True)
        found = [*commits.measure(args.folder), *races.measure(args.folder)]
        prose = [imports.measure()]
        _publish("core", _section("core", "python benchmarks/run.py core", found, prose))
        missed += sum(not m.reached for m in found)
    if "fresh" in args.parts:
        import fresh

        print("fresh: processes that open a table and end", flush=True)
        table, reached = fresh.measure(args.folder)
        parts = [f"`python benchmarks/run.py fresh` on {_machine()}.", fresh.ABOUT, table]
        _publish("fresh", _plain("fresh", parts))
        missed += not reached
    if "bare" in args.parts:
        import bare

        print("bare: commits against puts by the SDKs", flush=True)
        found = bare.measure()
        _publish("bare", _section("bare", "python benchmarks/run.py bare", found, []))
        missed += sum(not m.reached for m in found)
    if "writers" in args.parts:
        import writers

        print("writers: many of them at one table", flush=True)
        parts = []
        for about, group in writers.ABOUT.items():
            rows = []
            for place in writers.PLACES:
                # Servers of one process are what 64 writers of the others would measure.
                count = [1, 16, 64] if place in ("local", "minio") else [1, 16]
                for row in writers.curves([place], count, [0, 30, 100], 5, group):
                    print(row, flush=True)
                    rows.append(row)
            parts += [about, "\n".join([writers.HEADER, *rows])]
        parts.insert(0, f"`python benchmarks/run.py writers` on {_machine()}.")
        _publish("writers", _plain("writers", parts))
        subprocess.run(
            [sys.executable, str(HERE.parent / "scripts" / "docs_pictures.py")], check=True
        )
    if "appends" in args.parts:
        import appends

        print("appends: rows in tens, beside DuckLake and deltalake", flush=True)
        tables = appends.measure(args.folder)
        parts = [f"`python benchmarks/run.py appends` on {_machine()}.", appends.ABOUT, *tables]
        _publish("appends", _plain("appends", parts))
    if "s3" in args.parts:
        import object_store

        print("s3: commits and races on a MinIO", flush=True)
        found = object_store.measure()
        _publish("s3", _section("s3", "python benchmarks/run.py s3", found, []))
        missed += sum(not m.reached for m in found)
    if "small" in args.parts:
        import small

        print("small: commits with what follows them, appends, partitions", flush=True)
        found = list(small.measure(args.folder))
        _publish("small", _section("small", "python benchmarks/run.py small", found, []))
        missed += sum(not m.reached for m in found)
    if "memory" in args.parts:
        import memory

        print("memory: a stream of batches in and out", flush=True)
        found = memory.measure(args.folder)
        _publish("memory", _section("memory", "python benchmarks/run.py memory", found, []))
        missed += sum(not m.reached for m in found)
    if "opening" in args.parts:
        import opening

        print("opening: tables that are 30 ms away", flush=True)
        found = opening.measure()
        _publish("opening", _section("opening", "python benchmarks/run.py opening", found, []))
        missed += sum(not m.reached for m in found)
    if "scale" in args.parts:
        import scale

        print("scale: a table of a million files", flush=True)
        found = scale.measure(args.folder)
        _publish("scale", _section("scale", "python benchmarks/run.py scale", found, []))
        missed += sum(not m.reached for m in found)
    if "many" in args.parts:
        import many_commits

        print("many: ten thousand commits, a thousand winners", flush=True)
        found = many_commits.measure(args.folder)
        _publish("many", _section("many", "python benchmarks/run.py many", found, []))
        missed += sum(not m.reached for m in found)
    if "sql" in args.parts:
        import sql_front

        print("sql: what is added to statements that are not lakelog's", flush=True)
        table, reached = sql_front.measure()
        about = "CPU time of the process, Spark left out; its catalog was asked once for each name."
        said = f"`python benchmarks/run.py sql` on {_machine()}."
        _publish("sql", _plain("sql", [said, about, table]))
        missed += not reached
    if "bridge" in args.parts:
        import bridge

        print("bridge: commits and listings of a JVM by lakelog's stores", flush=True)
        table, reached = bridge.measure(args.folder)
        said = f"`python benchmarks/run.py bridge` on {_machine()}."
        _publish("bridge", _plain("bridge", [said, bridge.ABOUT, table]))
        missed += not reached
    if "catalog" in args.parts:
        import catalog

        print("catalog: commits through Unity Catalog, against delta-spark", flush=True)
        found = catalog.measure(args.folder)
        _publish("catalog", _section("catalog", "python benchmarks/run.py catalog", found, []))
        missed += sum(not m.reached for m in found)
    if "planning" in args.parts:
        import planning

        from support import delta_spark

        print("planning: one partition of a million files, against delta-spark", flush=True)
        peer = delta_spark.installed()
        jars = ",".join(map(str, peer.jars))
        found, versions = planning.measure(args.folder, str(peer.python), jars)
        command = "python benchmarks/run.py planning"
        _publish("planning", _section("planning", command, found, [versions]))
        missed += sum(not m.reached for m in found)
    if "growth" in args.parts:
        import growth

        print("growth: every operation on tables of n, 2n and 4n", flush=True)
        grown = []
        for each in growth.measure(args.folder, args.factor, args.times):
            print(each.row(), flush=True)
            grown.append(each)
        command = f"python benchmarks/run.py growth --factor {args.factor} --times {args.times}"
        _publish("growth", _growth_section(command, grown))
        missed += sum(each.too_fast for each in grown)
    if "spark" in args.parts:
        import versus_delta

        from support import delta_spark

        print("spark: writes and scans against delta-spark", flush=True)
        peer = delta_spark.installed()
        found, versions = versus_delta.measure(
            args.folder, str(peer.python), ",".join(map(str, peer.jars)), args.rows
        )
        _publish("spark", _section("spark", "python benchmarks/run.py spark", found, [versions]))
        missed += sum(not m.reached for m in found)
    if "commands" in args.parts:
        import commands

        from support import delta_spark

        print("commands: DELETE, UPDATE, MERGE, OPTIMIZE, VACUUM against delta-spark", flush=True)
        peer = delta_spark.installed()
        jars = ",".join(map(str, peer.jars))
        few, said = _fewer(args)
        found, versions = commands.measure(args.folder, str(peer.python), jars, args.rows, **few)
        command = f"python benchmarks/run.py commands{said}"
        _publish("commands", _section("commands", command, found, [versions]))
        missed += sum(not m.reached for m in found)
    if "alone" in args.parts:
        import alone

        print("alone: MERGE and OPTIMIZE without Spark, against deltalake", flush=True)
        found = alone.measure(args.folder, args.rows)
        _publish("alone", _section("alone", "python benchmarks/run.py alone", found, []))
        missed += sum(not m.reached for m in found)
    if "tpch" in args.parts:
        import tpch

        from support import delta_spark

        print("tpch: twenty-two queries against delta-spark", flush=True)
        peer = delta_spark.installed()
        jars = ",".join(map(str, peer.jars))
        few, said = _fewer(args)
        found, versions = tpch.measure(args.folder, str(peer.python), jars, **few)
        _publish(
            "tpch", _section("tpch", f"python benchmarks/run.py tpch{said}", found, [versions])
        )
        missed += sum(not m.reached for m in found)
    if "streams" in args.parts:
        import streams

        from support import delta_spark

        print("streams: into tables and out of them, against delta-spark", flush=True)
        peer = delta_spark.installed()
        jars = ",".join(map(str, peer.jars))
        peers = ("tuned",) if args.tuned else ("tuned", "delta")
        rounds = args.rounds or 2
        found, versions = streams.measure(args.folder, str(peer.python), jars, rounds, peers=peers)
        command = f"python benchmarks/run.py streams --rounds {rounds}"
        command += " --tuned" if args.tuned else ""
        _publish("streams", _section("streams", command, found, [versions]))
        missed += sum(not m.reached for m in found)
    print(f"{missed} target(s) missed" if missed else "all targets reached")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
