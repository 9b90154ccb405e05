"""Checks of users' arguments to the classes that delta-spark also has, before anything runs.

What is refused, and in which words, is as in `delta.tables`, so that a script which expects
`TypeError` or `ValueError` gets it; `WrongTypeError` is both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NoReturn

from pyspark.sql import Column

from lakelog.core.errors import DeltaAnalysisError


class WrongTypeError(DeltaAnalysisError, TypeError):
    """An argument has another type than it must have. Nothing was run."""


def check_text(value: Any, name: str) -> None:
    """Refuse what is not a string.

    Raises:
        WrongTypeError: names the argument.
    """
    if not isinstance(value, str):
        _needs(value, name, "a string")


def check_int(value: Any, name: str) -> None:
    """Refuse what is not a whole number; `True` and `False` are not.

    Raises:
        WrongTypeError: names the argument.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        _needs(value, name, "an int")


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither `True` nor `False`.

    Raises:
        WrongTypeError: names the argument.
    """
    if not isinstance(value, bool):
        _needs(value, name, "a boolean")


def check_texts(value: Any, name: str, one: str) -> None:
    """Refuse what is not a mapping of strings to strings.

    Args:
        value: as given.
        name: the argument's.
        one: what an entry of it is called.

    Raises:
        WrongTypeError: names the argument, or its part.
    """
    if not isinstance(value, Mapping):
        _needs(value, name, "a dict")
    for key, each in value.items():
        check_text(key, f"All {one} keys including {key}")
        check_text(each, f"All {one} values including {each}")


def checked_path(value: Any, name: str) -> str:
    """A path as text.

    Raises:
        WrongTypeError: neither text nor a path object that is text.
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    check_text(found, name)
    return str(found)


def checked_names(given: tuple[Any, ...], what: str) -> list[str]:
    """Names of columns that were given one by one, or in lists.

    Args:
        given: the arguments.
        what: one of them is, for the message: `Clustering column`.

    Raises:
        WrongTypeError: one is not a string.
    """
    found: list[str] = []
    for each in given:
        found += each if isinstance(each, list | tuple) else [each]
    for each in found:
        if not isinstance(each, str):
            refuse_type(f"{what} must be str.", each)
    return found


def check_session(value: Any) -> None:
    """Refuse what is not a session, classic or Connect.

    Raises:
        WrongTypeError: names the argument.
    """
    if not hasattr(value, "createDataFrame"):
        _needs(value, "sparkSession", "a SparkSession")


def check_expression(value: Any, name: str) -> None:
    """Refuse what is neither SQL text nor a Column.

    Raises:
        WrongTypeError: names the argument.
    """
    if not isinstance(value, str | Column):
        raise WrongTypeError(
            f"{name} must be a Spark SQL Column or a string (expression in SQL syntax), found to "
            f"be of type {type(value)}",
            argument=name,
        )


def check_expressions_by_name(value: Any, name: str) -> None:
    """Refuse what is not a dict of names of columns to SQL text or Columns.

    Raises:
        DeltaAnalysisError: it is missing.
        WrongTypeError: it, a key or a value has another type.
    """
    if value is None:
        raise DeltaAnalysisError(
            f"{name} cannot be None: give a dict of columns to their new values", argument=name
        )
    if not isinstance(value, dict):
        raise WrongTypeError(f"{name} must be a dict, found to be {type(value)}", argument=name)
    for key, each in value.items():
        if not isinstance(key, str):
            refuse_type(f"Keys of dict in {name} must contain only strings with column names.", key)
        if not isinstance(each, str | Column):
            refuse_type(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings "
                "(expressions in SQL syntax); for a value itself give "
                "pyspark.sql.functions.lit of it.",
                each,
            )


def refuse_type(must: str, value: Any) -> NoReturn:
    """Refuse a value for its type.

    Args:
        must: what it must be, as a sentence.
        value: as given.

    Raises:
        WrongTypeError: says both.
    """
    raise WrongTypeError(f"{must} Found {_shown(value)} with type {type(value)}")


def _needs(value: Any, name: str, what: str) -> NoReturn:
    raise WrongTypeError(
        f"{name} needs to be {what} but got '{type(value)}': {_shown(value)}", argument=name
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
