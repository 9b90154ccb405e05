"""Appends under faults, crashes and other writers: each acknowledged one is there once."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    Appender,
    DeltaConf,
    DeltaLog,
    appender,
    create_table,
    delete_rows,
    optimize,
    read_arrow,
    vacuum,
    write_arrow,
)
from lakelog.core.alter import set_properties
from lakelog.core.errors import AppenderStoppedError
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FAULTS = st.lists(st.sampled_from(list(Fault)), max_size=4)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("flush"), _FAULTS),
        st.tuples(st.just("faulty"), _FAULTS),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("rival"), st.sampled_from(["append", "delete", "optimize", "set"])),
        st.tuples(st.just("meanwhile"), st.sampled_from(["append", "delete", "optimize", "set"])),
    ),
    max_size=12,
)


class _Producer:
    """Numbered events, one row each, of which the producer knows nothing but the number."""

    def __init__(self, table: str, *, saves: bool) -> None:
        self.table, self.store = table, FaultyLogStore(LocalLogStore())
        self.saves = saves
        self.next = 0
        self.acknowledged = -1
        self.a = self.open()

    def open(self) -> Appender:
        log = DeltaLog(self.table, self.store, DeltaConf(), ManualClock())
        saves = 0 if self.saves else None
        a = appender(log, app_id="producer", every="24h", save_every=saves, patience="5s")
        assert a.last_seq >= self.acknowledged
        self.next = a.last_seq + 1
        return a

    def reopen(self) -> None:
        """As after a crash: nothing is closed, and what was not acknowledged is sent again."""
        self.a._intake.stop(AppenderStoppedError("crashed"))
        self.store.writes.clear()
        self.store.before_write = None
        for each in self.a._threads:
            each.join()
        self.a = self.open()

    def append(self, count: int, faults: Sequence[Fault] = ()) -> None:
        def work() -> None:
            for _ in range(count):
                ticket = self.a.append([{"id": self.next}], seq=self.next)
                self.next += 1
                if self.saves:
                    ticket.wait_saved(60)

        self.tried(work, faults)

    def flush(self, faults: Sequence[Fault]) -> None:
        self.tried(lambda: self.a.flush(), faults)

    def tried(self, work: Callable[[], object], faults: Sequence[Fault]) -> None:
        self.store.writes.extend(faults)
        try:
            work()
        except AppenderStoppedError:
            self.acknowledged = max(self.acknowledged, self.a.last_seq)
            self.reopen()
        self.store.writes.clear()
        self.acknowledged = max(self.acknowledged, self.a.last_seq)

    def finish(self) -> None:
        while True:
            try:
                self.a.close()
            except AppenderStoppedError:
                self.reopen()
                continue
            self.acknowledged = max(self.acknowledged, self.a.last_seq)
            return


@settings(max_examples=examples(24), deadline=None)
@given(_STEPS, st.booleans())
def test_each_event_is_there_once(steps: list[tuple[str, object]], saves: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/t"
        create_table(table, "id bigint")
        producer, others = _Producer(table, saves=saves), 0

        def rival(what: object) -> None:
            nonlocal others
            if what == "append":
                others += 1
                write_arrow(table, {"id": [-others]}, mode="append")
            elif what == "delete":
                others = 0
                delete_rows(table, "id < 0")
            elif what == "optimize":
                optimize(table)
                vacuum(table)
            else:
                set_properties(table, {"delta.logRetentionDuration": f"interval {others} days"})

        def meanwhile(what: object) -> Callable[[str], None]:
            def once(_: str) -> None:
                producer.store.before_write = None
                rival(what)

            return once

        for step, value in steps:
            match step:
                case "append":
                    producer.append(int(str(value)))
                case "flush":
                    assert isinstance(value, list)
                    producer.flush(value)
                case "faulty":
                    assert isinstance(value, list)
                    producer.append(1, value)
                case "reopen":
                    producer.reopen()
                case "rival":
                    rival(value)
                case _:
                    producer.store.before_write = meanwhile(value)
            there = [each for each in read_arrow(table)["id"].to_pylist() if each >= 0]
            assert len(there) == len(set(there)), step
            if not saves:  # else they come once the appender is opened or flushed
                assert set(range(producer.acknowledged + 1)) <= set(there), step
        producer.append(1)
        producer.finish()
        producer.store.deliver_late()
        there = sorted(each for each in read_arrow(table)["id"].to_pylist() if each >= 0)
        assert there == list(range(producer.acknowledged + 1))
        assert sum(each < 0 for each in read_arrow(table)["id"].to_pylist()) == others
