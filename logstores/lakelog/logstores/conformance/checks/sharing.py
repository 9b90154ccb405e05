"""Checks of one store shared by many: threads, forks, other processes; and of what it reveals."""

from __future__ import annotations

import base64
import secrets
import traceback
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    PromiseBrokenError,
    expect,
    expect_equal,
    fresh_folder,
    names,
    read_all,
    read_or_none,
)
from lakelog.logstores.conformance.processes.children import Child
from lakelog.logstores.conformance.processes.racers import payload
from lakelog.logstores.settings import masked
from lakelog.logstores.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.logstores.contract import LogStore

SECRET_KEYS = (
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.azure.account.key",
    "spark.lakelog.conformance.password",
)
"""Keys under which users keep secrets; a store reads those that it knows."""
SHORTEST_SECRET = 6
"""Characters: a shorter value occurs in any text."""


class SharingChecks(Checks):
    """Safe for threads, forks and processes; silent about secrets."""

    def test_threads_share_one_instance(self, store: LogStore, root: str) -> None:
        """Many threads write, read and list through one instance, each with correct results."""
        folder = fresh_folder(store, root)
        files = min(4, self.appends)

        def work(who: int) -> None:
            lines, hint = payload(who, 300), f"{folder}/_hint-{who}"
            for number in range(files):
                path = f"{folder}/{who:010d}{number:010d}.json"
                store.write(path, lines)
                expect_equal(read_all(store, path), lines, f"what thread {who} reads of its own")
                store.write(hint, [f"{who} {number}"], overwrite=True)
                expect_equal(read_all(store, hint), [f"{who} {number}"], f"the hint of {who}")
                mine = [
                    name for name in names(store, f"{folder}/{who:010d}") if name < f"{who:010d}a"
                ]
                expect_equal(len(mine), number + 1, f"the files of thread {who} in its listing")

        run_together([partial(work, who) for who in range(self.race_threads)])
        found = [name for name in names(store, folder + "/0") if name.endswith(".json")]
        expect_equal(len(found), files * self.race_threads, "the number of files of all threads")

    def test_a_forked_store_works(self, store: LogStore, root: str) -> None:
        """After a fork, parent and child can both go on using the store instance."""
        folder = fresh_folder(store, root)
        # In a process of its own: a fork of this one would copy locks that threads hold.
        with Child("forked:fork_and_use", store, folder) as child:
            expect_equal(_answer_of(child), "fine", "what a fork of the store's process met")
        if self.shared_with_processes(store, folder):
            for name in ("0.json", "1.json", "2.json"):
                expect_equal(read_or_none(store, f"{folder}/{name}"), [name], "the file of a fork")
        self.undeclared = ""  # that it works after a fork is promised by every store

    def test_another_process_sees_every_write_before_it(self, store: LogStore, root: str) -> None:
        """Right after a write, a process that looked before it lists and reads the file."""
        folder = fresh_folder(store, root)
        store.write(f"{folder}/{0:020d}.json", ["0"])
        if not self.shared_with_processes(store, folder):
            return
        with Child("observers:observe", store) as child:
            wanted: list[str] = []
            for number in range(min(12, self.watched_writes)):
                name = f"{number:020d}.json"
                path = f"{folder}/{name}"
                if number:
                    child.tell([folder + "/0", path])
                    expect_equal(_answer_of(child), [wanted, None], "what it sees before a write")
                    store.write(path, [str(number)])
                wanted.append(name)
                child.tell([folder + "/0", path])
                expect_equal(
                    _answer_of(child), [wanted, [str(number)]], "what it sees after a write"
                )

    def test_no_error_shows_a_secret(self, store: LogStore, root: str) -> None:
        """Keys, tokens and passwords of the conf are in no error, not in `repr`, no setting."""
        folder = fresh_folder(store, root)
        store.write(folder + "/0.json", ["x"])
        false = {
            key: base64.b64encode(secrets.token_bytes(32)).decode()
            for key in {*SECRET_KEYS, *_secret_keys(store.conf)}
        }
        confs: list[Mapping[str, str]] = [store.conf]
        confs += [{**store.conf, "spark.lakelog.store.retry.timeBudget": "2", **false}]
        for conf in confs:
            for error in _failures(type(store), conf, folder):
                shown = "".join(traceback.format_exception(error)) + repr(error)
                for key in _secret_keys(conf):
                    expect(
                        conf[key] not in shown,
                        f"the value of {key} is in the message of a {type(error).__name__}",
                    )
        for conf in confs:
            _expect_no_secret_setting(type(store), conf)
        for key in _secret_keys(store.conf):
            expect(store.conf[key] not in repr(store), f"repr of the store has the value of {key}")


def _answer_of(child: Child) -> Any:
    try:
        return child.hear()
    except EOFError as error:
        raise PromiseBrokenError(str(error)) from None


def _secret_keys(conf: Mapping[str, str]) -> list[str]:
    return [
        key
        for key, value in conf.items()
        if masked(key, value) != value and len(value) >= SHORTEST_SECRET
    ]


def _expect_no_secret_setting(make: type[LogStore], conf: Mapping[str, str]) -> None:
    try:
        shown = dict(make(conf).settings())
    except Exception:  # noqa: BLE001, RUF100  # what false secrets raise was looked into before
        return
    for key in _secret_keys(conf):
        named = [name for name, value in shown.items() if conf[key] in value]
        expect(not named, f"the value of {key} is in settings(), under {named}")


def _failures(make: type[LogStore], conf: Mapping[str, str], folder: str) -> list[BaseException]:
    """What operations raise that must fail, and others that fail for want of a right secret."""
    try:
        store = make(conf)
    except Exception as error:  # noqa: BLE001, RUF100  # whatever it is, it is looked into
        return [error]
    actions: list[Callable[[], Any]] = [
        lambda: read_all(store, folder + "/0.json"),
        lambda: read_all(store, folder + "/none.json"),
        lambda: names(store, folder + "/none/"),
        lambda: store.write(folder + "/0.json", ["y"]),
        lambda: store.write(folder + "/1.json", ["y"]),
        lambda: read_all(store, "no-such-scheme://x/y"),
    ]
    errors: list[BaseException] = []
    for action in actions:
        try:
            action()
        except Exception as error:  # noqa: BLE001, RUF100  # whatever it is, it is looked into
            errors.append(error)
    with suppress(OSError):
        store.close()
    return errors
