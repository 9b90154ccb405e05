"""What an expression in a table's metadata may make its writers run.

Who can write a table's log chooses what each later writer evaluates: a generated column, a default,
an invariant, a CHECK. Spark would run Java methods, read files and expand `${env:…}` for it. So an
expression goes to Spark only if all it calls are functions that look at nothing but their arguments
(or the clock, and the names of a session, where such a rule may).

The text is read as Spark's lexer reads it, not by another parser: what that takes for a string,
Spark might call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.function_names import CONTEXT, READS_FILES, SCALARS
from lakelog.logstores.keys import STORED_EXPRESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.conf import DeltaConf

_COMPUTING: Final = SCALARS - READS_FILES
_TOKEN: Final = re.compile(
    r"""\s+
    |(?P<comment>--(?:\\\r?\n|[^\r\n])*+|/\*(?:(?!/\*).)*?\*/)
    |(?P<raw>[rR](?:'[^']*+'|"[^"]*+"))
    |(?P<string>[xX]?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"))
    |`(?P<quoted>(?:[^`]|``)*+)`
    |(?P<word>[^\W\d]\w*+)
    |(?P<number>\d\w*+)
    |(?P<odd>['"`$;\\]|/\*)
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)
_GRAMMAR: Final = frozenset(
    re.findall(
        r"\w+",
        "ALL AND ANY ARRAY AS BETWEEN BOTH CASE CAST CHAR CHARACTER DEC DECIMAL DISTINCT DIV "
        "ELSE ESCAPE EXTRACT FOR FROM ILIKE IN INTERVAL IS LEADING LIKE MAP NOT NUMERIC OR "
        "OVERLAY PLACING POSITION REGEXP RLIKE SOME STRUCT SUBSTRING THEN TIME TIMESTAMPADD "
        "TIMESTAMPDIFF TO TRAILING TRIM TRY_CAST VARCHAR WHEN ",
    )
)
"""Words before a parenthesis that call no function by name, or one with a grammar of its own."""
_ALWAYS: Final = frozenset({"SELECT", "WITH"})
_QUERIES: Final = _ALWAYS | {"FROM", "TABLE", "VALUES", "MAP", "REDUCE"}
"""Words that begin a query in parentheses; most may also be the name of a column or a function."""
_AFTER_NAME: Final = frozenset("=<>!,).*/%|&^[")
_IS_NULL: Final = re.compile(r"IS (NOT )?(NULL|TRUE|FALSE|UNKNOWN)\b")
_MORE: Final = frozenset(
    {"SELECT", "TABLE", "UNION", "INTERSECT", "EXCEPT", "MINUS", "USING", "PIVOT", "JOIN"}
)
"""Of these words a query has one if it begins as `values IS NULL` does."""
_QUOTE: Final = re.compile(r"""['"`\\]|/\*""")


def check_stored(sql: str, what: str, conf: DeltaConf, *, context: bool = True) -> None:
    """Refuse to have Spark evaluate what does more than compute, because metadata says so.

    Args:
        sql: the expression, as the metadata has it.
        what: where it stands, for the message: `the CHECK constraint positive of /lake/t`.
        conf: of the table; `spark.lakelog.unsafe.storedExpressions` lets everything pass.
        context: whether it may ask for the time and the session's names (`current_user()`), which a
            generated column may not.

    Raises:
        DeltaAnalysisError: names what it calls. Fields: `sql`, `part`.
    """
    known = _COMPUTING | CONTEXT if context else _COMPUTING
    part = next(_refused(sql, known), None)
    if part is None or conf.read(STORED_EXPRESSIONS):
        return
    raise DeltaAnalysisError(
        f"{what} ({sql}) has {part}, which is not run because a table's metadata says so: only "
        "built-in functions of Spark that compute their result from their arguments are. If you "
        f"trust all who can write the table's log, set {STORED_EXPRESSIONS.name}=true.",
        sql=sql,
        part=part,
    )


def _refused(sql: str, known: frozenset[str]) -> Iterator[str]:
    """What of an expression is not to be run."""
    if "${" in sql:
        yield "a variable ${…}"  # Spark puts its value into strings too
    code = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind == "odd":
            yield f"{match[0]!r} outside a string"
        elif kind == "comment" and _QUOTE.search(match[0], 2):
            yield "a quote in a comment"
        elif kind is not None and kind != "comment":
            code.append((kind, match[kind]))
    for number, (kind, text) in enumerate(code):
        if (kind, text) == ("symbol", "("):
            yield from _called(code, number, known)
        elif kind == "string" and number and code[number - 1][1].upper() == "USING":
            yield "a script"


def _called(code: Sequence[tuple[str, str]], number: int, known: frozenset[str]) -> Iterator[str]:
    """What the parenthesis at an index calls, or asks for."""
    first, second = (code[at] if at < len(code) else ("", "") for at in (number + 1, number + 2))
    if first[0] == "word" and first[1].upper() in _QUERIES:
        function = first[1].lower() in known and second[1] == "("
        is_name = second[1] in _AFTER_NAME or _is_tested_for_null(code[number + 2 :])
        if not function and (first[1].upper() in _ALWAYS or not is_name):
            yield "a subquery"
    kind, name = code[number - 1] if number else ("", "")
    if kind == "string" and name.startswith('"'):
        kind, name = "quoted", name[1:-1]  # to a session with double-quoted identifiers
    if kind != "quoted" and (kind != "word" or name.upper() in _GRAMMAR):
        return
    qualified = number > 1 and code[number - 2] == ("symbol", ".")
    if qualified or name.lower() not in known:
        yield f"the function {'(…).' if qualified else ''}{name}"


def _is_tested_for_null(code: Sequence[tuple[str, str]]) -> bool:
    """Whether what follows a word shows it to be a column's name."""
    words = [text.upper() for kind, text in code if kind == "word"]
    start = " ".join(text.upper() for _, text in code[:3])
    return _IS_NULL.match(start) is not None and _MORE.isdisjoint(words)
