"""Of which table a temporary view is known to be all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lakelog.spark.names.frame_views import (
    GLOBAL,
    FrameSource,
    note_frame,
    note_view,
    source_of_view,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Frame:
    """Rows of an empty table: the same to Spark as those of any other of its types."""

    def sameSemantics(self, other: object) -> bool:  # noqa: N802  # PySpark's name
        return True


class Session:
    read: Any

    def __init__(self) -> None:
        self.read = self

    def table(self, name: str) -> Frame:
        return Frame()


def session() -> SparkSession:
    return cast("SparkSession", Session())


def rows_of(path: str) -> DataFrame:
    frame = cast("DataFrame", Frame())
    note_frame(frame, FrameSource(path))
    return frame


def test_a_view_that_all_sessions_see_is_the_last_that_was_made() -> None:
    one, other, name = session(), session(), (GLOBAL, "v")
    mine, theirs = rows_of("/mine"), rows_of("/theirs")
    note_view(one, mine, "v", shared=True)
    found = source_of_view(one, name)
    assert found is not None
    assert found.path == "/mine"
    note_view(other, theirs, "V", shared=True)
    assert source_of_view(one, name) is None
    found = source_of_view(other, name)
    assert found is not None
    assert found.path == "/theirs"


def test_a_view_of_one_session_is_nothing_to_another() -> None:
    one, other = session(), session()
    mine, theirs = rows_of("/mine"), rows_of("/theirs")
    note_view(one, mine, "v")
    note_view(other, theirs, "v")
    found = source_of_view(one, ("v",))
    assert found is not None
    assert found.path == "/mine"
    note_view(one, cast("DataFrame", Frame()), "`v`")
    assert source_of_view(one, ("v",)) is None
