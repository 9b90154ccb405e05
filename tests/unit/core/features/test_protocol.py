"""Who may read and write a table, and what protocol a table gets."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.core.actions import Metadata, Protocol
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.features.advice import how_to_remove
from lakelog.core.features.protocol import (
    check_legal,
    check_readable,
    check_transition,
    check_writable,
    may_drop_features,
    protocol_for_new_table,
    strip_protocol_properties,
    supported_features,
    upgraded_for,
)
from lakelog.core.features.registry import FEATURES, Support, active_features, with_requirements
from lakelog.core.schema import (
    ArrayType,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
)

LONG = PrimitiveType("long")
NTZ = PrimitiveType("timestamp_ntz")
DEFAULTS = "spark.databricks.delta.properties.defaults."


def metadata(*fields: StructField, **configuration: str) -> Metadata:
    columns = fields or (StructField("a", LONG),)
    return Metadata(
        id="x",
        schema_string=StructType(columns).to_json(),
        configuration={k.replace("__", "."): v for k, v in configuration.items()},
    )


def with_configuration(values: dict[str, str], *fields: StructField) -> Metadata:
    return metadata(*fields, **{k.replace(".", "__"): v for k, v in values.items()})


def column(data_type: DataType = LONG, *, nullable: bool = True, **marks: Any) -> StructField:
    return StructField(
        "c", data_type, nullable, {k.replace("__", "."): v for k, v in marks.items()}
    )


def legacy(reader: int, writer: int) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=writer)


def listed(*names: str, reader: int = 1, reader_names: tuple[str, ...] | None = None) -> Protocol:
    return Protocol(
        min_reader_version=reader if reader_names is None else 3,
        min_writer_version=7,
        reader_features=None if reader_names is None else list(reader_names),
        writer_features=sorted(names),
    )


# --- What the numbers imply ---


@pytest.mark.parametrize(
    ("protocol", "names"),
    [
        (legacy(1, 1), ""),
        (legacy(1, 2), "appendOnly invariants"),
        (legacy(1, 3), "appendOnly invariants checkConstraints"),
        (legacy(1, 5), "appendOnly invariants checkConstraints changeDataFeed generatedColumns"),
        (
            legacy(2, 6),
            "appendOnly invariants checkConstraints changeDataFeed generatedColumns "
            "columnMapping identityColumns",
        ),
        (listed("appendOnly", "new"), "appendOnly new"),
    ],
    ids=str,
)
def test_version_numbers_imply_their_features(protocol: Protocol, names: str) -> None:
    assert supported_features(protocol) == set(names.split())


# --- Reading ---


@pytest.mark.parametrize(
    "protocol",
    [
        legacy(1, 1),
        legacy(1, 6),
        listed("anything", "goes", "for", "writers"),
        listed("timestampNtz", reader_names=("timestampNtz",)),
        listed("vacuumProtocolCheck", reader_names=("vacuumProtocolCheck",)),
        listed("v2Checkpoint", reader_names=("v2Checkpoint",)),
        listed(reader_names=()),
    ],
    ids=str,
)
def test_a_table_is_readable_when_its_reader_features_are_ours(protocol: Protocol) -> None:
    check_readable(protocol, "/t", metadata())


@pytest.mark.parametrize("name", ["geospatial", "collations-preview", "brandNew"])
def test_a_reader_feature_that_we_lack_is_refused_by_name(name: str) -> None:
    protocol = listed(name, "timestampNtz", reader_names=(name, "timestampNtz"))
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_readable(protocol, "/data/t", metadata())
    assert caught.value.features == [name]
    assert caught.value.access == "read"
    assert caught.value.table == "/data/t"
    text = str(caught.value)
    assert text.startswith("[DELTA_UNSUPPORTED_FEATURES_FOR_READ] The table /data/t can't be read")
    assert name in text
    assert "timestampNtz" not in text
    assert "reader 3, writer 7" in text
    assert text.endswith(f"remove it from the table there: {how_to_remove(name)}.")


@pytest.mark.parametrize("protocol", [legacy(4, 7), legacy(5, 8)], ids=str)
def test_a_version_from_the_future_is_refused_with_both_sides(protocol: Protocol) -> None:
    future = Protocol(
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        reader_features=[],
        writer_features=[],
    )
    with pytest.raises(
        UnsupportedFeatureError, match=r"up to 3 and writer versions up to 7"
    ) as caught:
        check_readable(future, "/t")
    assert caught.value.min_reader_version == protocol.min_reader_version


def test_a_writer_version_from_the_future_still_lets_us_read() -> None:
    future = Protocol(min_reader_version=1, min_writer_version=8, writer_features=[])
    check_readable(future, "/t", metadata())
    with pytest.raises(UnsupportedFeatureError, match="can't be written"):
        check_writable(future, metadata(), "/t")


@pytest.mark.parametrize(
    "protocol",
    [
        legacy(3, 7),
        legacy(1, 7),
        legacy(0, 2),
        Protocol(min_reader_version=3, min_writer_version=6, reader_features=[]),
        Protocol(min_reader_version=1, min_writer_version=2, writer_features=[]),
        Protocol(
            min_reader_version=1, min_writer_version=7, reader_features=[], writer_features=[]
        ),
    ],
    ids=str,
)
def test_numbers_and_lists_that_do_not_go_together_are_refused(protocol: Protocol) -> None:
    with pytest.raises(CorruptLogError, match="not valid"):
        check_readable(protocol, "/t")


# --- Writing ---

OFF: list[tuple[str, Metadata]] = [
    ("icebergCompatV3", with_configuration({"delta.enableIcebergCompatV3": "true"})),
]


@pytest.mark.parametrize(("name", "active"), OFF, ids=[name for name, _ in OFF])
def test_a_feature_that_we_lack_hinders_writing_only_while_it_is_on(
    name: str, active: Metadata
) -> None:
    protocol = listed(name)
    check_writable(protocol, metadata(), "/t")
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_writable(protocol, active, "/t")
    assert caught.value.features == [name]
    assert FEATURES[name].switch in str(caught.value)


def test_a_legacy_version_hinders_no_one() -> None:
    check_writable(legacy(2, 6), with_configuration({"delta.enableChangeDataFeed": "true"}), "/t")


def test_a_property_that_switches_a_feature_on_is_the_way_out() -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_writable(listed("icebergCompatV3"), OFF[0][1], "/t")
    assert "SET TBLPROPERTIES ('delta.enableIcebergCompatV3' = 'false')" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["someday", "coordinatedCommits-preview"],
)
def test_a_writer_feature_with_standing_duties_is_refused_by_name(name: str) -> None:
    check_readable(listed(name), "/t", metadata())
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_writable(listed("appendOnly", name), metadata(), "/t")
    assert caught.value.features == [name]
    assert caught.value.access == "write"


def test_the_features_that_we_have_may_be_on() -> None:
    wanted = with_configuration(
        {
            "delta.appendOnly": "true",
            "delta.constraints.c": "a > 0",
            "delta.columnMapping.mode": "name",
        },
        column(NTZ, nullable=False),
    )
    readers = ("columnMapping", "timestampNtz")
    names = ("appendOnly", "checkConstraints", "invariants", "domainMetadata", *readers)
    check_writable(listed(*names, reader_names=readers), wanted, "/t")


# --- New tables ---


@pytest.mark.parametrize(
    ("wanted", "conf", "expected"),
    [
        (metadata(), {}, legacy(1, 2)),
        (metadata(column(nullable=False)), {}, legacy(1, 2)),
        (with_configuration({"delta.constraints.c": "a > 0"}), {}, legacy(1, 3)),
        (
            metadata(column(ArrayType(NTZ))),
            {},
            listed("appendOnly", "invariants", "timestampNtz", reader_names=("timestampNtz",)),
        ),
        (
            with_configuration({"delta.enableChangeDataFeed": "true"}),
            {},
            listed("appendOnly", "changeDataFeed", "invariants"),
        ),
        (
            with_configuration({"delta.columnMapping.mode": "name"}),
            {},
            listed("appendOnly", "columnMapping", "invariants", reader=2),
        ),
        (
            with_configuration({"delta.minWriterVersion": "5", "delta.minReaderVersion": "2"}),
            {},
            legacy(2, 5),
        ),
        (with_configuration({"delta.minWriterVersion": "1"}), {}, legacy(1, 1)),
        (
            with_configuration({"delta.minWriterVersion": "1", "delta.appendOnly": "true"}),
            {},
            listed("appendOnly"),
        ),
        (
            with_configuration({"delta.feature.domainmetadata": "enabled"}),
            {},
            listed("appendOnly", "domainMetadata", "invariants"),
        ),
        (
            with_configuration({"delta.feature.rowTracking": "supported"}),
            {},
            listed("appendOnly", "domainMetadata", "invariants", "rowTracking"),
        ),
        (metadata(), {DEFAULTS + "minWriterVersion": "4"}, legacy(1, 4)),
        (
            with_configuration({"delta.minWriterVersion": "3"}),
            {DEFAULTS + "minWriterVersion": "4"},
            legacy(1, 3),
        ),
        (
            with_configuration({"delta.ignoreProtocolDefaults": "true"}),
            {DEFAULTS + "minWriterVersion": "4", DEFAULTS + "feature.domainMetadata": "enabled"},
            legacy(1, 2),
        ),
        (
            metadata(),
            {DEFAULTS + "feature.vacuumProtocolCheck": "supported"},
            listed(
                "appendOnly",
                "invariants",
                "vacuumProtocolCheck",
                reader_names=("vacuumProtocolCheck",),
            ),
        ),
    ],
)
def test_a_new_table_gets_the_lowest_protocol_that_it_needs(
    wanted: Metadata, conf: dict[str, str], expected: Protocol
) -> None:
    protocol, stored = protocol_for_new_table(wanted, conf)
    assert protocol == expected
    assert not [key for key in stored.configuration if "feature" in key or "Protocol" in key]
    assert not [key for key in stored.configuration if "minReader" in key or "minWriter" in key]
    assert active_features(stored) <= supported_features(protocol)
    check_readable(protocol, "/t", metadata())


def test_the_session_s_defaults_stand_under_the_table_s_own_properties() -> None:
    conf = {DEFAULTS + "appendOnly": "true", DEFAULTS + "checkpointInterval": "3"}
    _, stored = protocol_for_new_table(with_configuration({"DELTA.checkpointInterval": "5"}), conf)
    assert stored.configuration == {"delta.appendOnly": "true", "delta.checkpointInterval": "5"}


@pytest.mark.parametrize("where", ["property", "session"])
def test_protocol_defaults_are_ignored_where_the_table_or_the_session_says_so(where: str) -> None:
    conf = {DEFAULTS + "minWriterVersion": "4", DEFAULTS + "feature.domainMetadata": "supported"}
    own = {"delta.ignoreProtocolDefaults": "true"} if where == "property" else {}
    if where == "session":
        conf[DEFAULTS + "ignoreProtocolDefaults"] = "true"
    protocol, stored = protocol_for_new_table(with_configuration(own), conf)
    assert protocol == legacy(1, 2)
    assert stored.configuration == {}


def test_an_unknown_feature_among_the_defaults_is_refused_with_the_conf_key() -> None:
    key = DEFAULTS + "feature.nope"
    with pytest.raises(DeltaAnalysisError, match=f"The conf {key}: there is no such"):
        protocol_for_new_table(metadata(), {key: "supported"})


def test_an_unknown_feature_is_refused_with_the_nearest() -> None:
    with pytest.raises(DeltaAnalysisError, match=r"Did you mean delta\.feature\.timestampNtz\?"):
        protocol_for_new_table(with_configuration({"delta.feature.timestampNTZs": "supported"}))


# --- Tables that exist ---


@pytest.mark.parametrize(
    ("protocol", "wanted", "expected"),
    [
        (legacy(1, 2), metadata(), None),
        (legacy(1, 2), metadata(column(nullable=False)), None),
        (legacy(1, 2), with_configuration({"delta.minWriterVersion": "1"}), None),
        (legacy(1, 2), with_configuration({"delta.minWriterVersion": "4"}), legacy(1, 4)),
        (legacy(1, 2), with_configuration({"delta.minWriterVersion": "7"}), None),
        (legacy(1, 2), with_configuration({"delta.constraints.c": "a > 0"}), legacy(1, 3)),
        (
            legacy(1, 1),
            with_configuration({"delta.constraints.c": "a > 0"}),
            listed("checkConstraints"),
        ),
        (
            legacy(1, 2),
            with_configuration({"delta.enableChangeDataFeed": "true"}),
            listed("appendOnly", "changeDataFeed", "invariants"),
        ),
        (
            listed("appendOnly", "invariants"),
            with_configuration({"delta.constraints.c": "a > 0"}),
            legacy(1, 3),
        ),
        # A word to the protocol has it told in its lowest form, even where nothing is added.
        (
            listed("appendOnly", "invariants"),
            with_configuration({"delta.minWriterVersion": "7"}),
            legacy(1, 2),
        ),
        (listed("appendOnly", "invariants"), metadata(), None),
        (
            listed("appendOnly", "invariants"),
            with_configuration({"delta.feature.appendOnly": "supported"}),
            None,
        ),
        (listed("invariants"), with_configuration({"delta.minReaderVersion": "2"}), None),
        (
            listed(reader_names=()),
            with_configuration({"delta.feature.domainMetadata": "supported"}),
            listed("domainMetadata"),
        ),
        (
            listed("unheardOf"),
            with_configuration({"delta.appendOnly": "true"}),
            listed("appendOnly", "unheardOf"),
        ),
        (
            listed("timestampNtz", reader_names=("timestampNtz",)),
            metadata(column(NTZ)),
            None,
        ),
        (
            legacy(1, 2),
            with_configuration({"delta.feature.timestampNtz": "supported"}, column(NTZ)),
            listed("appendOnly", "invariants", "timestampNtz", reader_names=("timestampNtz",)),
        ),
        (
            listed("timestampNtz", reader_names=("timestampNtz",)),
            with_configuration({"delta.appendOnly": "true"}, column(NTZ)),
            listed("appendOnly", "timestampNtz", reader_names=("timestampNtz",)),
        ),
    ],
)
def test_a_table_s_protocol_grows_by_what_its_metadata_needs(
    protocol: Protocol, wanted: Metadata, expected: Protocol | None
) -> None:
    grown = upgraded_for(protocol, wanted)
    assert grown == expected
    if grown is not None:
        check_transition(protocol, grown)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (metadata(column(NTZ)), "timestampNtz"),
        (metadata(column(CURRENT_DEFAULT="0")), "allowColumnDefaults"),
    ],
)
def test_a_feature_that_locks_clients_out_must_be_asked_for(wanted: Metadata, name: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=f"delta.feature.{name}=supported") as caught:
        upgraded_for(legacy(1, 2), wanted)
    assert caught.value.features == [name]


def test_words_to_the_protocol_are_not_stored() -> None:
    wanted = with_configuration(
        {
            "delta.feature.timestampNtz": "supported",
            "delta.minReaderVersion": "3",
            "delta.minWriterVersion": "7",
            "delta.ignoreProtocolDefaults": "true",
            "delta.appendOnly": "true",
        }
    )
    assert strip_protocol_properties(wanted).configuration == {"delta.appendOnly": "true"}


def test_features_may_be_added_and_never_dropped() -> None:
    check_transition(legacy(1, 2), listed("appendOnly", "invariants", "new"))
    check_transition(listed("appendOnly", "invariants"), legacy(1, 2))
    with pytest.raises(DeltaAnalysisError, match="would drop checkConstraints") as caught:
        check_transition(legacy(1, 3), legacy(1, 2))
    assert caught.value.features == ["checkConstraints"]


@pytest.mark.parametrize("protocol", [legacy(1, 7), legacy(3, 6), legacy(0, 2)], ids=str)
def test_a_table_gets_no_protocol_that_readers_would_refuse(protocol: Protocol) -> None:
    check_legal(legacy(1, 2), "/t")
    with pytest.raises(DeltaAnalysisError, match="not valid"):
        check_legal(protocol, "/t")


def test_only_some_operations_may_drop_features() -> None:
    allowed = DeltaConf(
        {
            "spark.databricks.delta.restore.protocolDowngradeAllowed": "true",
            "spark.databricks.delta.replace.protocolDowngradeAllowed": "true",
        }
    )
    assert may_drop_features("DROP FEATURE", DeltaConf())
    for operation in ("RESTORE", "CREATE OR REPLACE TABLE"):
        assert not may_drop_features(operation, DeltaConf())
        assert may_drop_features(operation, allowed)
    assert not may_drop_features("WRITE", allowed)


# --- The table of features itself ---


def test_requirements_are_closed_and_known() -> None:
    assert with_requirements(frozenset({"catalogManaged"})) == {
        "catalogManaged",
        "inCommitTimestamp",
        "vacuumProtocolCheck",
    }
    assert with_requirements(frozenset(FEATURES)) == set(FEATURES)


def test_no_feature_is_writable_that_is_not_readable() -> None:
    for feature in FEATURES.values():
        assert feature.read is not Support.NO or feature.write is Support.NO
        assert feature.write is not Support.INACTIVE or feature.switch


def test_required_elements_of_arrays_are_no_invariant() -> None:
    inner = StructType((StructField("x", LONG, nullable=False),))
    assert "invariants" in active_features(metadata(column(inner)))
    assert "invariants" not in active_features(metadata(column(ArrayType(inner))))
    assert "invariants" in active_features(metadata(column(delta__invariants="{}")))
