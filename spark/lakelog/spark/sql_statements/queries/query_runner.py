"""Queries: their tables of ours become views, and the rest of the text is left as it is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import AnalysisException, ParseException

from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.spark.names.frame_views import GLOBAL
from lakelog.spark.names.identifiers import parse
from lakelog.spark.names.lookup import is_sparks_catalog
from lakelog.spark.reading.reader import DeltaReader, SkippingReader
from lakelog.spark.reading.row_ids import with_row_ids
from lakelog.spark.reading.stated import with_nulls_of
from lakelog.spark.sql_statements.forms.parameters import Parameters
from lakelog.spark.sql_statements.queries.aggregates import answer, wanted
from lakelog.spark.sql_statements.queries.cached_rows import (
    Seen,
    current,
    has_cached,
    is_cached,
)
from lakelog.spark.sql_statements.queries.metadata_column import (
    names_metadata,
    names_row_ids,
    star_edits,
    with_metadata,
)
from lakelog.spark.sql_statements.queries.named_tables import Place, entry_of, opened, place_of
from lakelog.spark.sql_statements.queries.view_rows import as_view, recursive_view, refuse_lasting
from lakelog.spark.sql_statements.text.options_clause import given_options
from lakelog.spark.sql_statements.text.placed_errors import placed
from lakelog.spark.sql_statements.text.references import Reference
from lakelog.spark.sql_statements.text.renaming import edits_of, renaming
from lakelog.spark.sql_statements.text.statement import Statement, rewritten
from lakelog.spark.types.path_forms import hadoop_path, text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import Snapshot
    from lakelog.spark.sql_statements.text.statement import Edit
    from lakelog.spark.sql_statements.text.tokens import Token

_BY_PATH = "table_changes_by_path"
_BOUNDS = ("starting", "ending")


_TRAVELS = ("version", "timestamp")


class _NoneOfOursError(Exception):
    """A query has no table of ours."""


def _none() -> DataFrame:
    raise _NoneOfOursError


class QueryRunner:
    """Runs a text that is, or has, a query."""

    def __init__(
        self,
        spark: SparkSession,
        plain: Callable[..., DataFrame],
        namespace: tuple[str, ...] = (),
        above: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Prepare.

        Args:
            spark: the session.
            plain: Spark's own `sql`.
            namespace: catalog and database of names without; empty: the current ones.
            above: the views, by their whole names in lower case, whose query this one is in.
        """
        self._spark = spark
        self.plain = plain
        """Spark's own `sql`."""
        self._namespace = namespace
        self._above = above
        self._frames: dict[Any, tuple[DataFrame, Seen]] = {}
        self._states: dict[int, Snapshot] = {}
        """`id` of a table's rows in `_frames` -> what they were read of."""
        self._read_by: dict[tuple[str, ...], dict[Any, Seen]] = {}
        """View -> what its query reads."""
        self._views: list[str] = []
        self.read: dict[tuple[str, str | None, str | None], Seen] = {}
        """Path and AS OF of each table that was read -> what of it; `None` for its changes."""
        self._wholes: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Name as written -> with its catalog and database."""

    def run(
        self,
        parameters: Parameters,
        kwargs: dict[str, Any],
        otherwise: Callable[[], DataFrame] | None = None,
    ) -> DataFrame:
        """Run a statement with the tables of ours that its queries name.

        Args:
            parameters: the statement with its parameters.
            kwargs: what `{…}` in it stands for.
            otherwise: what to do if there is none; to let Spark run it, by default.
        """
        statement = parameters.statement
        tokens, named = statement.tokens, statement.references
        if otherwise is not None and len(named) == 1 and not kwargs:
            answered = self._answered(named[0], parameters)
            if answered is not None:
                return answered
        found = [
            (each, frame) for each in named if (frame := self._frame(each, parameters)) is not None
        ]
        if not found:
            if otherwise is not None:
                return otherwise()
            return self.plain(statement.text, parameters.args, **kwargs)
        refuse_lasting(statement, found[0][0])
        found, unseen = self._with_metadata(tokens, found)
        # As arguments of `sql`, not as views of our own: PySpark makes the views for this one
        # statement, under names that no other thread has, and drops them.
        frames = {f"lakelog_{i}": self._viewable(frame) for i, (_, frame) in enumerate(found)}
        names = [f"{{{name}}}" for name in frames]
        tables = [each for each, _ in found]
        known = [self._names(each) for each in tables]
        edits = edits_of(tokens, tables, names, known)
        if unseen:
            edits = sorted([*edits, *unseen], key=lambda each: each[:2])
        if self._namespace:
            others = [each for each in named if each not in tables and len(each.parts) == 1]
            whole = [(*self._namespace, *each.parts) for each in others]
            edits = sorted([*edits, *renaming(tokens, others, whole)], key=lambda each: each[:2])
        text = rewritten(statement.text, edits, escape=not kwargs)
        args = parameters.remaining([(each.first, each.end) for each, _ in found])
        try:
            done = self.plain(text, args, **kwargs, **frames)
        except ParseException:
            # Its places are those of the rewritten text. The error of the text as written, which
            # Spark parses before it looks for a table, has the right ones.
            self.plain(statement.text, parameters.args, **kwargs)
            raise
        except AnalysisException as exc:
            if kwargs:
                raise
            shown = placed(exc, statement.text, edits)
            if shown is exc:
                raise
            raise shown from exc
        gives_all = len(found) == 1 and _is_whole(tokens, tables[0])
        return with_nulls_of(done, found[0][1]) if gives_all else done

    def _viewable(self, frame: DataFrame) -> DataFrame:
        """Rows for a temporary view: dropping it, Spark drops what is cached of the same plan."""
        return frame.where("true") if has_cached(self._spark) else frame

    def _names(self, reference: Reference) -> list[tuple[str, ...]]:
        """What columns of a table without an alias may have before them: `t`, `db.t` and so on."""
        whole = self._wholes.get(reference.parts, ())
        return [reference.parts, *([whole, whole[1:]] if len(whole) > 1 else [])]

    def query(
        self, statement: Statement, otherwise: Callable[[], DataFrame] | None = None
    ) -> DataFrame:
        """Run a query that has no parameters.

        Args:
            statement: the query.
            otherwise: see `run`.
        """
        return self.run(Parameters(self._spark, statement), {}, otherwise)

    def query_of_ours(self, statement: Statement) -> DataFrame | None:
        """Run a query if it names a table of ours, or a view over one."""
        try:
            return self.query(statement, _none)
        except _NoneOfOursError:
            return None

    def names_ours(self, statement: Statement, call: Reference) -> bool:
        """Whether a call of `table_changes` in a text is about a table of ours."""
        return self._changed(call, Parameters(self._spark, statement)) is not None

    def expression(self, statement: Statement) -> str:
        """An expression whose queries read temporary views of our tables, until `close`.

        Args:
            statement: the expression, without parameters.
        """
        tokens = statement.tokens
        parameters = Parameters(self._spark, statement)
        found = [
            (each, frame)
            for each in statement.references
            if (frame := self._frame(each, parameters)) is not None
        ]
        if not found:
            return statement.text
        found, unseen = self._with_metadata(tokens, found)
        names = []
        for _, frame in found:
            names.append(f"lakelog_{uuid4().hex}")
            self._viewable(frame).createTempView(names[-1])
            self._views.append(names[-1])
        tables = [each for each, _ in found]
        edits = edits_of(tokens, tables, names, [self._names(each) for each in tables])
        edits = sorted([*edits, *unseen], key=lambda each: each[:2])
        return rewritten(statement.text, edits)

    def _with_metadata(
        self, tokens: Sequence[Token], found: list[tuple[Reference, DataFrame]]
    ) -> tuple[list[tuple[Reference, DataFrame]], list[Edit]]:
        """Tables with their `_metadata`, if a text names it, and what keeps it out of its `*`."""
        if not names_metadata(tokens):
            return found, []
        tracked = names_row_ids(tokens)
        shown = [self._shown(frame, tracked=tracked) for _, frame in found]
        having = [each for (each, _), frame in zip(found, shown, strict=True) if frame is not None]
        edits = star_edits(tokens, having)
        if edits is None:
            return found, []
        return [
            (each, plain if frame is None else frame)
            for (each, plain), frame in zip(found, shown, strict=True)
        ], edits

    def _shown(self, frame: DataFrame, *, tracked: bool) -> DataFrame | None:
        """The rows of a table with their `_metadata`, where there is one."""
        state = self._states.get(id(frame)) if tracked else None
        rows = None if state is None else with_row_ids(self._spark, state)
        return with_metadata(frame) if rows is None else rows

    def close(self) -> None:
        """Drop the views that `expression` made."""
        while self._views:
            self._spark.catalog.dropTempView(self._views.pop())

    def has_read(self, path: str) -> bool:
        """Whether a query read the newest version of a table, by its path as names give it."""
        return any(key[:2] == (path, None) for key in self._frames)

    def value(self, text: str) -> Any:
        """What an expression without columns gives, as text; `None` for null."""
        row = self.plain(f"SELECT CAST(({text}\n) AS STRING)").first()
        return None if row is None else row[0]

    def _answered(self, reference: Reference, parameters: Parameters) -> DataFrame | None:
        """The answer that the log has to a whole statement, if it has one."""
        tokens = parameters.statement.tokens
        items = None if reference.options[1] else wanted(tokens, reference)
        place = None if items is None else place_of(self._spark, self._whole(reference.parts))
        if items is None or place is None or is_cached(self._spark, place.path):
            return None
        when = None if reference.travel is None else parameters.text(*reference.when)
        reader = self._reader(reference.travel, when)
        snapshot = opened(self._spark, place, reader.snapshot)
        where = _unqualified(parameters.piece(*reference.where), reference.alias) or None
        text = answer(snapshot, where, items)
        if text is None:
            return None
        self.read[place.path, reference.travel, when] = reader.seen
        return self.plain(text)

    def _whole(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """A name with the catalog and database that names without are of."""
        if not self._namespace:
            return parts
        if len(parts) == 1:
            return (*self._namespace, *parts)
        first = parts[0]
        # `db.t` of a persistent view is of the view's catalog, whatever USE chose since.
        is_other = any("/" in each for each in parts) or first.lower() == GLOBAL
        if len(parts) > 2 or is_other or is_sparks_catalog(self._spark, first):
            return parts
        return (self._namespace[0], *parts)

    def _frame(self, reference: Reference, parameters: Parameters) -> DataFrame | None:
        if reference.is_call:
            return self._changes(reference, parameters)
        parts = self._whole(reference.parts)
        place = place_of(self._spark, parts)
        if place is None:
            # Spark has no older versions of views, and says so.
            travels = reference.travel or self._travel_options(reference, parameters)
            return None if travels else self._view(reference, parts)
        self._wholes[reference.parts] = place.whole
        if reference.options[1]:
            return self._by_options(place, reference, parameters)
        travel = reference.travel
        when = None if travel is None else parameters.text(*reference.when)
        where = _unqualified(parameters.piece(*reference.where), reference.alias) or None
        return self._table(place, travel, when, where)

    def _travel_options(self, reference: Reference, parameters: Parameters) -> bool:
        """Whether an option after a name asks for another version than the newest."""
        options = given_options(parameters.piece(*reference.options), self.value)
        return any(f"{each}asof" in options for each in _TRAVELS)

    def _by_options(
        self, place: Place, reference: Reference, parameters: Parameters
    ) -> DataFrame | None:
        """The rows of ``t WITH (`path` = '…')``, as persistent views name tables."""
        options = given_options(parameters.piece(*reference.options), self.value)
        path = options.pop("path", None)
        if path not in (None, place.path, hadoop_path(place.path)):
            place = Place(path, place.parts)
        when = {name: options[f"{name}asof"] for name in _TRAVELS if f"{name}asof" in options}
        if len(options) != len(when) or len(when) > 1:
            return None
        if reference.travel is not None:
            # Two versions are an error, which is Spark's.
            text = parameters.text(*reference.when)
            return None if when else self._table(place, reference.travel, text, None)
        travel, moment = next(iter(when.items()), (None, None))
        is_time = travel == "timestamp" and moment is not None
        return self._table(place, travel, text_literal(moment or "") if is_time else moment, None)

    def _view(self, reference: Reference, parts: tuple[str, ...]) -> DataFrame | None:
        """The rows of a view whose query reads tables of ours."""
        entry = entry_of(self._spark, parts)
        if entry is None or entry.view is None:
            return None
        self._wholes[reference.parts] = entry.parts
        key = tuple(each.lower() for each in entry.parts)
        if key in self._above:
            raise recursive_view(entry.text)
        if key not in self._frames:
            inner = self.inside(key, entry.view.namespace)
            view = Statement(entry.view.text)
            # Of a temporary view it is certain that its query had tables of ours.
            query = inner.query_of_ours(view) if entry.view.namespace else inner.query(view)
            if query is None:
                return None
            frame = current(self._spark, key, as_view(query, entry), inner.read)
            self._frames[key] = frame, None
            self._read_by[key] = inner.read
        self.read.update(self._read_by[key])
        return self._frames[key][0]

    def inside(self, view: tuple[str, ...], namespace: tuple[str, ...] = ()) -> QueryRunner:
        """What runs the query of a view.

        Args:
            view: its whole name in lower case.
            namespace: see the constructor.
        """
        inner = QueryRunner(self._spark, self.plain, namespace, (*self._above, view))
        # Shared with the statement around, which must not read another version of the same table.
        inner._frames, inner._read_by = self._frames, self._read_by
        inner._states = self._states
        return inner

    def named(self, parts: Sequence[str]) -> DataFrame | None:
        """The rows of a table of ours, or of a view over one; `None` for other names."""
        place = place_of(self._spark, parts)
        if place is not None:
            return self.newest(place)
        return self._view(Reference(tuple(parts), 0, 0), tuple(parts))

    def older(self, place: Place, travel: str, when: str) -> tuple[DataFrame, int | None]:
        """The rows of a version, and its number.

        Args:
            place: the table.
            travel: `version` or `timestamp`.
            when: an expression for it.
        """
        frame = self._table(place, travel, when, None)
        seen = self.read[place.path, travel, when]
        return frame, None if seen is None else seen[1]

    def newest(self, place: Place) -> DataFrame:
        """The rows of a table as they are now."""
        return self._table(place, None, None, None)

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
        # What is cached is the plan of all rows: one with fewer files would be another to Spark.
        if travel is None and is_cached(self._spark, place.path):
            where = None
        # Once for a statement: a second read of the same may see a commit that the first did not.
        key = (place.path, travel, when, where)
        if key not in self._frames:
            reader = self._reader(travel, when)
            if where is not None:
                reader.where(where)
            try:
                frame = opened(self._spark, place, reader.load)
            except InvalidPredicateError:
                if where is None:
                    raise
                # The condition is still Spark's to evaluate; only no file is left out by it.
                return self._table(place, travel, when, None)
            if travel is None:
                frame = current(self._spark, place.path, frame, {key[:3]: reader.seen})
            self._frames[key] = frame, reader.seen
            if reader.state is not None:
                self._states[id(frame)] = reader.state
        frame, self.read[key[:3]] = self._frames[key]
        return frame

    def _reader(self, travel: str | None, when: str | None) -> SkippingReader:
        reader = SkippingReader(self._spark)
        if travel is not None:
            reader.option(f"{travel}AsOf", self.moment(travel, when or ""))
        return reader

    def moment(self, travel: str, when: str) -> str:
        """The version or time of an AS OF, as text.

        Raises:
            DeltaAnalysisError: it is neither a version nor a time.
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
                else f"[DELTA_INVALID_TIME_TRAVEL_SPEC] VERSION AS OF needs a whole number, but "
                f"{when} is not one",
                sql=when,
            )
        return str(found)

    def millis(self, moment: str) -> int:
        """Epoch milliseconds of a time that `moment` gave."""
        return int(self.value(f"unix_millis(CAST({text_literal(moment)} AS TIMESTAMP))"))

    def _changed(self, reference: Reference, parameters: Parameters) -> str | None:
        """The path of the table of a call."""
        name = self.value(parameters.text(*reference.arguments[0]))
        if reference.parts[0].lower() == _BY_PATH:
            return None if name is None else str(name)
        try:
            place = place_of(self._spark, parse(name or ""))
        except DeltaAnalysisError:
            return None  # no name: Spark says what is wrong with it
        return None if place is None else place.path

    def _changes(self, reference: Reference, parameters: Parameters) -> DataFrame | None:
        texts = [parameters.text(*each) for each in reference.arguments]
        path = self._changed(reference, parameters)
        if path is None:
            return None
        if not 2 <= len(texts) <= 3:  # a table, and one or two bounds
            raise DeltaAnalysisError(
                f"[INCORRECT_NUMBER_OF_ARGUMENTS] {reference.parts[0]} takes the table, where to "
                f"start and optionally where to end; {len(texts)} arguments were given",
                table=path,
            )
        reader = DeltaReader(self._spark).option("readChangeFeed", "true")
        for bound, text in zip(_BOUNDS, texts[1:], strict=False):
            kind = self.plain(f"SELECT ({text}\n)").schema[0].dataType.typeName()
            is_number = kind in ("byte", "short", "integer", "long")
            if kind == "void":
                raise DeltaAnalysisError(
                    f"[DELTA_CDC_READ_NULL_RANGE_BOUNDARY] CDC read start/end parameters cannot "
                    f"be null, and {text} is: give a version or a timestamp",
                    table=path,
                )
            reader.option(f"{bound}{'Version' if is_number else 'Timestamp'}", self.value(text))
        return reader.load(path)


def _is_whole(tokens: Sequence[Token], table: Reference) -> bool:
    """Whether a statement is `SELECT * FROM t` and nothing else."""
    rest = [each.upper for each in tokens[table.end :]]
    first = [each.upper for each in tokens[: table.first]]
    return first == ["SELECT", "*", "FROM"] and rest in ([], [";"])


def _unqualified(condition: Statement, alias: str | None) -> str:
    """A condition without the name of its table before columns."""
    edits: list[Edit] = []
    for each, dot in pairwise(condition.tokens):
        is_alias = alias is not None and (each.name or "").lower() == alias.lower()
        is_first = condition.text[each.start - 1 : each.start] != "."
        if is_alias and is_first and dot.text == ".":
            edits.append((each.start, dot.end, ""))
    return rewritten(condition.text, edits)
