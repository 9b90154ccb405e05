"""How much the conformance kit asks of each store in `make test`, and in full, in `make kit`.

    class TestSomeLogStore(SizedConformance, race_rounds=15, large_megabytes=50):

names what it does in full; elsewhere a size is no larger than `SIZES`, at which each mutant of a
store (`tests/conformance/store_mutants.py`) still shows. An attribute of the class counts in both.
"""

from __future__ import annotations

import os
from types import FunctionType
from typing import Any, Final

import pytest

from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.conformance import LogStoreConformance
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.s3.client import S3Client
from support.examples import SEED

IN_FULL: Final = bool(SEED) or os.environ.get("LAKELOG_KIT") == "full"
PAGE: Final = 20
"""Entries of a page of a listing, where pages are short: fewer than the files of a long listing."""
SIZES: Final = {
    "many_files": 48,
    "large_megabytes": 12,
    "race_rounds": 8,
    "race_threads": 6,
    "race_processes": 2,
    "crash_rounds": 1,
    "model_examples": 4,
    "watched_megabytes": 10,
    "watched_writes": 6,
    "appends": 2,
    "unfinished_reads": 24,
}


class Sized:
    """Checks as large as the day needs them."""

    def __init_subclass__(cls, **in_full: int) -> None:
        """Set the sizes.

        Args:
            in_full: those that are not the kit's own in full.
        """
        super().__init_subclass__()
        for name in in_full if IN_FULL else SIZES:
            if name not in vars(cls):
                size = in_full.get(name, getattr(cls, name, SIZES[name]))
                setattr(cls, name, size if IN_FULL else min(size, SIZES[name]))


class SizedConformance(Sized, LogStoreConformance):
    """All of them."""


class ContributedConformance(
    SizedConformance,
    many_files=60,
    large_megabytes=6,
    race_rounds=5,
    race_processes=2,
    crash_rounds=1,
    model_examples=4,
):
    """For the stores of `contrib`, less in full too: how they list and upload is shared."""


def alike_in_other_processes(cls: type[Sized]) -> type[Sized]:
    """For those whose files another store's code makes: checks by processes are for the night."""
    for name in _WITH_PROCESSES:
        check: Any = getattr(cls, name)
        copy = FunctionType(check.__code__, check.__globals__, name)
        copy.__doc__ = check.__doc__
        setattr(cls, name, pytest.mark.nightly(copy))
    return cls


_WITH_PROCESSES: Final = (
    "test_a_forked_store_works",
    "test_another_process_sees_every_write_before_it",
    "test_a_writer_that_is_killed_leaves_all_or_nothing",
    "test_a_replacement_that_is_killed_leaves_the_old_or_the_new",
)


def short_pages(monkeypatch: pytest.MonkeyPatch, page: int = PAGE) -> None:
    """Let listings of object stores have pages of so many entries: thousands take a minute."""
    for client in (S3Client, AzureClient, GCSClient):
        monkeypatch.setattr(client, "page_size", page)
