"""Does exclusive create have one winner here? First one writer after another, then races."""

from __future__ import annotations

import enum
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.object_store.race import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakelog.logstores.object_store.contenders import Contender

_NOT_IMPLEMENTED: Final = 501
_PADDING: Final = "x" * 200
"""Fills a body to about the size of a small commit."""
_TRIES_ALONE: Final = 3


class CreateVerdict(enum.StrEnum):
    """What the probe saw. None of them means "safe"."""

    NO_FAILURE_SEEN = "no-failure-seen"
    IGNORED = "ignored"
    """A second create of one name succeeded, long after the first: the condition is not read."""
    NOT_ATOMIC = "not-atomic"
    """Creates one after another are refused; of concurrent ones, more than one succeeds."""
    REFUSED = "refused"
    """The storage says that it can't (HTTP 501)."""
    UNDECIDED = "undecided"
    """Too few answers to say anything."""


@dataclass(frozen=True, slots=True)
class CreateProbe:
    """The verdict and its evidence."""

    verdict: CreateVerdict
    writers: int
    rounds: int = 0
    """Races that were run."""
    failures: int = 0
    """Races with several winners, or whose winner's bytes were not what was stored."""
    unanswered: int = 0
    """Writers, of all races, that got no answer or one that settles nothing."""
    undecided: int = 0
    """Races in which no writer was answered with success."""
    winners: Mapping[int, int] = field(default_factory=dict)
    """Number of winners -> number of races."""
    pre_sent: bool = False
    """Whether the requests were made to arrive together."""
    reason: str = ""
    """For `REFUSED` and `UNDECIDED`: what was said."""

    @property
    def is_failure(self) -> bool:
        """Whether commits can be lost here."""
        return self.verdict in (
            CreateVerdict.IGNORED,
            CreateVerdict.NOT_ATOMIC,
            CreateVerdict.REFUSED,
        )

    def sentence(self) -> str:
        """What was seen, for people."""
        races = f"{self.rounds} races of {self.writers} writers"
        if self.pre_sent:
            races += ", whose requests were made to arrive together"
        if self.verdict is CreateVerdict.IGNORED:
            return (
                "IGNORES the condition: a second create of one name was answered with success "
                "and replaced the first"
            )
        if self.verdict is CreateVerdict.REFUSED:
            return f"REFUSES conditional creates: {self.reason}"
        if self.verdict is CreateVerdict.UNDECIDED:
            return f"undecided: {self.reason}"
        if self.verdict is CreateVerdict.NOT_ATOMIC:
            worst = max(self.winners, default=0)
            return (
                f"NOT ATOMIC: in one race, up to {worst} writers got a reply that they created "
                f"the file; {self.failures} failed of {races}"
            )
        silent = f"; {self.unanswered} requests got no clear answer" if self.unanswered else ""
        return f"no failure seen in {races}{silent}"


def probe_exclusive_create(
    contender: Contender,
    *,
    rounds: int,
    writers: int,
    seconds: float = 60.0,
    stop_early: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> CreateProbe:
    """Create one name twice, then race for others; judge by who won and by what is stored.

    Args:
        contender: where and how.
        rounds: races to run.
        writers: in each race.
        seconds: after which no new race starts.
        stop_early: end at the first race that goes wrong.
        tell: called with the number of races done.

    Raises:
        OSError: the storage refuses to create or to read, with or without other writers.
    """
    # Numbers without a gap, as commits have: a store may look for the one before.
    numbers = count()
    alone = _alone(contender, numbers, writers)
    if alone is not None:
        return alone
    winners: Counter[int] = Counter()
    failures = undecided = unanswered = 0
    deadline = time.monotonic() + seconds
    for done in range(1, rounds + 1):
        number = next(numbers)
        texts = [_text(number, writer) for writer in range(writers)]
        outcomes = contender.race(number, texts)
        won = [text for text, o in zip(texts, outcomes, strict=False) if o is Outcome.WON]
        winners[len(won)] += 1
        unanswered += outcomes.count(Outcome.UNANSWERED)
        if not won:
            undecided += 1
        elif len(won) > 1 or contender.stored(number) != won[0]:
            failures += 1
        tell(done)
        if (failures and stop_early) or time.monotonic() > deadline:
            break
    run = sum(winners.values())
    verdict, reason = CreateVerdict.NO_FAILURE_SEEN, ""
    if failures:
        verdict = CreateVerdict.NOT_ATOMIC
    elif undecided * 2 > run:
        verdict = CreateVerdict.UNDECIDED
        reason = f"in {undecided} of {run} races no writer got a reply saying it won"
    return CreateProbe(
        verdict,
        writers,
        rounds=run,
        failures=failures,
        unanswered=unanswered,
        undecided=undecided,
        winners=dict(sorted(winners.items())),
        pre_sent=contender.pre_sent,
        reason=reason,
    )


def _alone(contender: Contender, numbers: Iterator[int], writers: int) -> CreateProbe | None:
    """The failure seen when writers come one after another; `None` if there was none."""
    try:
        for number in islice(numbers, _TRIES_ALONE):
            first = _text(number, 0)
            if contender.create(number, first) is not Outcome.WON:
                continue
            again = contender.create(number, _text(number, 1))
            if again is Outcome.WON or contender.stored(number) != first:
                return CreateProbe(CreateVerdict.IGNORED, writers)
            if again is Outcome.LOST:
                return None
    except UnsafeLogStoreError as error:
        return CreateProbe(CreateVerdict.REFUSED, writers, reason=str(error))
    except OSError as error:
        if http_status(error) == _NOT_IMPLEMENTED:
            return CreateProbe(CreateVerdict.REFUSED, writers, reason=str(error))
        raise
    reason = f"{_TRIES_ALONE} creates, one after another, got no clear answer"
    return CreateProbe(CreateVerdict.UNDECIDED, writers, reason=reason)


def http_status(error: BaseException) -> int | None:
    """The HTTP status behind an error of an SDK, or behind one that was raised from it."""
    seen: BaseException | None = error
    while seen is not None:
        reply = getattr(seen, "response", None)
        if isinstance(reply, dict):  # botocore
            status = reply.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status if isinstance(status, int) else None
        for name in ("status_code", "code"):  # azure, google
            status = getattr(seen, name, None)
            if isinstance(status, int):
                return int(status)
        seen = seen.__cause__ or seen.__context__
    return None


def _text(number: int, writer: int) -> str:
    return f'{{"probe":"{number}.{writer}.{uuid.uuid4().hex}","padding":"{_PADDING}"}}'
