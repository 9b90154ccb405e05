"""Tests of this folder fail on Spark's layer with one thing wrong: they are quick, not blind.

On the layer as it is the same tests pass, in their own files.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from integration.spark_mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from integration.spark_mutants import SparkMutant


class Borrowed:
    """The arguments of another file's test, from its own fixtures and from those of all."""

    def __init__(
        self,
        test: Callable[..., None],
        given: Mapping[str, Any],
        uses: Sequence[str],
        request: pytest.FixtureRequest,
    ) -> None:
        self._own = vars(sys.modules[test.__module__])
        self._given = given
        self._request = request
        self._made: dict[str, Any] = {}
        self._ends = ExitStack()
        self._uses = uses
        self._names = list(inspect.signature(test).parameters)

    def __enter__(self) -> dict[str, Any]:
        for name in self._uses:
            self._value(name)
        return {name: self._value(name) for name in self._names}

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def _value(self, name: str) -> Any:
        if name not in self._made:
            fixture = getattr(self._own.get(name), "__wrapped__", None)
            if fixture is not None:
                self._made[name] = self._from(fixture, name)
            elif name in self._given:
                self._made[name] = self._given[name]
            else:
                self._made[name] = self._request.getfixturevalue(name)
        return self._made[name]

    def _from(self, fixture: Callable[..., Any], name: str) -> Any:
        wanted = inspect.signature(fixture).parameters
        param = SimpleNamespace(param=self._given.get(name))
        values = {each: param if each == "request" else self._value(each) for each in wanted}
        if inspect.isgeneratorfunction(fixture):
            return self._ends.enter_context(contextmanager(fixture)(**values))
        return fixture(**values)


@pytest.mark.one_day_in(3)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_suite_catches_a_layer_in_which(
    mutant: SparkMutant, request: pytest.FixtureRequest
) -> None:
    with (
        Borrowed(mutant.test, mutant.given, mutant.uses, request) as values,
        mutant.patched(),
        pytest.raises(mutant.shows),
    ):
        mutant.test(**values)
