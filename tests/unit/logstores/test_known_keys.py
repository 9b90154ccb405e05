"""Keys of lakelog and of Delta that are misspelt are told with the nearest that is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog.logstores import log_store_for
from lakelog.logstores.errors import LogStoreConfError, UnknownLogStoreKeyError
from lakelog.logstores.keys import LAKELOG_KEYS
from lakelog.logstores.known_keys import refuse_misspelt_keys
from support.examples import examples

REPOSITORY = Path(__file__).parents[3]
ROOTS = [REPOSITORY / root / "lakelog" for root in ("logstores", "core", "spark", "cli", "contrib")]
OURS = [key.name for key in LAKELOG_KEYS]
READ = [
    *OURS,
    "spark.lakelog.fsspec.options.anything",
    "spark.lakelog.azure.endpoint.account.dfs.core.windows.net",
]
OF_OTHERS = [
    "spark.lakelog.mine.password",
    "spark.databricks.delta.snapshotPartitions",
    "spark.databricks.data.volume",
    "spark.databricks.io.skipping.stringPrefixLength",
    "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName",
    "spark.delta.sharing.endpoint",
    "delta.logRetentionDuration",
    "spark.sql.sources.partitionOverwriteMode",
    "spark.hadoop.fs.s3a.endpoint",
    "lakelog.mine",
    "data.logs.path",
]


@st.composite
def misspelt(draw: st.DrawFn, names: list[str]) -> tuple[str, str]:
    """A name with one letter too few, too many or another, or two changed round."""
    name = draw(st.sampled_from(names))
    at = draw(st.integers(len("spark.") + 1, len(name) - 2))
    letter = draw(st.sampled_from("aeioxyz"))
    found = draw(
        st.sampled_from(
            [
                name[:at] + name[at + 1 :],
                name[:at] + letter + name[at:],
                name[:at] + letter + name[at + 1 :],
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],
                name[: len("spark.")] + name[len("spark.") :].lower(),
            ]
        )
    )
    return found, name


@settings(max_examples=examples(40), deadline=None)
@example(("spark.lakeloglog.maxBytes", "spark.lakelog.log.maxBytes"))
@given(misspelt([name for name in OURS if name != "spark.lakelog.replay"]))
def test_a_misspelt_key_is_refused_with_the_one_that_is_meant(case: tuple[str, str]) -> None:
    key, meant = case
    if key in OURS:
        return
    with pytest.raises(UnknownLogStoreKeyError) as caught:
        log_store_for("/tmp/t", {key: "1"})  # nothing is opened
    assert str(caught.value) == f"nothing reads the key {key}; did you mean {meant}?"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("spark.delta.logStor.class", "spark.delta.logStore.class"),
        ("spark.detla.logStore.s3.impl", "spark.delta.logStore.s3.impl"),
        ("delta.logSotre.s3.impl", "delta.logStore.s3.impl"),
        ("spark.databriks.delta.maxCommitAttempts", "spark.databricks.delta.maxCommitAttempts"),
        ("spark.lakelgo.commit.timeBudget", "spark.lakelog.commit.timeBudget"),
        ("spark.lakelgo.comit.timeBudget", "spark.lakelog.commit.timeBudget"),
        (
            "spark.io.detla.storage.S3DynamoDBLogStore.ddb.region",
            "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region",
        ),
    ],
)
def test_so_is_a_misspelt_beginning(key: str, meant: str) -> None:
    with pytest.raises(LogStoreConfError, match=re.escape(f"{key}; did you mean {meant}?")):
        log_store_for("/tmp/t", {key: "1"})  # nothing is opened


def test_what_is_read_and_what_is_somebody_elses_passes() -> None:
    refuse_misspelt_keys([*READ, *OF_OTHERS])


def test_every_key_that_the_code_reads_is_known() -> None:
    found: set[str] = set()
    for root in ROOTS:
        for path in root.rglob("*.py"):
            if "conformance" not in path.parts:
                text = path.read_text()
                found |= set(re.findall(r"\"spark\.lakelog\.([A-Za-z0-9.]*[A-Za-z0-9])\"", text))
                found |= set(re.findall(r"\{LAKELOG_PREFIX\}([A-Za-z0-9.]+)", text))
    assert {f"spark.lakelog.{name}" for name in found} <= set(OURS)
    assert len(found) > 20
