"""Statements of SQL, one after the other: what each of them answers.

It runs in delta-spark's own environment, and so imports nothing of the project's.
"""

from __future__ import annotations

import json
from typing import Any


def said(spark: Any, statements: str) -> list[dict[str, Any]]:
    """The rows of each, or how it fails.

    Args:
        spark: the session.
        statements: a list, as JSON.
    """
    answers: list[dict[str, Any]] = []
    for statement in json.loads(statements):
        try:
            rows = [row.asDict(recursive=True) for row in spark.sql(statement).collect()]
        except Exception as exc:
            java = getattr(exc, "_origin", None) or getattr(exc, "java_exception", None)
            kind = java.getClass().getSimpleName() if java is not None else type(exc).__name__
            answers.append({"error": {"kind": kind, "message": str(exc)[:8000]}})
        else:
            answers.append({"rows": rows})
    return answers
