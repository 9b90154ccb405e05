"""Mark the sections of RESULTS.md whose figures are older than the code that they measure.

    python benchmarks/freshness.py            # rewrites the marks; a test asks for it
    python benchmarks/freshness.py --list     # which sections are older, and nothing else

Each section ends in a digest of the code that was measured: of its syntax trees, without
docstrings, so that neither comments nor words nor the layout make figures old. `run.py` writes it.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
OLDER = "**Older than the code that it measures**, which has changed since."
_ALONE = ("core", "logstores")
_ON_SPARK = ("core", "logstores", "spark")
MEASURED = {
    "spark": _ON_SPARK,
    "core": _ALONE,
    "fresh": (*_ALONE, "cli"),
    "small": _ALONE,
    "memory": _ALONE,
    "writers": _ALONE,
    "bare": _ALONE,
    "s3": _ALONE,
    "scale": _ALONE,
    "planning": _ON_SPARK,
    "many": _ALONE,
    "growth": _ON_SPARK,
    "opening": _ALONE,
    "commands": _ON_SPARK,
    "alone": _ALONE,
    "sql": _ON_SPARK,
    "tpch": _ON_SPARK,
    "streams": _ON_SPARK,
    "bridge": ("logstores", "java"),
}
"""Section -> the roots of what it measures."""
_WORKERS = "spark/lakelog/spark/workers"
_BY_OUR_PYTHON = frozenset({"spark", "commands", "streams"})
# A read by Spark takes the reader of options from there, too.
_READ_BY_SPARK = frozenset(name for name, roots in MEASURED.items() if roots == _ON_SPARK)
_MERGING = frozenset({"commands", "growth"})
ASKED_FOR = {
    "core/lakelog/core/streaming/": _READ_BY_SPARK,
    "core/lakelog/core/transaction/group.py": frozenset({"writers", "growth"}),
    "logstores/lakelog/logstores/azure/": frozenset({"writers", "bare"}),
    "logstores/lakelog/logstores/gcs/": frozenset({"writers", "bare"}),
    "logstores/lakelog/logstores/hdfs/": frozenset(),
    "logstores/lakelog/logstores/s3/": frozenset({"fresh", "writers", "bare", "s3", "opening"}),
    "logstores/lakelog/logstores/s3_dynamodb/": frozenset(),
    # Looks at each key of a conf once in a process: 0.3 ms for ten of them.
    "logstores/lakelog/logstores/known_keys.py": frozenset(),
    "spark/lakelog/spark/dml/conditions.py": _MERGING,
    "spark/lakelog/spark/dml/rows.py": _MERGING,
    f"{_WORKERS}/daemon.py": _BY_OUR_PYTHON,
    f"{_WORKERS}/interpreter.py": _BY_OUR_PYTHON,
}
"""Files and folders that run only where they are asked for, and the sections that ask, if any."""
SECTION = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- end of \1 -->\n", re.DOTALL)
_DIGEST = re.compile(r"<!-- of (\w+) -->\n")


def digest(section: str) -> str:
    """What the code that a section measures looks like now."""
    whole = hashlib.sha256()
    for root in MEASURED[section]:
        whole.update(_of_root(root, _unused(section)).encode())
    return whole.hexdigest()[:12]


def _unused(section: str) -> frozenset[str]:
    return frozenset(file for file, asking in ASKED_FOR.items() if section not in asking)


@functools.cache
def _of_root(root: str, unused: frozenset[str]) -> str:
    found = hashlib.sha256()
    folder = HERE.parent / root
    for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.java"))):
        if path.relative_to(HERE.parent).as_posix().startswith(tuple(unused)):
            continue
        text = path.read_text()
        code = bare(text) if path.suffix == ".py" else text
        found.update(f"{path.relative_to(folder).as_posix()} {code}\n".encode())
    return found.hexdigest()


def bare(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # A text that stands alone does nothing, wherever it is.
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def stamp(section: str) -> str:
    """The line that a section which was measured just now ends in."""
    return f"<!-- of {digest(section)} -->\n"


def older(text: str) -> list[str]:
    """The sections whose code has changed since; of those without a digest nobody knows."""
    found = []
    for name, body in SECTION.findall(text):
        known = _DIGEST.search(body)
        if known is None or known[1] != digest(name):
            found.append(name)
    return found


def marked(text: str) -> str:
    """The results, with a mark at each section that is older, and at no other."""
    stale = set(older(text))

    def mark(section: re.Match[str]) -> str:
        name, body = section[1], section[2].replace(f"{OLDER}\n\n", "")
        said = f"{OLDER}\n\n" if name in stale else ""
        return f"<!-- {name} -->\n{said}{body}<!-- end of {name} -->\n"

    return SECTION.sub(mark, text)


def main() -> int:
    """Rewrite the marks, or list what is older."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the sections, and write nothing")
    text = RESULTS.read_text()
    if parser.parse_args().list:
        print("\n".join(older(text)))
    else:
        RESULTS.write_text(marked(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
