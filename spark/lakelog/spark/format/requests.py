"""The calls made on PySpark's readers and writers, noted while PySpark makes them itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

Note: TypeAlias = "Callable[..., None]"
Wrap: TypeAlias = "Callable[[Any], Any]"
"""Takes the request and the arguments of the call."""


@dataclass(slots=True)
class Request:
    """The calls made on one reader or writer so far."""

    format: str | None = None
    schema: Any = None
    mode: str | None = None
    partition_by: list[str] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    query_name: str | None = None
    trigger: dict[str, Any] = field(default_factory=dict)
    frame: Any = None
    """The DataFrame that `writeTo` was called on."""
    table: str | None = None
    """The name that it was given."""
    governed: bool = False
    """Whether that is of a catalog that is not Spark's own; PySpark's writer has another name."""
    properties: dict[str, str] = field(default_factory=dict)
    cluster_by: list[str] = field(default_factory=list)
    layout: list[str] = field(default_factory=list)
    """Methods called that ask for a layout which a Delta table can't have."""


def request_of(of: Any) -> Request:
    """What was asked of a reader or writer of PySpark's so far."""
    found = of.__dict__.get("_lakelog_request")
    if not isinstance(found, Request):
        found = of.__dict__["_lakelog_request"] = Request()
    return found


def session_of_reader(reader: Any) -> SparkSession:
    """The session of a reader of PySpark's."""
    # A Connect reader calls its session `_client`; a classic one has no such attribute.
    found: SparkSession = reader.__dict__.get("_client") or reader.__dict__["_spark"]
    return found


def note_format(request: Request, source: str) -> None:
    """Note `format`."""
    request.format = source


def _note_schema(request: Request, schema: Any) -> None:
    request.schema = schema


def note_option(request: Request, key: str, value: Any) -> None:
    """Note `option`."""
    # Names are compared ignoring case, and the last value counts; `None` is ignored, as in PySpark.
    if value is not None:
        for known in [each for each in request.options if each.lower() == key.lower()]:
            del request.options[known]
        request.options[key] = value


def note_options(request: Request, **options: Any) -> None:
    """Note `options`."""
    for key, value in options.items():
        note_option(request, key, value)


def note_partition_by(request: Request, *cols: Any) -> None:
    """Note `partitionBy`."""
    nested = len(cols) == 1 and isinstance(cols[0], list | tuple)
    request.partition_by = list(cols[0] if nested else cols)


def note_cluster_by(request: Request, *cols: Any) -> None:
    """Note `clusterBy`."""
    nested = len(cols) == 1 and isinstance(cols[0], list | tuple)
    request.cluster_by = list(cols[0] if nested else cols)


READER_NOTES: dict[str, Note] = {
    "format": note_format,
    "schema": _note_schema,
    "option": note_option,
    "options": note_options,
}
"""What is noted of a reader, of rows or of a stream."""


def layout_note(name: str) -> Note:
    """Note a call of a method that asks for a layout which a Delta table can't have."""

    def note(request: Request, *_: Any, **__: Any) -> None:
        request.layout.append(name)

    return note


def noting(notes: dict[str, Note]) -> dict[str, Wrap]:
    """Wrappers that record a call, and then make it."""

    def wrapping(note: Note) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(self, *args, **kwargs)
                note(request_of(self), *args, **kwargs)
                return result

            return method

        return wrap

    return {name: wrapping(note) for name, note in notes.items()}
