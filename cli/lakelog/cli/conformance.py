"""`lakelog conformance <uri>`: hold a store to its contract, on the storage itself."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.app import EXIT_CANNOT_RUN, EXIT_FINDING
from lakelog.cli.output import error_line, line, print_json, progress
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import refuse_name, table_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores import LogStore
    from lakelog.logstores.conformance import CheckResult, Report

_BUDGET: Final = "10"
"""Seconds for which the first write is repeated, if the conf does not say how long: a
mistyped address should not cost the stores' usual minute."""
_STYLES = {"ok": "green", "FAIL": "red", "n/d": "yellow", "n/r": "yellow"}


@click.command(short_help="Run the whole conformance kit on a storage.")
@uri_argument
@conf_options
@json_option
@click.option("--only", metavar="CHECK", multiple=True, help="One check. May be repeated.")
@click.option("--quick", is_flag=True, help="A quicker run: short listings, few races.")
@click.option("--keep", is_flag=True, help="Keep the files that the checks write.")
def command(
    uri: str,
    conf: dict[str, str],
    as_json: bool,
    only: tuple[str, ...],
    quick: bool,
    keep: bool,
) -> None:
    """Run the conformance kit: every promise of the LogStore contract, on the storage of URI.

    URI is a folder that exists or can be created. Everything happens in a new folder below it,
    lakelog-conformance-<uuid>, which is deleted at the end. A check of what the store does not
    declare says "n/d". Exit codes: 0 all kept, 1 a promise broken, 2 nothing could be run.
    """
    from lakelog.logstores import log_store_for
    from lakelog.logstores.conformance import LogStoreConformance, QuickConformance
    from lakelog.logstores.object_store.store import BUDGET_KEY

    suite = QuickConformance if quick else LogStoreConformance
    refuse_name(uri, conf)
    uri = table_uri(uri)
    root = _new_folder(uri)
    _refuse_unknown(suite, only)

    def make() -> LogStore:
        return log_store_for(uri, conf)

    _begin(lambda: log_store_for(uri, {BUDGET_KEY: _BUDGET, **conf}), root)
    try:
        report = _run(make, root, suite, only, talk=not as_json)
    finally:
        left = root if keep else _remove(make, root)
        if left and not keep:
            error_line(f"the files of the checks remain in {left}")
    if as_json:
        print_json(_document(report, uri, root, left, quick))
    else:
        _conclude(report, left if keep else "")
    if not report.ok:
        raise SystemExit(EXIT_FINDING)
    if len(report.not_run) == len(report.results):
        raise SystemExit(EXIT_CANNOT_RUN)


def _new_folder(uri: str) -> str:
    if "_delta_log" in uri.split("/"):
        raise click.UsageError(
            f"{uri} is inside the log of a table, and the checks write files. Name a folder "
            "outside of any table."
        )
    return f"{uri.rstrip('/')}/lakelog-conformance-{uuid.uuid4().hex}"


def _refuse_unknown(suite: type, only: tuple[str, ...]) -> None:
    from lakelog.logstores.conformance.runner import check_names

    try:
        check_names(suite, only or None)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _begin(make: Callable[[], LogStore], root: str) -> None:
    """One write, so that a storage that can't be reached is one error and not forty.

    Raises:
        OSError: it can't be written.
        LogStoreError: the conf is wrong, or the store refuses.
    """
    store = make()
    store.create_folder(root)
    store.write(f"{root}/.begin", ["conformance"])
    store.close()


def _run(
    make: Callable[[], LogStore],
    root: str,
    suite: type[Any],
    only: tuple[str, ...],
    *,
    talk: bool,
) -> Report:
    from lakelog.logstores.conformance import run_conformance
    from lakelog.logstores.resolution import class_path_of

    store = make()
    if talk:
        line(f"{class_path_of(type(store))} on {root}", "bold")
    store.close()
    with progress() as show:

        def tell(name: str, result: CheckResult | None) -> None:
            if result is None:
                show(name.replace("_", " "))
            elif talk:
                text = str(result)
                line(text, _STYLES[text.split()[0]])

        return run_conformance(make, root, suite=suite, only=only or None, progress=tell)


def _remove(make: Callable[[], LogStore], root: str) -> str:
    """Delete the folder. Returns what is left: nothing, or the folder and why."""
    from lakelog.logstores.conformance.cleanup import remove_folder

    store = make()
    problem = remove_folder(store, root)
    store.close()
    return f"{root}: {problem}" if problem else ""


def _conclude(report: Report, kept: str) -> None:
    undeclared = sum(result.ok and bool(result.undeclared) for result in report.results)
    done = len(report.results) - len(report.failures) - len(report.not_run) - undeclared
    not_run = f", {len(report.not_run)} not run" if report.not_run else ""
    line()
    line(
        f"{done} kept, {undeclared} not declared, {len(report.failures)} broken{not_run}",
        "green" if report.ok else "red",
    )
    if kept:
        line(f"the files are in {kept}")


def _document(report: Report, uri: str, root: str, left: str, quick: bool) -> dict[str, Any]:
    return {
        "uri": uri,
        "folder": root,
        "left": left or None,
        "quick": quick,
        "store": report.store,
        "capabilities": report.capabilities.as_json(),
        "ok": report.ok,
        "results": [
            {
                "check": result.name,
                "promise": result.promise,
                "ok": result.ok,
                "not_declared": result.undeclared or None,
                "not_run": result.not_run or None,
                "problem": result.problem,
                "seconds": round(result.seconds, 3),
            }
            for result in report.results
        ],
    }
