"""Checks of reading, listing and failing over HTTP: complete, or an error, and in bounded time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.logstores.conformance.checks.expect import expect, expect_equal, names, read_all
from lakelog.logstores.conformance.http.scene import secrets_shown
from lakelog.logstores.conformance.http.writes import HttpChecks
from lakelog.logstores.conformance.processes.racers import payload
from lakelog.logstores.errors import LogStoreError
from lakelog.logstores.threads import WRITES, at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.conformance.http.scene import Scene
    from lakelog.logstores.contract import LogStore

TORN_REPLIES = ("cut_reply:20", "cut_reply", "tear_reply", "drop_reply", "hang_reply", "tell:503")
PAGES = ("html:200", "html:403", "html:502")
LINES = payload(5, 5000)


class HttpReadChecks(HttpChecks):
    """Results are complete, or an error that claims no more than is known."""

    def test_a_torn_reading_is_repeated_or_an_error(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """A reply that ends early never passes for the end of the file."""
        with self.scene(behind, endpoint, root) as scene:
            path = scene.path()
            scene.put(path, LINES)
            for fault in TORN_REPLIES:
                scene.harm_read(fault, path)
                _true_or_error(scene.read(path), LINES, f"reading after {fault}")
                scene.happened(fault)
            expect_equal(scene.read(path), LINES, "a reading when all is well again")

    def test_a_torn_listing_is_repeated_or_an_error(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """A reply that ends early never passes for the end of the folder."""
        with self.scene(behind, endpoint, root) as scene:
            wanted = _fill(scene, 40)
            for fault in TORN_REPLIES:
                scene.harm_listing(fault)
                _true_or_error(scene.names(), wanted, f"listing after {fault}")
                scene.happened(fault)
            expect_equal(scene.names(), wanted, "a listing when all is well again")

    def test_a_second_page_that_is_lost_does_not_end_the_listing(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """A page lost after the first thousands of entries is repeated, or an error."""
        if not self.two_pages:
            self.undeclared = "two_pages is False: no listing of two pages was made"
            return
        with self.scene(behind, endpoint, root) as scene:
            wanted = _fill(scene, self.dialect.page + 50)
            for fault in ("drop_reply", "tear_reply", "tell:503"):
                scene.harm_listing("delay:0")  # the first page, unharmed
                scene.harm_listing(fault)
                _true_or_error(scene.names(), wanted, f"listing when the second page met {fault}")
                scene.happened(fault)
            expect_equal(scene.names(), wanted, "a listing of two pages when all is well again")

    def test_slow_replies_are_waited_for(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Replies that arrive in pieces over half a second are read completely."""
        with self.scene(behind, endpoint, root) as scene:
            path = scene.path()
            fault = "slow:0.5"
            scene.harm_create(fault, path)
            expect_equal(scene.write(path, LINES), None, "a slow create")
            scene.happened(fault)
            scene.harm_read(fault, path)
            expect_equal(scene.read(path), LINES, "a slow reading")
            scene.happened(fault)
            scene.harm_listing(fault)
            expect_equal(scene.names(), [path.rpartition("/")[2]], "a slow listing")
            scene.happened(fault)

    def test_a_page_of_a_web_proxy_is_no_answer(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """An HTML reply is never taken for success, lines, or an empty folder."""
        with self.scene(behind, endpoint, root) as scene:
            (name,) = _fill(scene, 1)
            old = f"{scene.folder}/{name}"
            for fault in PAGES:
                scene.harm_read(fault, old)
                _true_or_error(scene.read(old), ["x"], f"reading after {fault}")
                scene.happened(fault)
                _lists_or_error(scene, fault, name)
                path = scene.path()
                scene.harm_create(fault, path)
                outcome = scene.write(path, ["mine"])
                if isinstance(outcome, Exception):
                    _expect_os_error(outcome, f"a create after {fault}")
                else:
                    expect_equal(scene.truth(path), ["mine"], f"the file after {fault}")
                scene.happened(fault)

    def test_an_endpoint_that_is_down_is_an_error_in_bounded_time(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Down is neither "not found" nor "exists"; when it is back, the same store works."""
        with self.scene(behind, endpoint, root) as scene:
            old, new = scene.path(), scene.path()
            expect_equal(scene.write(old, ["old"]), None, "a create before")
            fresh = behind(scene.proxy.url)  # one that never spoke with the service
            stores = [scene.store, fresh]
            with scene.proxy.outage():
                outcomes = scene.attempt_all(
                    [lambda store=store: read_all(store, old) for store in stores]
                    + [lambda store=store: names(store, scene.folder + "/") for store in stores]
                    + [lambda: fresh.write(new, ["new"])]
                )
            for outcome in outcomes:
                _expect_os_error(outcome, "an operation while the service was down")
            fresh.close()
            expect_equal(scene.read(old), ["old"], "a reading when it is back")
            if not isinstance(outcomes[-1], LogStoreError):  # else the outcome is unknown
                expect_equal(scene.truth(new), None, "the file whose create failed")
                expect_equal(scene.write(new, ["new"]), None, "a create when it is back")

    def test_credentials_that_expire_are_renewed_or_an_error(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Expired is neither "not found" nor "exists"; with good ones the same store works."""
        with self.scene(behind, endpoint, root) as scene:
            (name,) = _fill(scene, 1)
            old = f"{scene.folder}/{name}"
            for expired in self.dialect.expired:
                fault = f"refuse:{expired}"
                scene.harm_read(fault, old)
                _true_or_error(scene.read(old), ["x"], f"reading after {fault}")
                scene.happened(fault)
                _lists_or_error(scene, fault, name)
                path = scene.path()
                scene.harm_create(fault, path)
                outcome = scene.write(path, ["mine"])
                scene.happened(fault)
                if isinstance(outcome, Exception):
                    _expect_os_error(outcome, f"a create after {fault}")
                    expect_equal(scene.truth(path), None, f"the file after {fault}")
                    expect_equal(scene.write(path, ["mine"]), None, "the same create afterwards")
                expect_equal(scene.truth(path), ["mine"], "the file afterwards")

    def test_no_error_of_the_transport_shows_a_secret(
        self, behind: Callable[[str], LogStore], endpoint: str, root: str
    ) -> None:
        """Keys, tokens and passwords of the conf are in no message, whatever fails."""
        with self.scene(behind, endpoint, root) as scene:
            old = scene.path()
            scene.put(old, ["old"])
            errors: list[Any] = []
            for fault in [f"refuse:{expired}" for expired in self.dialect.expired]:
                new = scene.path()
                scene.harm_create(fault, new)
                scene.harm_read(fault, old)
                scene.harm_listing(fault)
                errors += [scene.write(new, ["x"]), scene.read(old), scene.names()]
                scene.happened(fault)
            new = scene.path()
            with scene.proxy.outage():
                errors += scene.attempt_all(
                    [
                        lambda: read_all(scene.store, old),
                        lambda: names(scene.store, scene.folder + "/"),
                        lambda: scene.store.write(new, ["x"]),
                    ]
                )
            for error in errors:
                if isinstance(error, BaseException):
                    shown = secrets_shown(scene.store, error)
                    expect(not shown, f"{type(error).__name__} shows the values of {shown}")


def _fill(scene: Scene, count: int) -> list[str]:
    """Make files bypassing the proxy; return their names."""
    paths = [scene.path() for _ in range(count)]
    at_once(lambda path: scene.put(path, ["x"]), paths, WRITES, "fill")
    return [path.rpartition("/")[2] for path in paths]


def _true_or_error(outcome: Any, wanted: Any, what: str) -> None:
    if isinstance(outcome, Exception):
        _expect_os_error(outcome, what)
    else:
        expect_equal(outcome, wanted, what)


def _lists_or_error(scene: Scene, fault: str, name: str) -> None:
    scene.harm_listing(fault)
    listed = scene.names()
    if isinstance(listed, Exception):
        _expect_os_error(listed, f"listing after {fault}")
    else:
        expect(name in listed, f"listing after {fault} left out {name}")
    scene.happened(fault)


def _expect_os_error(outcome: Any, what: str) -> None:
    """An error that claims nothing about files."""
    expect(
        isinstance(outcome, OSError | LogStoreError)
        and not isinstance(outcome, FileNotFoundError | FileExistsError),
        f"{what}: wanted an OSError that says what failed, got {type(outcome).__name__}: {outcome}",
    )
