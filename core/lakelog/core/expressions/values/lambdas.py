"""Functions of Spark's SQL that take a lambda: its body is evaluated for all elements at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from lakelog.core.arrays import integers, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.value import Value
from lakelog.core.schema import ArrayType, DataType, MapType, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.values.value import Rule

_BOOLEAN, _INTEGER = PrimitiveType("boolean"), PrimitiveType("integer")
_NESTED: Final = (ArrayType, MapType, StructType)
_INDEX: Final = Value(_INTEGER, lambda _: None, nullable=False)


class Body(NamedTuple):
    """What a lambda computes of rows that are the elements of arrays."""

    value: Value
    variables: Sequence[str]
    """What the columns of its arguments are called."""
    around: Sequence[str]
    """The columns of the rows that it asks for."""

    def of(self, rows: pa.RecordBatch, parents: Any, *given: Any) -> Any:
        """One value for each of some elements.

        Args:
            rows: that the arrays stand in.
            parents: of each element the number of its row.
            given: the arguments, one value for each element.
        """
        if not len(parents):
            return pa.nulls(0, to_arrow_type(self.value.data_type))
        found = {name: rows.column(name).take(parents) for name in self.around}
        found |= dict(zip(self.variables, given, strict=False))
        data = self.value.of(pa.record_batch(found or {"": pa.nulls(len(parents))}))
        return pa.repeat(data, len(parents)) if isinstance(data, pa.Scalar) else data


Argument: TypeAlias = "Value | Callable[..., Body]"
"""A value; or a lambda, which has a body once it knows what values it gets."""


class _Elements(NamedTuple):
    """The elements of some arrays, without those that a null hides."""

    values: Any
    offsets: Any
    """Where each array starts among them, and where the last one ends."""
    parents: Any
    nulls: Any
    """Whether each array is null."""

    @classmethod
    def of(cls, array: Value, rows: pa.RecordBatch) -> _Elements:
        data = array.of(rows)
        data = pa.repeat(data, rows.num_rows) if isinstance(data, pa.Scalar) else data
        offsets = _sums(pc.fill_null(pc.list_value_length(data), 0))
        values = data.flatten()
        parents = pc.list_parent_indices(pa.ListArray.from_arrays(offsets, values))
        return cls(values, offsets, parents, data.is_null())

    @property
    def arguments(self) -> tuple[Any, Any]:
        """The elements, and the number of each in its array."""
        count = integers(range(len(self.values)), pa.int32())
        return self.values, pc.subtract_checked(count, self.offsets.take(self.parents))

    def arrays(self, kind: DataType, values: Any, offsets: Any) -> Any:
        arrow = to_arrow_type(kind)
        values = values if values.type == arrow.value_type else values.cast(arrow.value_type)
        return pa.ListArray.from_arrays(offsets, values, type=arrow, mask=self.nulls)

    def has(self, flags: Any) -> Any:
        """Whether an element of each array has a flag."""
        found = _sums(pc.cast(flags, pa.int32())).take(self.offsets)
        return pc.greater(found.slice(1), found.slice(0, len(found) - 1))


def _sums(counts: Any) -> Any:
    first = pa.array([0], pa.int32())
    return pa.concat_arrays([first, pc.cumulative_sum_checked(counts.cast(pa.int32()))])


def element_of(array: Value) -> Value:
    """What a lambda gets of an array.

    Raises:
        NotInCoreError: it is no array.
    """
    kind = array.data_type
    if not isinstance(kind, ArrayType):
        raise NotInCoreError(f"a lambda for the elements of {kind}")
    return Value(kind.element_type, lambda _: None, kind.contains_null)


def _body(function: Argument, *given: Value, condition: bool = False) -> Body:
    if isinstance(function, Value):
        raise NotInCoreError("a value for a lambda")
    body = function(*given)
    if condition and body.value.data_type != _BOOLEAN:
        raise NotInCoreError(f"a lambda of {body.value.data_type} as a condition")
    return body


def _transform(array: Value, element: Value, function: Argument) -> Value:
    body = _body(function, element, _INDEX)
    kind = ArrayType(body.value.data_type, body.value.nullable)

    def of(rows: pa.RecordBatch) -> Any:
        found = _Elements.of(array, rows)
        return found.arrays(kind, body.of(rows, found.parents, *found.arguments), found.offsets)

    return Value(kind, of, array.nullable)


def _filter(array: Value, element: Value, function: Argument) -> Value:
    body = _body(function, element, _INDEX, condition=True)

    def of(rows: pa.RecordBatch) -> Any:
        found = _Elements.of(array, rows)
        kept = pc.fill_null(body.of(rows, found.parents, *found.arguments), False)
        ends = _sums(kept).take(found.offsets)
        return found.arrays(array.data_type, found.values.filter(kept), ends)

    return Value(array.data_type, of, array.nullable)


def _any(*, decided: bool) -> Rule:
    """`exists`, or `forall`: true or false as soon as one element says so, else perhaps null."""
    yes, no, unsure = (scalar_of(each, pa.bool_()) for each in (decided, not decided, None))

    def apply(array: Value, element: Value, function: Argument) -> Value:
        body = _body(function, element, condition=True)

        def of(rows: pa.RecordBatch) -> Any:
            found = _Elements.of(array, rows)
            try:
                truth = body.of(rows, found.parents, found.values)
            except pa.ArrowException as exc:
                # Spark does not ask about the elements behind the one that decides.
                raise NotInCoreError(f"a condition of elements ({exc})") from exc
            hit = found.has(pc.fill_null(pc.equal(truth, yes), False))
            open_ = pc.if_else(found.has(truth.is_null()), unsure, no)
            return pc.if_else(found.nulls, unsure, pc.if_else(hit, yes, open_))

        return Value(_BOOLEAN, of, array.nullable or body.value.nullable)

    return apply


def _aggregate(
    array: Value, element: Value, start: Argument, merge: Argument, *finish: Argument
) -> Value:
    if not isinstance(start, Value) or isinstance(start.data_type, _NESTED) or len(finish) > 1:
        raise NotInCoreError("an aggregate that starts with a lambda, or with a nested value")
    kind = start.data_type
    total = Value(kind, lambda _: None)
    step = _body(merge, total, element)
    ends = [_body(each, total) for each in finish]
    if step.value.data_type != kind or len(step.variables) < 2:
        raise NotInCoreError(f"an aggregate of {kind} that becomes {step.value.data_type}")
    result = ends[0].value.data_type if ends else kind

    def of(rows: pa.RecordBatch) -> Any:
        found, data = _Elements.of(array, rows), start.of(rows)
        data = pa.repeat(data, rows.num_rows) if isinstance(data, pa.Scalar) else data
        starts = found.offsets.slice(0, rows.num_rows)
        sizes = pc.subtract_checked(found.offsets.slice(1), starts)
        for at in range(pc.max(sizes).as_py() or 0):
            longer = pc.greater(sizes, at)
            some = pc.indices_nonzero(longer)
            values = found.values.take(pc.add_checked(starts.take(some), at))
            data = pc.replace_with_mask(data, longer, step.of(rows, some, data.take(some), values))
        known = pc.invert(found.nulls)
        some = pc.indices_nonzero(known)
        data = data.take(some)
        for each in ends:
            data = each.of(rows, some, data)
        return pc.replace_with_mask(pa.nulls(rows.num_rows, to_arrow_type(result)), known, data)

    return Value(result, of)


LAMBDAS: Final[dict[str, Rule]] = {
    "aggregate": _aggregate,
    "exists": _any(decided=True),
    "filter": _filter,
    "forall": _any(decided=False),
    "reduce": _aggregate,
    "transform": _transform,
}
"""By name in lower case; each also takes what `element_of` gives."""
