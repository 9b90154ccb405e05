from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.logstores import Capabilities, LogStore, MemoryLogStore, Scope


class MayShowParts(MemoryLogStore):
    def __init__(self, *, visible: bool) -> None:
        super().__init__()
        self.visible = visible

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, partial_write_visible=self.visible)


@pytest.mark.parametrize("visible", [True, False])
def test_whether_a_partial_write_is_visible_is_declared_once(visible: bool) -> None:
    store = MayShowParts(visible=visible)
    assert store.is_partial_write_visible("memory://t/_delta_log/0.json") is visible


def test_a_store_defines_six_members() -> None:
    assert LogStore.__abstractmethods__ == {
        "capabilities",
        "filesystem",
        "filesystem_path",
        "list_from",
        "read",
        "write",
    }


def test_what_is_for_people_alone_may_be_left_out() -> None:
    declared = Capabilities(
        exclusive_create=Scope.CLUSTER,
        partial_write_visible=False,
        atomic_overwrite=True,
        consistent_listing=True,
        durable=True,
    )
    assert not declared.ordered_listing
    assert declared.as_json()["ordered_listing"] is False
