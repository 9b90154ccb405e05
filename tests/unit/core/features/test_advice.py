from __future__ import annotations

import pytest

from lakelog.core.features.advice import activation, how_to_remove, remedy
from lakelog.core.features.registry import FEATURES, Feature, Support


def test_a_feature_is_switched_on_by_what_it_is_for_and_else_by_its_name_alone() -> None:
    assert activation(FEATURES["appendOnly"]) == "delta.appendOnly=true"
    assert activation(FEATURES["timestampNtz"]) == "timestamp_ntz columns, in a new table"
    assert activation(FEATURES["vacuumProtocolCheck"]) == ""


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("checkpointProtection", "ALTER TABLE … DROP FEATURE checkpointProtection"),
        ("geospatial-dev", "ALTER TABLE … DROP FEATURE `geospatial-dev`"),
        ("fromTheFuture", "ALTER TABLE … DROP FEATURE fromTheFuture"),
        (
            "variantType",
            "copy the rows to a new table without variantType, which can't be dropped",
        ),
    ],
)
def test_a_feature_that_we_lack_is_taken_out_by_a_client_that_has_it(name: str, way: str) -> None:
    assert how_to_remove(name) == way


def test_a_feature_that_binds_only_while_it_is_on_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feature = Feature("shiny", None, Support.INACTIVE, "delta.enableShiny=true")
    monkeypatch.setitem(FEATURES, "shiny", feature)
    assert (
        how_to_remove("shiny") == "ALTER TABLE … SET TBLPROPERTIES ('delta.enableShiny' = 'false')"
    )


def test_several_features_are_reported_in_one_sentence_each_once() -> None:
    text = remedy(["variantType", "checkpointProtection", "checkpointProtection"])
    assert text == f"{how_to_remove('checkpointProtection')}; {how_to_remove('variantType')}"
