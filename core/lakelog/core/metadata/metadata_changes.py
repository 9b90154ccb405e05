"""What a change of metadata brings with it: checks, defaults, and the protocol that it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.features.iceberg_compat import with_compat_defaults
from lakelog.core.features.protocol import (
    protocol_for_new_table,
    strip_protocol_properties,
    supported_features,
    upgraded_for,
)
from lakelog.core.features.table_properties import (
    TableProperties,
    defaults_from_conf,
    validate_properties,
)
from lakelog.core.metadata.column_mapping_changes import check_mode_change, with_mapping
from lakelog.core.metadata.fill_declarations import check_default_feature
from lakelog.core.metadata.row_tracking_rules import with_row_tracking_names
from lakelog.core.metadata.verify import schema_of, storable, verify_new_metadata

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.conf import DeltaConf


def new_table_metadata(
    metadata: Metadata, conf: DeltaConf, now_ms: int, replaced: Metadata | None = None
) -> tuple[Metadata, Protocol]:
    """The metadata and the protocol that a new table gets.

    Args:
        metadata: as the creator wants it, `delta.feature.*` and the like included.
        conf: may give defaults for properties and protocol.
        now_ms: the time of creation, epoch ms, where `metadata` has none.
        replaced: that of the table it replaces.

    Raises:
        DeltaAnalysisError: a bad schema, partitioning or property.
    """
    created = now_ms if metadata.created_time is None else metadata.created_time
    wanted = storable(None, replace(metadata, created_time=created), conf)
    asked = {*defaults_from_conf(conf), *metadata.configuration}
    check_default_feature(schema_of(wanted), asked, (), "create the table")
    protocol, final = protocol_for_new_table(wanted, conf)
    final = with_compat_defaults(final)
    verify_new_metadata(None, final, conf)
    if replaced is not None and _mode(replaced) != _mode(final):
        replaced = None
    return with_row_tracking_names(None, with_mapping(replaced, final), protocol), protocol


def changed_metadata(
    old: Metadata,
    new: Metadata,
    protocol: Protocol,
    conf: DeltaConf,
    *,
    replaces: bool = False,
) -> tuple[Metadata, Protocol | None]:
    """The metadata of an existing table after a change, and the protocol if that changes too.

    Properties that stay as they are pass unchecked: another client may have set them.

    Args:
        old: as it is.
        new: as the caller gives it.
        protocol: as it is.
        conf: the session's.
        replaces: `new` comes from `new_table_metadata`, and no earlier file stays.

    Raises:
        DeltaAnalysisError: a bad schema, partitioning or property.
    """
    kept = {k: v for k, v in new.configuration.items() if old.configuration.get(k) == v}
    given = {k: v for k, v in new.configuration.items() if k not in kept}
    wanted = storable(old, new, conf)
    features = supported_features(protocol)
    check_default_feature(schema_of(wanted), given, features, "change the table")
    changed = replace(wanted, configuration={**kept, **validate_properties(given, conf)})
    upgraded = upgraded_for(protocol, changed)
    final = strip_protocol_properties(changed)
    if not replaces:
        # First, since without mapping there may be much wrong with a mapped table's names.
        check_mode_change(old, final)
    verify_new_metadata(old, final, conf)
    if not replaces:
        final = with_mapping(old, final)
    return with_row_tracking_names(old, final, upgraded or protocol), upgraded


def _mode(metadata: Metadata) -> str:
    return TableProperties(metadata.configuration).column_mapping_mode
