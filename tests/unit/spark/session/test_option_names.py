"""Misspelt options are told with the nearest name, those of other formats pass."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.format.data_source import LakelogSource
from lakelog.spark.reading.reader import DeltaReader
from lakelog.spark.session.option_names import READ_OPTIONS, WRITE_OPTIONS, check_option_names
from lakelog.spark.writing import options as _options
from lakelog.spark.writing.options import WriteOptions
from support.examples import examples

NAMES = [*READ_OPTIONS, *WRITE_OPTIONS]
OF_OTHERS = [
    *("header", "inferSchema", "sep", "timestampFormat", "basePath", "pathGlobFilter", "nullValue"),
    *(
        "maxFilesPerTrigger",
        "maxBytesPerTrigger",
        "ignoreChanges",
        "ignoreDeletes",
    ),
    *("recursiveFileLookup", "modifiedAfter", "multiLine", "dateFormat", "checkpointLocation"),
    *(
        "delta.appendOnly",
        "fs.s3a.endpoint",
        "dfs.namenode.http-address",
        "path",
        "parquet.page.size",
    ),
]


@st.composite
def misspelt(draw: st.DrawFn, names: list[str]) -> tuple[str, str]:
    name = draw(st.sampled_from(names))
    at = draw(st.integers(1, len(name) - 2))
    letter = draw(st.sampled_from("aeioxyz"))
    found = draw(
        st.sampled_from(
            [
                name[:at] + name[at + 1 :],
                name[:at] + letter + name[at:],
                name[:at] + letter + name[at + 1 :],
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],
                name + "f",
            ]
        )
    )
    return found, name


@settings(max_examples=examples(40), deadline=None)
@given(misspelt(NAMES))
def test_a_misspelt_option_is_refused_with_the_one_that_is_meant(case: tuple[str, str]) -> None:
    option, meant = case
    if option.lower() in {name.lower() for name in NAMES}:
        return
    with pytest.raises(DeltaAnalysisError, match=f"did you mean {meant}"):
        check_option_names([option])


def test_what_is_known_in_any_case_and_what_is_of_others_passes() -> None:
    check_option_names([*NAMES, *map(str.lower, NAMES), *map(str.upper, NAMES), *OF_OTHERS])


@pytest.mark.parametrize("option", ["replaceUsing", "replaceOn"])
def test_what_would_spare_rows_elsewhere_is_not_passed_over(option: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=f"{option}.*replaceWhere"):
        WriteOptions.from_options("overwrite", None, {option: "id"}, DeltaConf())


def test_every_door_refuses_a_misspelt_option() -> None:
    with pytest.raises(DeltaAnalysisError, match="mergeSchema"):
        WriteOptions.from_options("append", None, {"mergeShema": "true"}, DeltaConf())
    with pytest.raises(DeltaAnalysisError, match="versionAsOf"):
        DeltaReader(None).option("versionAsOff", 3).load("/nowhere")  # type: ignore[arg-type]
    source = LakelogSource({"path": "/nowhere", "versionasoff": "3"})
    with pytest.raises(Exception, match="versionAsOf"):
        source.schema()


def test_every_option_that_the_code_reads_is_known() -> None:
    folder = Path(inspect.getfile(_options)).parents[1]
    text = "".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    read = set(re.findall(r"(?:given|options|_options)\.get\(\"([a-z]+)\"", text))
    assert {"replacewhere", "versionasof", "columns"} <= read
    assert read <= {name.lower() for name in (*NAMES, "path")}
