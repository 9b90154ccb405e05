from __future__ import annotations

import json
from typing import Any

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.redirects import check_redirect
from support.tables import ID_SCHEMA

APP = DeltaConf({"spark.app.name": "nightly"})
SPEC = {"redirectSrc": "/old", "redirectDest": "/new"}
NAMES = ["delta.redirectReaderWriter-preview", "delta.redirectWriterOnly-preview"]


def moved(name: str, text: str) -> Metadata:
    return Metadata(id="t", schema_string=ID_SCHEMA, configuration={name: text})


def redirect(state: str = "REDIRECT-READY", *rules: Any) -> str:
    value = {"type": "PathBasedRedirect", "state": state, "spec": SPEC}
    return json.dumps(value | ({"noRedirectRules": list(rules)} if rules else {}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ["ENABLE-REDIRECT-IN-PROGRESS", "DISABLE-REDIRECT-IN-PROGRESS"])
def test_a_table_on_its_way_takes_no_commit(name: str, state: str) -> None:
    rule = {"allowedOperations": ["WRITE"]}
    with pytest.raises(DeltaAnalysisError, match="INTERMEDIATE_REDIRECT_STATE") as caught:
        check_redirect(moved(name, redirect(state, rule)), "WRITE", APP, "/old")
    assert caught.value.state == state
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"appName": "other", "allowedOperations": ["WRITE"]}],
        [{"appName": "nightly", "allowedOperations": ["DELETE"]}],
        ["nonsense"],
    ],
    ids=str,
)
def test_a_table_that_moved_says_where_to(rules: list[dict[str, object]]) -> None:
    with pytest.raises(DeltaAnalysisError, match="NO_REDIRECT_RULES_VIOLATED") as caught:
        check_redirect(moved(NAMES[0], redirect("REDIRECT-READY", *rules)), "WRITE", APP, "/old")
    assert '"redirectDest":"/new"' in str(caught.value)
    assert "nightly" in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [{"appName": "nightly", "allowedOperations": ["WRITE"]}, {"allowedOperations": ["WRITE"]}],
)
def test_a_rule_lets_an_application_work_where_the_table_was(rule: dict[str, object]) -> None:
    check_redirect(moved(NAMES[0], redirect("REDIRECT-READY", rule)), "WRITE", APP, "/old")


def test_what_is_not_redirected_passes_and_so_does_everything_where_the_session_says_so() -> None:
    check_redirect(None, "WRITE", APP, "/old")
    check_redirect(Metadata(id="t", schema_string=ID_SCHEMA), "WRITE", APP, "/old")
    skip = DeltaConf({"spark.databricks.delta.skipRedirectFeature": "true"})
    check_redirect(moved(NAMES[0], redirect()), "WRITE", skip, "/old")


@pytest.mark.parametrize("text", ["{", "[]", "7"])
def test_a_redirect_that_can_t_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=NAMES[1]):
        check_redirect(moved(NAMES[1], text), "WRITE", APP, "/old")
