"""Who may read and write a table, and what protocol a table needs.

Two numbers say what a client must support; from reader 3 and writer 7 on, lists of named features
say it instead (PROTOCOL.md, "Table Features"). A protocol is valid as reader 1-2 with writer 1-6
and no lists, reader 1-2 with writer 7 and the writers' list, or reader 3 with writer 7 and both.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions import Protocol
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.features.registry import FEATURES, Support, active_features, with_requirements
from lakelog.core.features.table_properties import (
    DEFAULTS_PREFIX,
    FEATURE_PREFIX,
    PSEUDO_PROPERTIES,
    TableProperties,
    defaults_from_conf,
    validate_properties,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakelog.core.actions import Metadata
    from lakelog.core.conf import DeltaConf

_LISTS_READER, _LISTS_WRITER = 3, 7
"""The versions from which on features are listed; also the highest that exist."""
_VERSION_WORDS = {"delta.minReaderVersion", "delta.minWriterVersion"}


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Every feature of the protocol, listed or implied by the version numbers."""
    # A feature of readers must be in both lists. If another client put it into only one, it applies
    # all the same.
    if protocol.min_writer_version >= _LISTS_WRITER:
        return frozenset(protocol.writer_features or ()) | frozenset(protocol.reader_features or ())
    return _implied(protocol.min_reader_version, protocol.min_writer_version)


def check_readable(protocol: Protocol, table: str, metadata: Metadata | None = None) -> None:
    """Refuse a table that we would read wrongly.

    Args:
        protocol: the table's.
        table: its path, for the message.
        metadata: the table's; without it every feature counts as enabled.

    Raises:
        UnsupportedFeatureError: a reader version or feature that we do not have.
        CorruptLogError: the versions do not match the lists.
    """
    # Before anything else is read or judged: what a newer protocol writes may look malformed.
    if protocol.min_reader_version > _LISTS_READER:
        raise _unknown_version(protocol, table, "read")
    names = frozenset(protocol.reader_features or ())
    # Reader 2 has no list and implies column mapping, even beside a writer that lists features.
    if protocol.min_reader_version == 2:
        names = frozenset({"columnMapping"})
    # Named before the shape is judged: a client that made a protocol of a shape unknown here has
    # most likely a feature that is also unknown, and that says what to do.
    missing = {name for name in names if not _allowed(name, frozenset(), write=False)}
    if missing:
        raise _unsupported(missing, protocol, table, "read")
    _check_shape(protocol, table)
    active = names if metadata is None else active_features(metadata)
    missing = {name for name in names if not _allowed(name, active, write=False)}
    if missing:
        raise _unsupported(missing, protocol, table, "read")


def check_writable(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Refuse to write a table whose rules we would break.

    A feature whose duties begin only when the metadata enables it is ignored until then.

    Raises:
        UnsupportedFeatureError: a version or feature that we do not have.
        CorruptLogError: the versions do not match the lists.
    """
    # A writer reads as well: it replays the log, and checks winners for conflicts.
    check_readable(protocol, table, metadata)
    if protocol.min_writer_version > _LISTS_WRITER:
        raise _unknown_version(protocol, table, "write")
    # A writer's feature that the metadata does not use has no duties yet, so a table is not refused
    # for a list that another client filled.
    active = active_features(metadata)
    missing = {
        name for name in supported_features(protocol) if not _allowed(name, active, write=True)
    }
    if missing:
        raise _unsupported(missing, protocol, table, "write")


def check_covers(
    protocol: Protocol,
    metadata: Metadata,
    table: str,
    before: tuple[Protocol, Metadata] | None = None,
) -> None:
    """Refuse metadata that enables a feature which the protocol does not require of clients.

    Args:
        protocol: of the table after the commit.
        metadata: of the table after the commit.
        table: its path, for the message.
        before: both before the commit; what another client left wrong is not a reason to refuse.

    Raises:
        DeltaAnalysisError: a feature is in use that the protocol lacks; names it.
    """
    missing = _uncovered(protocol, metadata)
    if missing and before is not None:
        missing -= _uncovered(*before)
    if missing:
        names = sorted(missing)
        raise DeltaAnalysisError(
            f"[DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH] {table}: the metadata of this commit "
            f"enables {_described(names)}, but its protocol {_shown(protocol)} lacks it, so other "
            "clients would break its rules. Let update_metadata choose the protocol, or pass one "
            "that has it.",
            table=table,
            features=names,
        )


def _uncovered(protocol: Protocol, metadata: Metadata) -> frozenset[str]:
    has = supported_features(protocol)
    return _without_previewed(with_requirements(active_features(metadata)), has) - has


def protocol_for_new_table(
    metadata: Metadata, conf: Mapping[str, str] | None = None
) -> tuple[Protocol, Metadata]:
    """The lowest protocol that a new table needs, and its metadata as it is to be stored.

    The session's default properties apply where the metadata sets none; properties that set the
    protocol (`delta.minReaderVersion`, `delta.minWriterVersion`, `delta.feature.*`) are obeyed and
    removed. Whether we can write such a table is for `check_writable` to say.

    Raises:
        DeltaAnalysisError: an unknown property or feature, or a bad value.
    """
    given = validate_properties(metadata.configuration, conf)
    defaults = defaults_from_conf(conf)
    # Called for its error only: an unknown feature in a default is a mistake in the conf and not in
    # the caller's properties.
    _asked_features(defaults, "The conf " + DEFAULTS_PREFIX)
    if TableProperties(defaults | given).get("delta.ignoreProtocolDefaults"):
        defaults = {key: value for key, value in defaults.items() if not _is_protocol_word(key)}
    whole = dataclasses.replace(metadata, configuration=defaults | given)
    stored = strip_protocol_properties(whole)
    asked = _asked_features(whole.configuration)
    needed = with_requirements(_without_previewed(active_features(stored), asked) | asked)
    properties = TableProperties(whole.configuration)
    reader = properties.get("delta.minReaderVersion") or 1
    writer = properties.get("delta.minWriterVersion") or 2
    implied = _implied(reader, writer)
    # Versions that were asked for, or Delta's default (1, 2), are kept even where the table uses
    # less than they imply.
    if writer < _LISTS_WRITER and reader < _LISTS_READER and needed <= implied:
        return Protocol(min_reader_version=reader, min_writer_version=writer), stored
    return _lowest(needed | implied), stored


def upgraded_for(protocol: Protocol, metadata: Metadata) -> Protocol | None:
    """The protocol that a table needs once it has this metadata; `None`: the one it has.

    Obeys the same properties as `protocol_for_new_table`; store the metadata through
    `strip_protocol_properties`. No feature is ever removed: lower versions are a no-op. A new
    protocol takes the lowest form, as in delta-spark: version numbers where they imply just the
    table's features, even where the table listed them before.

    Raises:
        DeltaAnalysisError: the metadata uses a feature that must be added by name, or names one
            that does not exist.
    """
    has = supported_features(protocol)
    asked = _asked_features(metadata.configuration)
    properties = TableProperties(metadata.configuration)
    # Version 1 implies no features: an existing table gets no default versions.
    reader = properties.get("delta.minReaderVersion") or 1
    writer = properties.get("delta.minWriterVersion") or 1
    # Writer 7 asks for feature lists, but for no feature in them.
    asked |= _implied(min(reader, 2), writer) if writer < _LISTS_WRITER else frozenset()
    active = _without_previewed(active_features(metadata), has | asked)
    # Legacy features are added silently, as in Delta, and so are a few newer ones. The rest could
    # lock other clients out of the table, so the user has to ask for them.
    manual = {name for name in active - has - asked if not FEATURES[name].auto}
    if manual:
        raise _needs_enabling(sorted(manual))
    # The requirements of unknown features are unknown as well; they are kept as they are.
    needed = with_requirements(frozenset(has & FEATURES.keys()) | asked | active) | has
    # Requested versions may turn numbers into lists of the same features, or back.
    if needed == has and not metadata.configuration.keys() & _VERSION_WORDS:
        return None
    lowest = _lowest(needed)
    # Lists in another order are the same protocol, so there is nothing to commit.
    return None if _as_sets(lowest) == _as_sets(protocol) else lowest


def check_legal(new: Protocol, table: str) -> None:
    """Refuse to give a table a protocol whose versions do not match its lists.

    Raises:
        DeltaAnalysisError: such a protocol.
    """
    try:
        _check_shape(new, f"the commit to {table}")
    except CorruptLogError as exc:
        raise DeltaAnalysisError(str(exc), table=table) from None


def check_transition(old: Protocol, new: Protocol) -> None:
    """Refuse a protocol that would drop features of a table.

    Raises:
        DeltaAnalysisError: a feature of `old` is missing in `new`.
    """
    lost = sorted(supported_features(old) - supported_features(new))
    if lost:
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_PROTOCOL_DOWNGRADE] The protocol can't go from {_shown(old)} to "
            f"{_shown(new)}: that would drop {', '.join(lost)}, which clients may rely on.",
            features=lost,
        )


def may_drop_features(operation: str, conf: DeltaConf) -> bool:
    """Whether an operation may commit a protocol with fewer features than the table has."""
    # Both confs are off by default, as in Delta: older versions that can still be read may need
    # what would be dropped.
    if operation == "RESTORE":
        return conf.read(keys.RESTORE_DOWNGRADE)
    if "REPLACE TABLE" in operation:
        return conf.read(keys.REPLACE_DOWNGRADE)
    return operation == "DROP FEATURE"


def merged_protocol(first: Protocol, second: Protocol) -> Protocol:
    """The lowest protocol that has all features of both; `first` where it has them."""
    has = supported_features(first)
    needed = has | supported_features(second)
    if needed == has and first.min_reader_version >= second.min_reader_version:
        return first
    return _lowest(needed)


def protocol_without(protocol: Protocol, feature: str, *, plus: Iterable[str] = ()) -> Protocol:
    """The lowest protocol with all features but one.

    Args:
        protocol: the table's.
        feature: which one goes.
        plus: features that come in its place.
    """
    return _lowest((supported_features(protocol) - {feature}) | frozenset(plus))


def strip_protocol_properties(metadata: Metadata) -> Metadata:
    """The metadata without the properties that only set the protocol."""
    kept = {k: v for k, v in metadata.configuration.items() if not _is_protocol_word(k)}
    return dataclasses.replace(metadata, configuration=kept)


def _is_protocol_word(key: str) -> bool:
    return key in PSEUDO_PROPERTIES or key.startswith(FEATURE_PREFIX)


def _asked_features(
    configuration: Mapping[str, str], where: str = "Table property delta."
) -> frozenset[str]:
    """The features that `delta.feature.*` asks for.

    Args:
        configuration: properties in canonical spelling.
        where: replaces `delta.` in the message.
    """
    by_lower = {name.lower(): name for name in FEATURES}
    found = set()
    for key in configuration:
        if not key.startswith(FEATURE_PREFIX):
            continue
        name = key.removeprefix(FEATURE_PREFIX)
        known = by_lower.get(name.lower())
        if known is None:
            import difflib

            near = difflib.get_close_matches(name.lower(), by_lower, n=1)
            hint = f" Did you mean {FEATURE_PREFIX}{by_lower[near[0]]}?" if near else ""
            raise DeltaAnalysisError(
                f"[DELTA_UNSUPPORTED_FEATURES_IN_CONFIG] {where}{key.removeprefix('delta.')}: "
                f"there is no such table feature.{hint}",
                property=key,
            )
        found.add(known)
    return frozenset(found)


def _without_previewed(active: frozenset[str], has: frozenset[str]) -> frozenset[str]:
    """The active features without those whose preview the table has."""
    return frozenset(name for name in active if name in has or f"{name}-preview" not in has)


def _implied(reader: int, writer: int) -> frozenset[str]:
    if writer >= _LISTS_WRITER:
        return frozenset()
    # Both numbers count: writer 5 with reader 1 does not imply column mapping, which needs reader
    # 2 as well.
    return frozenset(
        f.name
        for f in FEATURES.values()
        if f.writer_version is not None
        and f.writer_version <= writer
        and f.reader_version <= reader
    )


def _lowest(names: frozenset[str]) -> Protocol:
    """Version numbers where they imply exactly these features, lists otherwise."""
    # Exactly: numbers that imply more would bind clients to features that the table does not have.
    known = [FEATURES[name] for name in names if name in FEATURES]
    reader = max((feature.reader_version for feature in known), default=1)
    writer = max((feature.writer_version or _LISTS_WRITER for feature in known), default=1)
    if writer < _LISTS_WRITER and _implied(reader, writer) == names:
        return Protocol(min_reader_version=reader, min_writer_version=writer)
    return _listed(names)


def _listed(names: Iterable[str]) -> Protocol:
    """The protocol that lists these features; unknown ones bind writers alone."""
    ordered = sorted(names)
    for_readers = [n for n in ordered if n in FEATURES and FEATURES[n].read is not None]
    # Column mapping, the only legacy feature of readers, needs no readers' list: reader 2 implies
    # it.
    if any(not FEATURES[name].is_legacy for name in for_readers):
        return Protocol(
            min_reader_version=_LISTS_READER,
            min_writer_version=_LISTS_WRITER,
            reader_features=for_readers,
            writer_features=ordered,
        )
    return Protocol(
        min_reader_version=2 if for_readers else 1,
        min_writer_version=_LISTS_WRITER,
        writer_features=ordered,
    )


def _as_sets(protocol: Protocol) -> tuple[object, ...]:
    """The protocol without the order of its lists."""
    lists = (protocol.reader_features, protocol.writer_features)
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        *(None if names is None else frozenset(names) for names in lists),
    )


def _allowed(name: str, active: frozenset[str], *, write: bool) -> bool:
    feature = FEATURES.get(name)
    if feature is None:
        return False  # unknown features must be refused, whatever they are
    support = feature.write if write else feature.read
    if support is Support.INACTIVE:
        return name not in active
    return support in (Support.YES, None)  # None: it requires nothing of this side


def _check_shape(protocol: Protocol, where: str) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    lists_right = (protocol.reader_features is not None) == (reader >= _LISTS_READER) and (
        protocol.writer_features is not None
    ) == (writer >= _LISTS_WRITER)
    numbers_right = reader >= 1 and writer >= 1
    if lists_right and numbers_right and not (reader >= _LISTS_READER and writer < _LISTS_WRITER):
        return
    raise CorruptLogError(
        f"The protocol in {where} is not valid: {_shown(protocol)}. Reader version 3 and writer "
        "version 7 come with lists of features, lower versions without.",
        table=where,
    )


def _shown(protocol: Protocol) -> str:
    text = f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    if protocol.writer_features is None and protocol.reader_features is None:
        return f"({text})"
    names = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    return f"({text}, features: {', '.join(sorted(names)) or 'none'})"


def _unknown_version(protocol: Protocol, table: str, access: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"[DELTA_INVALID_PROTOCOL_VERSION] The table {table} can't be {_done(access)}: its "
        f"protocol is {_shown(protocol)}, and this version of lakelog supports reader versions up "
        f"to {_LISTS_READER} and writer versions up to {_LISTS_WRITER}. Use a newer client.",
        table=table,
        features=[],
        access=access,
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
    )


def _unsupported(
    names: Iterable[str], protocol: Protocol, table: str, access: str
) -> UnsupportedFeatureError:
    from lakelog.core.features.advice import remedy

    missing = sorted(names)
    code = f"DELTA_UNSUPPORTED_FEATURES_FOR_{access.upper()}"
    versions = f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    return UnsupportedFeatureError(
        f"[{code}] The table {table} can't be {_done(access)}: it has {_described(missing)} "
        f"(protocol: {versions}), which this version of lakelog can't {access}. Use a client that "
        f"can, such as delta-spark, or remove it from the table there: {remedy(missing)}.",
        table=table,
        features=missing,
        access=access,
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
    )


def _done(access: str) -> str:
    return {"read": "read", "write": "written"}[access]


def _described(missing: list[str]) -> str:
    parts = []
    for name in missing:
        feature = FEATURES.get(name)
        switch = feature.switch if feature else ""
        parts.append(f"{name} (by {switch})" if switch else name)
    return "the table feature" + ("s " if len(parts) > 1 else " ") + ", ".join(parts)


def _needs_enabling(names: list[str]) -> DeltaAnalysisError:
    reasons = ", ".join(f"{name} (for {FEATURES[name].switch or 'this change'})" for name in names)
    settings = ", ".join(f"{FEATURE_PREFIX}{name}=supported" for name in names)
    return DeltaAnalysisError(
        f"[DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT] The table needs {reasons}, which an existing "
        f"table gets only on request: set the table property {settings}. Older clients can't use "
        "the table after that.",
        features=names,
    )
