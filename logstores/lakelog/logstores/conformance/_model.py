"""Random histories, compared with a dict. Needs hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lakelog.logstores.conformance._expect import (
    expect,
    expect_equal,
    fresh_folder,
    names,
    read_or_none,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores._contract import LogStore

__all__ = ["run_model"]

# Few names, so that they meet again; some are prefixes of each other, some sort oddly.
NAMES = st.sampled_from(
    [
        "00000000000000000000.json",
        "00000000000000000001.json",
        "0",
        "1",
        "10",
        "_l",
        "a b",
        "ü",
        "😀",
    ]
)
# A line that ends in \r would lose it by the contract: \r\n is a line end, too.
LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
LINES = st.lists(LINE.map(lambda text: text.rstrip("\r")), max_size=5)


class _OwnFailure(Exception):  # noqa: N818  # it stands for anybody's exception
    pass


def run_model(stores: list[LogStore], root: str, examples: int) -> None:
    """Drive instances of one store and a dict through the same histories.

    Args:
        stores: instances on the same storage; every step is made by one of them.
        root: where each history gets a folder of its own.
        examples: how many histories.

    Raises:
        PromiseBrokenError: the store and the dict differ; hypothesis prints the shortest history.
    """

    class Model(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.folder = fresh_folder(stores[0], root)
            self.truth: dict[str, list[str]] = {}

        def path(self, name: str) -> str:
            return f"{self.folder}/{name}"

        @rule(name=NAMES, lines=LINES, store=st.sampled_from(stores))
        def create(self, name: str, lines: list[str], store: LogStore) -> None:
            if name in self.truth:
                with refusal(FileExistsError, f"creating {name!r} again"):
                    store.write(self.path(name), lines)
            else:
                store.write(self.path(name), iter(lines))
                self.truth[name] = lines

        @rule(name=NAMES, lines=LINES, store=st.sampled_from(stores))
        def overwrite(self, name: str, lines: list[str], store: LogStore) -> None:
            store.write(self.path(name), lines, overwrite=True)
            self.truth[name] = lines

        @rule(name=NAMES, lines=LINES, over=st.booleans(), store=st.sampled_from(stores))
        def fail(self, name: str, lines: list[str], over: bool, store: LogStore) -> None:
            allowed = FileExistsError if name in self.truth and not over else _OwnFailure
            try:
                store.write(self.path(name), _failing(lines), overwrite=over)
            except (_OwnFailure, allowed):
                found = read_or_none(store, self.path(name))
                expect_equal(found, self.truth.get(name), f"{name!r} after a failed write")
                return
            expect(False, f"a write of {name!r} whose lines fail returned")

        @rule(start=NAMES | st.just(""), store=st.sampled_from(stores))
        def list_from(self, start: str, store: LogStore) -> None:
            if self.truth:
                wanted = sorted(name for name in self.truth if name >= start)
                expect_equal(names(store, self.path(start)), wanted, f"names from {start!r}")

        @rule(name=NAMES, store=st.sampled_from(stores))
        def remove(self, name: str, store: LogStore) -> None:
            if name in self.truth:
                store.filesystem.delete_file(store.filesystem_path(self.path(name)))
                del self.truth[name]

        @rule(name=NAMES, store=st.sampled_from(stores))
        def read(self, name: str, store: LogStore) -> None:
            expect_equal(
                read_or_none(store, self.path(name)), self.truth.get(name), f"the file {name!r}"
            )

        @invariant()
        def agrees(self) -> None:
            for name, lines in self.truth.items():
                expect_equal(read_or_none(stores[-1], self.path(name)), lines, f"the file {name!r}")

    run_state_machine_as_test(  # type: ignore[no-untyped-call, unused-ignore]  # typed in some releases only
        Model,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def _failing(lines: list[str]) -> Iterator[str]:
    yield from lines
    raise _OwnFailure("the lines failed")
