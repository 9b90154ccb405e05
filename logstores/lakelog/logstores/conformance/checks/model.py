"""Random histories of several instances, compared with a dict. Needs hypothesis."""

from __future__ import annotations

import copy
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

from lakelog.logstores.conformance.checks.expect import (
    expect,
    expect_equal,
    fresh_folder,
    names,
    read_or_none,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.contract import LogStore

# Few names, so that they meet again; some are prefixes of each other, some sort oddly.
_NAMES = st.sampled_from(
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
# A line that ends in \r would lose it by the contract: \r\n is a line end too.
_LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
_LINES = st.lists(_LINE.map(lambda text: text.rstrip("\r")), max_size=5)
_WHO = st.integers(0, 1)


class _OwnFailure(Exception):  # noqa: N818  # it stands for anybody's exception
    pass


def run_model(make: Callable[[], LogStore], root: str, examples: int) -> None:
    """Drive instances of one store and a dict through the same histories.

    Args:
        make: makes an instance; a history has two, and every step is made by one of them.
        root: where each history gets a folder of its own.
        examples: how many histories.

    Raises:
        PromiseBrokenError: the store and the dict differ; hypothesis prints the shortest history.
    """

    class Model(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.stores = [make(), make()]
            self.folder = fresh_folder(self.stores[0], root)
            self.truth: dict[str, list[str]] = {}

        def path(self, name: str) -> str:
            return f"{self.folder}/{name}"

        @rule(name=_NAMES, lines=_LINES, who=_WHO)
        def create(self, name: str, lines: list[str], who: int) -> None:
            store = self.stores[who]
            if name in self.truth:
                with refusal(FileExistsError, f"creating {name!r} again"):
                    store.write(self.path(name), lines)
            else:
                store.write(self.path(name), iter(lines))
                self.truth[name] = lines

        @rule(name=_NAMES, lines=_LINES, who=_WHO)
        def overwrite(self, name: str, lines: list[str], who: int) -> None:
            self.stores[who].write(self.path(name), lines, overwrite=True)
            self.truth[name] = lines

        @rule(name=_NAMES, lines=_LINES, who=_WHO)
        def stage(self, name: str, lines: list[str], who: int) -> None:
            body = "".join(line + "\n" for line in lines).encode()
            with (
                self.stores[who].staged(self.path(name)) as (filesystem, draft),
                filesystem.open_output_stream(draft) as stream,
            ):
                stream.write(body)
            self.truth[name] = lines

        @rule(name=_NAMES, lines=_LINES, over=st.booleans(), who=_WHO)
        def fail(self, name: str, lines: list[str], over: bool, who: int) -> None:
            allowed = FileExistsError if name in self.truth and not over else _OwnFailure
            store = self.stores[who]
            try:
                store.write(self.path(name), _failing(lines), overwrite=over)
            except (_OwnFailure, allowed):
                found = read_or_none(store, self.path(name))
                expect_equal(found, self.truth.get(name), f"{name!r} after a failed write")
                return
            expect(False, f"a write of {name!r} whose lines fail returned")

        @rule(start=_NAMES | st.just(""), who=_WHO)
        def list_from(self, start: str, who: int) -> None:
            if self.truth:
                wanted = sorted(name for name in self.truth if name >= start)
                found = names(self.stores[who], self.path(start))
                expect_equal(found, wanted, f"names from {start!r}")

        @rule(name=_NAMES, who=_WHO)
        def remove(self, name: str, who: int) -> None:
            if name in self.truth:
                store = self.stores[who]
                store.filesystem.delete_file(store.filesystem_path(self.path(name)))
                del self.truth[name]

        @rule(name=_NAMES, lines=_LINES, who=_WHO)
        def create_again(self, name: str, lines: list[str], who: int) -> None:
            self.remove(name, who)
            self.create(name, lines, who)

        @rule(name=_NAMES, who=_WHO)
        def read(self, name: str, who: int) -> None:
            found = read_or_none(self.stores[who], self.path(name))
            expect_equal(found, self.truth.get(name), f"the file {name!r}")

        @rule(who=_WHO, copied=st.booleans())
        def reopen(self, who: int, copied: bool) -> None:
            old = self.stores[who]
            self.stores[who] = copy.copy(old) if copied else make()
            if not copied:
                old.close()

        @invariant()
        def agrees(self) -> None:
            for name, lines in self.truth.items():
                expect_equal(
                    read_or_none(self.stores[-1], self.path(name)), lines, f"the file {name!r}"
                )

        def teardown(self) -> None:
            for store in getattr(self, "stores", ()):
                store.close()

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
