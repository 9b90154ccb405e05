"""A service that commits for several hosts, under every fault: no append is lost, none is doubled.

What is played is which of some clients, or which request at a service, goes on, how far, and what
happens to the step that it waits for. A step is a call of the storage, a request to the service, or
a wait for another. Requests are lost, come late, come twice; replies are lost, as are those of the
storage; clients die and services do, also in the middle of a version of several, and others begin;
processes that commit without a service come in between. Of the troubles at each step a day
has a sixth.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.commit.loop import CommitLoop
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.transaction import commit_service, service_commit
from lakelog.core.transaction.commit_service import Answer, CommitService, ServedLog
from lakelog.core.transaction.service_commit import ServiceCommits
from lakelog.core.wire import LostReplyError, NotSentError, Reply
from simulation.appends import Append, complaints
from simulation.scheduling import Actor, one_at_a_time, stops_before, to_the_end
from simulation.storage import ProcessStore, Storage
from simulation.world import SteadyClock
from support.examples import examples
from support.faults import Crash, Fault
from support.mutants import Mutant
from support.tables import created_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from support.days import OfTheDay

pytestmark = pytest.mark.soak

CLIENTS = 4
"""The last one commits without the service."""
_names = itertools.count()


@dataclass(frozen=True)
class Client:
    """A client goes on."""

    who: int
    until: str
    """The operation that it stops before; `one` is any."""
    fate: Fault = Fault.NONE


@dataclass(frozen=True)
class Request:
    """A request goes on at its service."""

    which: int
    """Of all that came, in their order."""
    until: str
    fate: Fault = Fault.NONE


Step = Client | Request | str


@dataclass
class _Asked:
    """A request at a service."""

    service: _Service
    answer: Answer | None = None
    actor: Actor | None = None

    @property
    def is_over(self) -> bool:
        return self.service.is_dead or (self.actor is not None and self.actor.is_done)


@dataclass
class _Service:
    store: ProcessStore
    commits: CommitService
    is_dead: bool = False


@dataclass
class _Client:
    store: ProcessStore
    conf: DeltaConf
    actor: Actor | None = None
    appends: list[Append] = field(default_factory=list)


class _Lock:
    """A lock that an actor waits for step by step."""

    def __init__(self, world: _World) -> None:
        self._world = world
        self._holder: threading.Thread | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.current_thread()
        while self._holder not in (None, me):
            self._world.wait_here()
        self._holder, self._depth = me, self._depth + 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None


class _World:
    """One history as it is played."""

    def __init__(self, jobs: int) -> None:
        name = f"service-commits-{next(_names)}"
        self.storage, self.clock, self._jobs = Storage(name), SteadyClock(), jobs
        self._here: dict[threading.Thread, tuple[Actor, _Client | _Service]] = {}
        self.clients = []
        for number in range(CLIENTS):
            served = {
                # Of its own, as a process remembers which service is away.
                "spark.lakelog.commit.service": f"http://{name}-{number}.invalid",
                "spark.lakelog.commit.service.token": "token",
            }
            conf = DeltaConf.from_mapping(served if number < CLIENTS - 1 else {})
            self.clients.append(_Client(ProcessStore(self.storage), conf))
            self.clients[-1].store.who = f"client {number}"
        self._services: list[_Service] = []
        self._asked: list[_Asked] = []
        self._late: list[bytes] = []

    @property
    def service(self) -> _Service:
        """The one that clients ask."""
        return self._services[-1]

    # What the modules ask of `time`.
    def monotonic(self) -> float:
        return self.clock.monotonic()

    def wait_here(self) -> None:
        """Let others go on."""
        self._here[threading.current_thread()][0].step("wait")

    def is_here(self) -> bool:
        return threading.current_thread() in self._here

    def log_here(self, table: str, conf: DeltaConf) -> ServedLog:
        """A log of the service that asks for it."""
        service = self._here[threading.current_thread()][1]
        log = ServedLog(table, service.store, conf, self.clock)
        log._lock = _Lock(self)
        return log

    def send(self, body: bytes) -> Reply:
        """A client asks; the fate of the step is that of the request, or of the reply."""
        actor, _ = self._here[threading.current_thread()]
        fate = actor.step("ask")
        if self.service.is_dead or fate in (Fault.OSERROR, Fault.SPURIOUS_EXISTS):
            raise NotSentError("injected")
        if fate is Fault.LATE_UNKNOWN:
            self._late.append(body)
        if fate in (Fault.LATE_UNKNOWN, Fault.LOST_UNKNOWN):
            raise LostReplyError("injected: the request is lost")
        asked = self._arrive(body)
        if fate is Fault.LANDS_CRASH:
            actor.is_dead = True
            raise Crash
        while fate is Fault.NONE and not asked.is_over:
            fate = actor.step("wait")
        if fate is not Fault.NONE or asked.answer is None or asked.service.is_dead:
            raise LostReplyError("injected: the reply is lost")
        return Reply(asked.answer.status, asked.answer.body, None, None)

    def _arrive(self, body: bytes) -> _Asked:
        asked = _Asked(self.service)

        def work(actor: Actor) -> None:
            self._here[threading.current_thread()] = actor, asked.service
            asked.answer = asked.service.commits.answer(body)

        asked.actor = Actor(work)
        self._asked.append(asked)
        return asked

    def _begin(self) -> None:
        service = _Service(ProcessStore(self.storage), CommitService([self.storage.table], {}))
        service.store.who = f"service {len(self._services)}"
        self._services.append(service)

    def _kill(self, service: _Service) -> None:
        service.is_dead = True
        asked = [each for each in self._asked if each.service is service]
        actors = [each.actor for each in asked if each.actor is not None]
        for actor in actors:
            actor.is_dead = True
        for actor in actors:
            if not actor.is_done:
                service.store.actor = actor
                actor.kill()

    def play(self, steps: Sequence[Step]) -> None:
        created_by(DeltaLog(self.storage.table, ProcessStore(self.storage), _ALONE, self.clock))
        self._begin()
        try:
            for step in steps:
                self._take(step)
            self._end()
            self.storage.deliver_late()
            self._deliver()
            self._end()
        finally:
            for service in self._services:
                self._kill(service)
            for client in self.clients:
                if client.actor is not None:
                    client.actor.kill()

    def _take(self, step: Step) -> None:
        match step:
            case Client():
                self._resume_client(self.clients[step.who], step.fate, stops_before(step.until))
            case Request() if step.which < len(self._asked):
                asked = self._asked[step.which]
                self._resume_request(asked, step.fate, stops_before(step.until))
            case Request():
                pass  # there is no such request
            case "a late write arrives":
                self.storage.deliver_late()
            case "late requests arrive":
                self._deliver()
            case "a while passes":
                self.clock.advance(50)
            case "the service is killed":
                self._kill(self.service)
            case "another service begins":
                self._begin()
                self.clock.advance(11)  # for so long one that was away is not asked
            case _:
                raise AssertionError(step)

    def _deliver(self) -> None:
        late, self._late = self._late, []
        if late and self.service.is_dead:
            self._begin()
        for body in late:
            self._arrive(body)

    def _resume_client(self, client: _Client, fate: Fault, until: Callable[[str], bool]) -> None:
        if client.actor is None:
            client.actor = client.store.actor = Actor(lambda actor: self._append(actor, client))
        client.actor.go_on(fate, until)

    def _append(self, actor: Actor, client: _Client) -> None:
        self._here[threading.current_thread()] = actor, client
        log = DeltaLog(self.storage.table, client.store, client.conf, self.clock)
        for number in range(self._jobs):
            client.appends.append(Append(f"{client.store.who}, {number}"))
            client.appends[-1].commit(log, self.storage)

    def _resume_request(self, asked: _Asked, fate: Fault, until: Callable[[str], bool]) -> None:
        actor, service = asked.actor, asked.service
        assert actor is not None
        if asked.is_over:
            return
        service.store.actor = actor
        actor.go_on(fate, until)
        if actor.is_dead:
            self._kill(service)

    def _end(self) -> None:
        def go_on() -> bool:
            clients = [c for c in self.clients if c.actor is None or not c.actor.is_done]
            requests = [each for each in self._asked if not each.is_over]
            for client in clients:
                self._resume_client(client, Fault.NONE, "wait".__eq__)
            for asked in requests:
                self._resume_request(asked, Fault.NONE, "wait".__eq__)
            return bool(clients or requests)

        to_the_end(go_on, self.clock)

    def complaints(self) -> list[str]:
        appends = itertools.chain.from_iterable(each.appends for each in self.clients)
        return complaints(self.storage, appends)


_ALONE = DeltaConf.from_mapping({})


def play(steps: Sequence[Step], jobs: int = 1) -> _World:
    """Play a history, and say what was wrong in it."""
    world = _World(jobs)
    wait = threading.Event.wait

    def waiting(event: threading.Event, timeout: float | None = None) -> bool:
        if not world.is_here():
            return wait(event, timeout)
        while not event.is_set():
            world.wait_here()
        return True

    class Future(concurrent.futures.Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            while not self.done():
                world.wait_here()
            return super().result(timeout)

    def send(_service: object, body: bytes, _token: str, _seconds: float) -> Reply:
        return world.send(body)

    with contextlib.ExitStack() as patches:
        patch = patches.enter_context
        patch(mock.patch.object(threading.Event, "wait", waiting))
        patch(mock.patch.object(commit_service, "Future", Future))
        patch(mock.patch.object(ServedLog, "for_table", world.log_here))
        patch(mock.patch.object(service_commit._Service, "send", send))
        patch(mock.patch.object(service_commit, "time", world))
        patch(one_at_a_time())
        try:
            world.play(steps)
            said = world.complaints()
        finally:
            world.storage.forget()
    assert not said, "\n".join([*said, *world.storage.story])
    return world


_ASKED: list[Step] = [Client(who, "ask") for who in range(CLIENTS - 1)]
_ASKED += [Client(who, "wait") for who in range(CLIENTS - 1)]
_TWO_WAIT: list[Step] = [*_ASKED, Request(0, "write"), Request(1, "wait"), Request(2, "wait")]
"""The first request is about to be a version, and two others wait for each other's."""
_GROUP: list[Step] = [*_TWO_WAIT, Request(0, "wait"), Request(0, "wait")]
"""The first one is over, and the second is about to commit for two."""
_MOST_STEPS = 9
"""From the first of a request that commits for two to its last."""
_DEATHS = (Fault.CRASH, Fault.LANDS_CRASH)
_LOSSES = tuple(fate for fate in Fault if not fate.name.endswith("CRASH"))
_GIVE_UP: list[Step] = [*[Client(1, "one", Fault.OSERROR), Client(1, "one")] * 3]
"""A client hears nothing, asks again, and at last goes on by itself."""
_RIVAL = Client(CLIENTS - 1, "wait")
_MEANWHILE: dict[str, list[Step]] = {
    "nothing": [],
    "a rival commits": [_RIVAL],
    "clients give up": [*_GIVE_UP, Client(1, "wait"), Client(1, "wait")],
    "a client gives up and is about to commit": [*_GIVE_UP, Client(1, "write")],
    "a client gives up, and a rival commits": [*_GIVE_UP, Client(1, "write"), _RIVAL],
    "the service is killed": ["the service is killed"],
    "the service is killed, and another begins": [
        *("the service is killed", "another service begins"),
        *(Client(1, "wait"), Client(2, "ask")),
    ],
    "another service begins beside it": [
        *("another service begins", *_GIVE_UP[:2], Client(1, "wait"), Request(3, "write")),
        *(Request(1, "wait"), Client(2, "one", Fault.OSERROR), Client(2, "wait")),
    ],
    "a late write arrives": [*_GIVE_UP, Client(1, "wait"), "a late write arrives"],
    "the time is over": [*["a while passes"] * 20, Request(1, "wait"), Client(1, "wait")],
}


def _services_in_trouble(meanwhile: str) -> Iterator[list[Step]]:
    """A service meets trouble at each step of a version of two."""
    for depth, fate in itertools.product(range(_MOST_STEPS), (*_DEATHS, *_LOSSES)):
        trouble = [*[Request(1, "one")] * depth, Request(1, "one", fate)]
        yield [*_GROUP, *trouble, *_MEANWHILE[meanwhile]]
        # Before it takes the step.
        yield [*_GROUP, *[Request(1, "one")] * depth, *_MEANWHILE[meanwhile], *trouble[-1:]]


@pytest.mark.parametrize("meanwhile", _MEANWHILE)
def test_a_service_in_trouble_at_any_step_loses_no_append_and_doubles_none(
    meanwhile: str, of_the_day: OfTheDay
) -> None:
    found = [*_services_in_trouble(meanwhile)]
    for steps in of_the_day(found, len(found) // 6, about=meanwhile):
        play(steps)


_AFTER: list[list[Step]] = [
    [],
    ["late requests arrive", Request(0, "write"), Client(0, "write")],
    ["late requests arrive", Request(0, "write"), Request(1, "wait"), Client(0, "wait")],
    ["another service begins"],
    [_RIVAL, "late requests arrive", Request(0, "wait"), Client(1, "wait")],
]


def _clients_in_trouble() -> Iterator[list[Step]]:
    """A client meets trouble as it asks, as it asks again, and as it commits by itself."""
    fates = (Fault.NONE, *_DEATHS, *_LOSSES)
    for first, second, after in itertools.product(fates, fates, _AFTER):
        asks = [Client(0, "ask"), Client(0, "one", first), Client(0, "ask", second)]
        yield [*asks, *after]
    late = [Client(0, "ask"), *[Client(0, "one", Fault.LATE_UNKNOWN)] * 3, Client(0, "write")]
    for fate, after in itertools.product(fates, _AFTER):
        yield [*late, *after, Client(0, "write", fate)]
        yield [*late, Client(0, "one", fate), *after]


def test_a_client_in_trouble_loses_no_append_and_doubles_none(of_the_day: OfTheDay) -> None:
    found = [*_clients_in_trouble()]
    for steps in of_the_day(found, len(found) // 6, about="clients"):
        play(steps)


def _clients_that_go_on() -> Iterator[list[Step]]:
    """A client commits by itself while its request waits, and the service hears of that version."""
    asked: list[Step] = [Client(who, until) for who in (0, 1) for until in ("ask", "wait")]
    waits = [*asked, Request(0, "write"), Request(1, "wait"), *_GIVE_UP, Client(1, "wait")]
    newcomer: list[Step] = [Client(2, "ask"), Client(2, "wait"), Request(2, "wait")]
    for fate, first in itertools.product((Fault.NONE, *_DEATHS, *_LOSSES), (1, 2)):
        yield [
            *waits,
            *newcomer,
            Request(0, "one", fate),
            Request(0, "wait"),
            Request(first, "wait"),
        ]


def test_a_client_that_goes_on_loses_no_append_and_doubles_none() -> None:
    for steps in _clients_that_go_on():
        play(steps)


_UNTIL = st.sampled_from(("one", "one", "wait", "write", "ask"))
_FATES = st.sampled_from([Fault.NONE] * 12 + list(Fault))


def _steps() -> st.SearchStrategy[list[Step]]:
    clients = st.builds(Client, st.integers(0, CLIENTS - 1), _UNTIL, _FATES)
    requests = st.builds(Request, st.integers(0, 5), _UNTIL, _FATES)
    events = st.sampled_from(
        [
            "a late write arrives",
            "late requests arrive",
            "a while passes",
            "the service is killed",
            "another service begins",
            "another service begins",
        ]
    )
    return st.lists(st.one_of(clients, clients, requests, requests, requests, events), max_size=60)


@settings(max_examples=examples(100))
@given(_steps(), st.sampled_from([[], _ASKED, _TWO_WAIT, _GROUP]))
def test_any_troubles_lose_no_append_and_double_none(
    steps: list[Step], begin: Sequence[Step]
) -> None:
    play([*begin, *steps], jobs=2)


def test_those_who_wait_are_one_version() -> None:
    world = play(_GROUP)
    first, second, third, _ = (each.appends[0].outcome for each in world.clients)
    assert first == 1
    assert second == third


def _nothing(*_: object) -> None:
    pass


def _no(*_: object) -> bool:
    return False


def _forgets(_commits: object, member: Any) -> None:
    member.share(None)


_MUTANTS = {
    Mutant("none looks for itself in what it lost to", CommitLoop, "_is_held_by", _no): (
        _clients_that_go_on
    ),
    Mutant("a service does not look in the log", ServedLog, "find", _nothing): _clients_in_trouble,
    Mutant("none looks before a version of several", ServedLog, "may_hold", _no): (
        _clients_that_go_on
    ),
    Mutant("a lost reply leaves nothing open", ServiceCommits, "_leave_open", _forgets): (
        _clients_in_trouble
    ),
}
"""And the histories that show it."""


def _play_all(found: Iterator[list[Step]]) -> None:
    for steps in found:
        play(steps)


@pytest.mark.one_day_in(4, 1)
@pytest.mark.parametrize("mutant", _MUTANTS, ids=str)
def test_the_histories_catch_a_service_where(mutant: Mutant) -> None:
    with mutant.patched(), pytest.raises(AssertionError):
        _play_all(_MUTANTS[mutant]())
