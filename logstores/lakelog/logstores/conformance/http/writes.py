"""Checks of writes over HTTP when the reply, the request or the service gets lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lakelog.logstores.conformance.checks.expect import expect, expect_equal
from lakelog.logstores.conformance.http.scene import ALWAYS, Scene, set_scene
from lakelog.logstores.conformance.http_dialects import S3, HttpDialect
from lakelog.logstores.conformance.processes.racers import payload
from lakelog.logstores.errors import CommitOutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from lakelog.logstores.contract import LogStore

LOST_REPLIES = ("drop_reply", "cut_reply", "hang_reply", "tell:500", "tell:503")
"""The work is done, and the client does not hear of it."""
FOREIGN_ANSWERS = (
    *(f"page:{status}" for status in (200, 302, 400, 403, 404, 429, 502)),
    *(f"tell:{status}" for status in (400, 401, 403, 404, 405, 408, 409, 413, 429, 502)),
)
"""The work is done, and something in between answers: with a page, or without the service's code.
A bare 412 is left out, which every service takes for its own."""
LOST_REQUESTS = ("reset", "drop_request")
"""The work is not done, and the client can't know."""


class HttpChecks:
    """What the checks have in common."""

    dialect: ClassVar[HttpDialect] = S3
    """The service's protocol: `S3`, `AZURE`, `GCS`, or one of your own."""
    patience: ClassVar[float] = 120.0
    """Seconds after which an operation counts as hanging."""
    two_pages: ClassVar[bool] = True
    """Whether to make more files than a page of a listing has, which may be some thousands."""

    undeclared: str = ""
    """What a check left out, and why."""

    def scene(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> AbstractContextManager[Scene]:
        """Two stores, the proxy between, and a new folder."""
        return set_scene(behind, endpoint, root, self.dialect, self.patience)


class HttpWriteChecks(HttpChecks):
    """One write is one file, whatever the way to the service does."""

    def test_a_create_whose_reply_is_lost_is_known_as_ours(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """The service did the work and the reply got lost: `write` returns, with our bytes."""
        with self.scene(behind, endpoint, root) as scene:
            for number, fault in enumerate(LOST_REPLIES):
                _lands(scene, fault, payload(number))

    def test_an_answer_that_is_not_the_services_own_proves_nothing(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """The service did the work and a gateway answered: `write` finds out, and returns."""
        with self.scene(behind, endpoint, root) as scene:
            for number, fault in enumerate(FOREIGN_ANSWERS):
                _lands(scene, fault, payload(number))

    def test_losing_two_replies_is_no_conflict_either(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Losing the answer to the repeated request as well does not matter either."""
        with self.scene(behind, endpoint, root) as scene:
            _lands(scene, "drop_reply", ["mine"], times=2)

    def test_a_lost_reply_does_not_make_a_rivals_file_ours(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """A rival has the name, with the same bytes: `FileExistsError`, reply or no reply."""
        with self.scene(behind, endpoint, root) as scene:
            for number, fault in enumerate(LOST_REPLIES):
                path, lines = scene.path(), payload(number)
                scene.put(path, lines)
                scene.harm_create(fault, path)
                outcome = scene.write(path, lines)
                # A store may look before it writes, and then no create is there to be harmed.
                _raised(outcome, FileExistsError, f"a create of a rival's name after {fault}")
                scene.proxy.disarm()
                expect_equal(scene.truth(path), lines, f"the rival's file after {fault}")

    def test_a_request_that_got_lost_is_repeated(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """The service never heard of the request: `write` returns, with our bytes."""
        with self.scene(behind, endpoint, root) as scene:
            for number, fault in enumerate(LOST_REQUESTS):
                _lands(scene, fault, payload(number))

    def test_a_busy_service_is_asked_again(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Refused for now (429, 5xx, S3's 409): `write` waits, repeats, and returns."""
        with self.scene(behind, endpoint, root) as scene:
            for number, busy in enumerate(self.dialect.busy):
                _lands(scene, f"refuse:{busy}", payload(number), times=2)

    def test_a_request_delivered_twice_is_no_conflict(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """The network delivers a create twice; the second answer is not trusted blindly."""
        with self.scene(behind, endpoint, root) as scene:
            _lands(scene, "twice", ["mine"])

    def test_an_overwrite_survives_what_gets_lost(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """An overwrite is repeated until it is acknowledged, and leaves the new file."""
        with self.scene(behind, endpoint, root) as scene:
            for number, fault in enumerate((*LOST_REPLIES, *LOST_REQUESTS)):
                _lands(scene, fault, payload(number), over=["old"])

    def test_a_write_that_was_refused_is_known_as_not_made(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Refused to the last: `OSError`, not "unknown", not "exists"; the name stays free."""
        with self.scene(behind, endpoint, root) as scene:
            for refused in self.dialect.refused:
                path, fault = scene.path(), f"refuse:{refused}"
                scene.harm_create(fault, path, times=ALWAYS)
                outcome = scene.write(path, ["mine"])
                _raised(outcome, OSError, f"a create that only ever met {fault}")
                expect(
                    not isinstance(outcome, FileExistsError | FileNotFoundError),
                    f"a create that only ever met {fault} became {_outcome_text(outcome)}",
                )
                scene.happened(fault)
                expect_equal(scene.truth(path), None, f"the file after {fault}")
                _returned(scene.write(path, ["later"]), "the same create when all is well again")

    def test_a_request_that_may_land_later_leaves_the_outcome_unknown(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """A request is still in flight when the store gives up: `CommitOutcomeUnknownError`."""
        with self.scene(behind, endpoint, root) as scene:
            path = scene.path()
            scene.harm_create("hold", path)
            scene.harm_create(f"refuse:{self.dialect.refused[0]}", path, times=ALWAYS)
            outcome = scene.write(path, ["mine"])
            scene.happened("hold")
            scene.proxy.release()
            expect_equal(scene.truth(path), ["mine"], "the file that landed after all")
            _raised(
                outcome, CommitOutcomeUnknownError, "a create that landed after it was given up"
            )

    def test_a_service_that_dies_in_mid_write_leaves_the_outcome_unknown(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """It did the work and can't be reached any more: `CommitOutcomeUnknownError`, in time."""
        with self.scene(behind, endpoint, root) as scene:
            path = scene.path()
            scene.harm_create("die", path)
            outcome = scene.write(path, ["mine"])
            scene.proxy.come_back()
            scene.happened("die")
            _raised(outcome, CommitOutcomeUnknownError, "a create whose service died")
            expect_equal(scene.truth(path), ["mine"], "the file when the service is back")
            _raised(scene.write(path, ["again"]), FileExistsError, "another create of that name")
            _returned(scene.write(scene.path(), ["next"]), "the next create")


def _lands(
    scene: Scene, fault: str, lines: list[str], *, times: int = 1, over: list[str] | None = None
) -> None:
    """A write that meets a fault returns, and its file is there; `over` a file that was there."""
    path = scene.path()
    if over is not None:
        scene.put(path, over)
    scene.harm_create(fault, path, times=times)
    outcome = scene.write(path, lines, overwrite=over is not None)
    count = "" if times == 1 else f" ({times} times)"
    _returned(outcome, f"{'a create' if over is None else 'an overwrite'} after {fault}{count}")
    scene.happened(fault)
    expect_equal(scene.truth(path), lines, f"the file after {fault}")


def _returned(outcome: Any, what: str) -> None:
    if isinstance(outcome, BaseException):
        expect(False, f"{what} did not return: {_outcome_text(outcome)}")


def _raised(outcome: Any, kind: type[Exception], what: str) -> None:
    expect(
        isinstance(outcome, kind), f"{what}: wanted {kind.__name__}, got {_outcome_text(outcome)}"
    )


def _outcome_text(outcome: Any) -> str:
    if isinstance(outcome, BaseException):
        return f"{type(outcome).__name__}: {outcome}"
    return "no exception"
