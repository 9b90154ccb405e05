"""The table features of Delta's protocol, what enables each, and which of them we have.

`FEATURES` is the one place that says what this client can read and write.
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.core.features.table_properties import CONSTRAINT_PREFIX, TableProperties
from lakelog.core.schema import DataType, PrimitiveType, StructType
from lakelog.core.schema.column_paths import map_types, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.actions import Metadata


class Support(enum.Enum):
    """Whether we may read, or write, a table that has a feature."""

    YES = "yes"
    """We do what the feature asks."""
    INACTIVE = "inactive"
    """Only while the metadata does not enable it: until then it requires nothing."""
    NO = "no"
    """We do not have it; a table whose protocol names it is refused."""


class Feature(NamedTuple):
    """One table feature."""

    name: str
    read: Support | None
    """`None`: readers need not know it."""
    write: Support
    switch: str = ""
    """What in the metadata makes it active, in words; empty: only the protocol can tell."""
    writer_version: int | None = None
    """The writer version that implies it, for features older than lists of features."""
    reader_version: int = 1
    """The reader version that goes with it."""
    requires: tuple[str, ...] = ()
    auto: bool = True
    """Whether metadata that makes it active may add it to a table that exists."""

    @property
    def is_legacy(self) -> bool:
        """Whether version numbers can imply it."""
        return self.writer_version is not None


_YES, _INACTIVE, _NO = Support.YES, Support.INACTIVE, Support.NO
_ALL: Final = (
    Feature("appendOnly", None, _YES, "delta.appendOnly=true", 2),
    Feature("invariants", None, _YES, "NOT NULL columns or delta.invariants", 2),
    Feature("checkConstraints", None, _YES, "delta.constraints.*", 3),
    Feature("changeDataFeed", None, _YES, "delta.enableChangeDataFeed=true", 4),
    Feature("generatedColumns", None, _YES, "columns GENERATED ALWAYS AS", 4),
    Feature("columnMapping", _YES, _YES, "delta.columnMapping.mode other than none", 5, 2),
    Feature("identityColumns", None, _YES, "columns GENERATED AS IDENTITY", 6),
    Feature("allowColumnDefaults", None, _YES, "columns with a DEFAULT", auto=False),
    Feature("domainMetadata", None, _YES),
    # Ids are assigned from the day the feature is named, not only once it is enabled.
    Feature(
        "rowTracking", None, _YES, "delta.enableRowTracking=true", requires=("domainMetadata",)
    ),
    # It requires keeping the domain, and statistics of the columns that it names.
    Feature("clustering", None, _YES, requires=("domainMetadata",)),
    Feature("inCommitTimestamp", None, _YES, "delta.enableInCommitTimestamps=true"),
    Feature("deletionVectors", _YES, _YES, "delta.enableDeletionVectors=true"),
    Feature("timestampNtz", _YES, _YES, "timestamp_ntz columns", auto=False),
    Feature("v2Checkpoint", _YES, _YES, "delta.checkpointPolicy=v2"),
    # It binds VACUUM alone, which checks the writer protocol.
    Feature("vacuumProtocolCheck", _YES, _YES),
    Feature("typeWidening", _YES, _YES, "delta.enableTypeWidening=true"),
    Feature("typeWidening-preview", _YES, _YES),
    Feature("variantType", _YES, _YES, "variant columns"),
    Feature("variantType-preview", _YES, _YES),
    Feature(
        # It allows shredded files, and requires none.
        "variantShredding",
        _YES,
        _YES,
        "delta.enableVariantShredding=true",
        requires=("variantType",),
    ),
    Feature("variantShredding-preview", _YES, _YES),
    Feature(
        "icebergCompatV1",
        None,
        _YES,
        "delta.enableIcebergCompatV1=true",
        requires=("columnMapping",),
    ),
    Feature(
        "icebergCompatV2",
        None,
        _YES,
        "delta.enableIcebergCompatV2=true",
        requires=("columnMapping",),
    ),
    Feature(
        "icebergCompatV3",
        None,
        _INACTIVE,
        "delta.enableIcebergCompatV3=true",
        requires=("columnMapping", "rowTracking"),
    ),
    Feature(
        "materializePartitionColumns",
        None,
        _YES,
        "delta.enableMaterializePartitionColumnsFeature=true",
    ),
    # It binds log cleanup alone.
    Feature("checkpointProtection", None, _YES),
    Feature(
        # By the table's name alone; `lakelog.core.catalogs.refusals` refuses its path.
        "catalogManaged",
        _YES,
        _YES,
        "a catalog that governs it",
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        auto=False,
    ),
    Feature(
        "coordinatedCommits-preview",
        None,
        _NO,
        "delta.coordinatedCommits.commitCoordinator-preview",
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
    ),
    Feature("redirectReaderWriter-preview", _NO, _NO, "delta.redirectReaderWriter-preview"),
    Feature("redirectWriterOnly-preview", None, _NO, "delta.redirectWriterOnly-preview"),
    Feature("geospatial", _NO, _NO),
    Feature("geospatial-dev", _NO, _NO),
    Feature("adaptiveMetadata-preview", _NO, _NO),
)

FEATURES: Final[dict[str, Feature]] = {feature.name: feature for feature in _ALL}
"""Name -> feature, for all that Delta 4 knows."""

_BY_FLAG: Final = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableVariantShredding": "variantShredding",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableMaterializePartitionColumnsFeature": "materializePartitionColumns",
}
_BY_PRESENCE: Final = {
    "delta.coordinatedCommits.commitCoordinator-preview": "coordinatedCommits-preview",
    "delta.redirectReaderWriter-preview": "redirectReaderWriter-preview",
    "delta.redirectWriterOnly-preview": "redirectWriterOnly-preview",
}
_BY_FIELD: Final = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "delta.identity.step": "identityColumns",
    "delta.identity.highWaterMark": "identityColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}
_BY_TYPE: Final = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}


def active_features(metadata: Metadata) -> frozenset[str]:
    """The features that the metadata makes use of, whether the protocol names them or not."""
    return frozenset(_by_configuration(metadata)) | _by_schema(metadata.schema_string)


def with_requirements(names: frozenset[str]) -> frozenset[str]:
    """The features with all that they require."""
    found = names | {need for name in names for need in FEATURES[name].requires}
    return found if found == names else with_requirements(found)


def _by_configuration(metadata: Metadata) -> Iterator[str]:
    properties = TableProperties(metadata.configuration)
    yield from (name for flag, name in _BY_FLAG.items() if properties.get(flag))
    yield from (name for key, name in _BY_PRESENCE.items() if metadata.configuration.get(key))
    if properties.column_mapping_mode != "none":
        yield "columnMapping"
    if properties.get("delta.checkpointPolicy") == "v2":
        yield "v2Checkpoint"
    if any(key.lower().startswith(CONSTRAINT_PREFIX) for key in metadata.configuration):
        yield "checkConstraints"


@functools.lru_cache(maxsize=64)
def _by_schema(schema_string: str) -> frozenset[str]:
    # Asked at every commit, and the schema is the same for thousands of them.
    schema = StructType.from_json(schema_string)
    found = {_BY_TYPE[name] for name in _primitives(schema) if name in _BY_TYPE}
    for _, field in walk(schema):
        found.update(name for key, name in _BY_FIELD.items() if key in field.metadata)
    if any(not field.nullable for _, field in walk(schema, containers=False)):
        found.add("invariants")
    return frozenset(found)


def _primitives(data_type: DataType) -> set[str]:
    found: set[str] = set()

    def note(part: DataType) -> DataType:
        if isinstance(part, PrimitiveType):
            found.add(part.name)
        return part

    map_types(data_type, note)
    return found
