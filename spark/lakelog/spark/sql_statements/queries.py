"""Queries: their tables of ours become views, and the rest of the text is left as it is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import AnalysisException, ParseException

from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.spark.reading.reader import DeltaReader, SkippingReader
from lakelog.spark.sql_statements.aggregates import answer, wanted
from lakelog.spark.sql_statements.placed_errors import placed
from lakelog.spark.sql_statements.places import opened, path_in, place_of
from lakelog.spark.sql_statements.references import references
from lakelog.spark.sql_statements.tokens import tokenize
from lakelog.spark.sql_statements.views import refuse_lasting
from lakelog.spark.types.paths import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.parameters import Parameters
    from lakelog.spark.sql_statements.places import Place
    from lakelog.spark.sql_statements.references import Reference
    from lakelog.spark.sql_statements.tokens import Token

__all__ = ["QueryRunner"]

_BY_PATH = "table_changes_by_path"
_BOUNDS = ("starting", "ending")


class QueryRunner:
    """Runs a text that is, or has, a query."""

    def __init__(self, spark: SparkSession, plain: Callable[..., DataFrame]) -> None:
        """Prepare.

        Args:
            spark: the session.
            plain: Spark's own `sql`.
        """
        self._spark = spark
        self._plain = plain
        self._frames: dict[Any, DataFrame] = {}
        self._views: list[str] = []
        self._wholes: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Name as written -> with its catalog and database."""

    def run(
        self,
        sql: str,
        tokens: Sequence[Token],
        parameters: Parameters,
        kwargs: dict[str, Any],
        otherwise: Callable[[], DataFrame] | None = None,
    ) -> DataFrame:
        """Run a statement with the tables of ours that its queries name.

        Args:
            sql: the statement.
            tokens: its tokens.
            parameters: its parameters.
            kwargs: what `{…}` in it stands for.
            otherwise: what to do if there is none; to let Spark run it, by default.
        """
        tables_named = references(tokens)
        if otherwise is not None and len(tables_named) == 1 and not kwargs:
            answered = self._answered(tokens, tables_named[0], parameters)
            if answered is not None:
                return answered
        found = [
            (each, frame)
            for each in tables_named
            if (frame := self._frame(each, parameters)) is not None
        ]
        if not found:
            if otherwise is not None:
                return otherwise()
            return self._plain(sql, parameters.args, **kwargs)
        refuse_lasting(sql, tokens, found[0][0])
        frames = {f"lakelog_{number}": frame for number, (_, frame) in enumerate(found)}
        names = [f"{{{name}}}" for name in frames]
        tables = [each for each, _ in found]
        known = [self._names(each) for each in tables]
        edits = _edits(tokens, tables, names, known)
        text = _rewritten(sql, edits, escape=not kwargs)
        args = parameters.remaining([(each.first, each.end) for each, _ in found])
        try:
            return self._plain(text, args, **kwargs, **frames)
        except ParseException:
            # Its places are those of the rewritten text. The error of the text as written, which
            # Spark parses before it looks for a table, has the right ones.
            self._plain(sql, parameters.args, **kwargs)
            raise
        except AnalysisException as exc:
            if kwargs:
                raise
            raise placed(exc, sql, edits) from exc

    def _names(self, reference: Reference) -> list[tuple[str, ...]]:
        """What columns of a table without an alias may have before them: `t`, `db.t` and so on."""
        whole = self._wholes.get(reference.parts, ())
        return [reference.parts, *([whole, whole[1:]] if len(whole) > 1 else [])]

    def query(self, text: str) -> DataFrame:
        """Run the text of a query that has no parameters."""
        from lakelog.spark.sql_statements.parameters import Parameters

        tokens = tokenize(text)
        return self.run(text, tokens, Parameters(self._spark, text, tokens), {})

    def expression(self, text: str) -> str:
        """An expression whose queries read temporary views of our tables, until `close`.

        Args:
            text: the expression, without parameters.
        """
        from lakelog.spark.sql_statements.parameters import Parameters

        tokens = tokenize(text)
        parameters = Parameters(self._spark, text, tokens)
        found: list[Reference] = []
        names: list[str] = []
        for each in references(tokens):
            frame = self._frame(each, parameters)
            if frame is not None:
                name = f"lakelog_{uuid4().hex}"
                frame.createTempView(name)
                self._views.append(name)
                found.append(each)
                names.append(name)
        if not found:
            return text
        known = [self._names(each) for each in found]
        return _rewritten(text, _edits(tokens, found, names, known), escape=False)

    def close(self) -> None:
        """Drop the views that `expression` made."""
        while self._views:
            self._spark.catalog.dropTempView(self._views.pop())

    def has_read(self, path: str) -> bool:
        """Whether a query read the newest version of a table, by its path as names give it."""
        return any(key[:2] == (path, None) for key in self._frames)

    def value(self, text: str) -> Any:
        """What an expression without columns gives, as text; `None` for null."""
        row = self._plain(f"SELECT CAST(({text}\n) AS STRING)").first()
        return None if row is None else row[0]

    def _answered(
        self, tokens: Sequence[Token], reference: Reference, parameters: Parameters
    ) -> DataFrame | None:
        """The answer that the log has to a whole statement, if it has one."""
        items = wanted(tokens, reference)
        place = None if items is None else place_of(self._spark, reference.parts)
        if items is None or place is None:
            return None
        when = None if reference.travel is None else parameters.text(*reference.when)
        reader = self._reader(reference.travel, when)
        snapshot = opened(self._spark, place, reader.version)
        where = _unqualified(parameters.text(*reference.where), reference.alias) or None
        text = answer(snapshot, where, items)
        return None if text is None else self._plain(text)

    def _frame(self, reference: Reference, parameters: Parameters) -> DataFrame | None:
        if reference.is_call:
            return self._changes(reference, parameters)
        place = place_of(self._spark, reference.parts)
        if place is None:
            return None
        self._wholes[reference.parts] = place.whole
        travel = reference.travel
        when = None if travel is None else parameters.text(*reference.when)
        where = _unqualified(parameters.text(*reference.where), reference.alias) or None
        return self._table(place, travel, when, where)

    def _table(
        self, place: Place, travel: str | None, when: str | None, where: str | None
    ) -> DataFrame:
        """The rows of a table.

        Args:
            place: the table.
            travel: `version` or `timestamp`.
            when: an expression for it.
            where: a condition that the query has on all of the rows: files without a match are
                left out where lakelog understands it.
        """
        key = (place.path, travel, when, where)
        if key not in self._frames:
            reader = self._reader(travel, when)
            if where is not None:
                reader.where(where)
            try:
                self._frames[key] = opened(self._spark, place, reader.load)
            except InvalidPredicateError:
                if where is None:
                    raise
                return self._table(place, travel, when, None)
        return self._frames[key]

    def _reader(self, travel: str | None, when: str | None) -> SkippingReader:
        reader = SkippingReader(self._spark)
        if travel is not None:
            reader.option(f"{travel}AsOf", self.moment(travel, when or ""))
        return reader

    def moment(self, travel: str, when: str) -> str:
        """The version or time of an AS OF, as text.

        Raises:
            DeltaAnalysisError: it is none.
        """
        if travel == "version" and (plain := when.lstrip("vV")).isdecimal():
            return plain
        kind = "TIMESTAMP" if travel == "timestamp" else "BIGINT"
        found = self.value(f"try_cast(({when}\n) AS {kind})")
        if found is None:
            raise DeltaAnalysisError(
                f"[DELTA_TIMESTAMP_INVALID] The provided timestamp ({when}) cannot be converted to "
                "a valid timestamp."
                if travel == "timestamp"
                else f"[DELTA_INVALID_TIME_TRAVEL_SPEC] VERSION AS OF needs a whole number, and "
                f"{when} is none",
                sql=when,
            )
        return str(found)

    def millis(self, moment: str) -> int:
        """Epoch milliseconds of a time that `moment` gave."""
        return int(self.value(f"unix_millis(CAST({text_literal(moment)} AS TIMESTAMP))"))

    def _changes(self, reference: Reference, parameters: Parameters) -> DataFrame | None:
        texts = [parameters.text(*each) for each in reference.arguments]
        name = self.value(texts[0])
        path = name if reference.parts[0].lower() == _BY_PATH else None
        if path is None:
            tokens = tokenize(name or "")
            parts = tuple(each.name for each in tokens[::2] if each.name is not None)
            path = path_in(parts)
            if path is None:
                place = place_of(self._spark, parts)
                if place is None:
                    return None
                path = place.path
        if not 2 <= len(texts) <= 3:  # a table, and one or two bounds
            raise DeltaAnalysisError(
                f"[INCORRECT_NUMBER_OF_ARGUMENTS] {reference.parts[0]} takes the table, where to "
                f"start and optionally where to end; {len(texts)} arguments were given",
                table=path,
            )
        reader = DeltaReader(self._spark).option("readChangeFeed", "true")
        for bound, text in zip(_BOUNDS, texts[1:], strict=False):
            kind = self._plain(f"SELECT ({text}\n)").schema[0].dataType.typeName()
            is_number = kind in ("byte", "short", "integer", "long")
            if kind == "void":
                raise DeltaAnalysisError(
                    f"[DELTA_CDC_READ_NULL_RANGE_BOUNDARY] CDC read start/end parameters cannot "
                    f"be null, and {text} is: give a version or a timestamp",
                    table=path,
                )
            reader.option(f"{bound}{'Version' if is_number else 'Timestamp'}", self.value(text))
        return reader.load(path)


def _unqualified(condition: str, alias: str | None) -> str:
    """A condition without the name of its table before columns."""
    parts, at, tokens = [], 0, tokenize(condition)
    for each, dot in pairwise(tokens):
        is_alias = alias is not None and (each.name or "").lower() == alias.lower()
        if is_alias and dot.text == "." and condition[each.start - 1 : each.start] != ".":
            parts.append(condition[at : each.start])
            at = dot.end
    return "".join([*parts, condition[at:]])


def _edits(
    tokens: Sequence[Token],
    found: Sequence[Reference],
    names: Sequence[str],
    known: Sequence[Sequence[tuple[str, ...]]],
) -> list[tuple[int, int, str]]:
    """What gives each table another name; one without an alias keeps its own as that.

    Args:
        tokens: those of the text.
        found: the tables.
        names: to be written for them.
        known: of each, what columns of it may have before them.

    Returns:
        Start, end and the new text of each part, in their order.
    """
    edits: list[tuple[int, int, str]] = []
    for name, each in zip(names, found, strict=True):
        start, end = tokens[each.first].start, tokens[each.end - 1].end
        edits.append((start, end, name))
        if each.alias_at is not None:
            at = tokens[each.alias_at - 1].end
            alias = each.parts[0] if each.is_call else each.parts[-1]
            edits.append((at, at, f" AS {quoted(alias)}"))
    edits += _qualifiers(tokens, found, known)
    return sorted(edits, key=lambda each: each[:2])


def _rewritten(sql: str, edits: Sequence[tuple[int, int, str]], *, escape: bool) -> str:
    """The text with some parts replaced.

    Args:
        sql: the text.
        edits: what `_edits` gives.
        escape: whether braces of the text mean themselves.
    """
    parts, at = [], 0
    for start, end, new in edits:
        kept = sql[at:start]
        parts += [kept.replace("{", "{{").replace("}", "}}") if escape else kept, new]
        at = end
    kept = sql[at:]
    return "".join([*parts, kept.replace("{", "{{").replace("}", "}}") if escape else kept])


def _qualifiers(
    tokens: Sequence[Token],
    found: Sequence[Reference],
    names: Sequence[Sequence[tuple[str, ...]]],
) -> list[tuple[int, int, str]]:
    """Columns that are qualified by a name of several parts: the alias has the last one alone."""
    named = {
        tuple(part.lower() for part in parts): each.parts[-1]
        for each, known in zip(found, names, strict=True)
        for parts in known
        if len(parts) > 1 and each.alias_at is not None
    }
    edits = []
    inside = {at for each in found for at in range(each.first, each.end)}
    for parts, alias in named.items():
        width = 2 * len(parts)
        for at in range(len(tokens) - width):
            if at in inside or (at and tokens[at - 1].text == "."):
                continue
            window = tokens[at : at + width]
            dots = all(each.text == "." for each in window[1::2])
            if dots and tuple((each.name or "").lower() for each in window[::2]) == parts:
                edits.append((window[0].start, window[-2].end, quoted(alias)))
    return edits
