"""`lakelog doctor --jvm`: which log store delta-spark takes for a URI, and whom that excludes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.contract import Scope
from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.resolution import (
    BRIDGE_CLASS,
    checked_keys,
    log_store_for,
    resolve,
    scheme_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGES: Final = ("io.delta.storage.", "org.apache.spark.sql.delta.storage.")
_DELTA: Final = _PACKAGES[0]
_DEFAULTS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "S3SingleDriverLogStore"),
    **dict.fromkeys(("abfs", "abfss", "adl", "wasb", "wasbs"), "AzureLogStore"),
    "gs": "GCSLogStore",
}
"""Delta's own; `HDFSLogStore` for any other scheme."""
_EVERYBODY: Final = "every writer that can reach the storage"
_ONE_JVM: Final = "the threads of one JVM"
_EXCLUDES: Final = {
    "AzureLogStore": _EVERYBODY,
    "GCSLogStore": _EVERYBODY,
    "IBMCOSLogStore": _EVERYBODY,
    "OracleCloudLogStore": _EVERYBODY,
    "S3DynamoDBLogStore": "the writers that use the same DynamoDB table and the same scheme",
    "LocalLogStore": _ONE_JVM,
    "S3SingleDriverLogStore": _ONE_JVM,
}
_SCOPES: Final = {
    Scope.NONE: "no other writer",
    Scope.PROCESS: "the writers that commit through one service",
    Scope.HOST: "the processes of one host",
    Scope.CLUSTER: _EVERYBODY,
}
_BRIDGE_INSTEAD: Final = (
    f"commit by lakelog's store: spark.delta.logStore.{{scheme}}.impl={BRIDGE_CLASS}, with "
    "lakelog.spark.bridge or `lakelog serve`; or see to it that one driver alone ever writes"
)


@dataclass(frozen=True, slots=True)
class JvmStore:
    """What delta-spark makes of a URI and a conf."""

    class_name: str
    chosen_by: str
    excludes: str
    behind: str
    """The class behind the bridge; empty without it."""
    finding: Finding

    def as_json(self) -> dict[str, Any]:
        """The same for a JSON document."""
        return {
            "class": self.class_name,
            "chosenBy": self.chosen_by,
            "excludes": self.excludes,
            "behind": self.behind or None,
            "status": self.finding.status.value,
            "summary": self.finding.summary,
            "remedy": self.finding.remedy or None,
        }


def jvm_store(uri: str, conf: Mapping[str, str]) -> JvmStore:
    """Say what delta-spark takes, by its own rules; nothing is written, and no JVM begun.

    Raises:
        LogStoreConfError: keys that contradict each other, or a key that nothing reads; or the
            class behind the bridge is not to be had.
    """
    scheme = scheme_of(uri)
    checked_keys(conf)
    key, value = _chosen(conf, scheme)
    if value == BRIDGE_CLASS:
        return _bridged(uri, conf, key)
    name = next((value.removeprefix(each) for each in _PACKAGES if value.startswith(each)), value)
    if not value or name == "DelegatingLogStore":
        key, name = "", _DEFAULTS.get(scheme, "HDFSLogStore")
        value = _DELTA + name
    chosen_by = f"the key {key}" if key else f"Delta's default for the scheme {scheme!r}"
    excludes, finding = _judged(name, value, scheme)
    return JvmStore(value, chosen_by, excludes, "", finding)


def _chosen(conf: Mapping[str, str], scheme: str) -> tuple[str, str]:
    for bare in ("delta.logStore.class", f"delta.logStore.{scheme}.impl"):
        for key in ("spark." + bare, bare):
            if conf.get(key, "").strip():
                return key, conf[key].strip()
    return "", ""


def _judged(name: str, value: str, scheme: str) -> tuple[str, Finding]:
    remedy = _BRIDGE_INSTEAD.format(scheme=scheme)
    if name == "HDFSLogStore":
        if scheme in ("hdfs", "viewfs"):
            return _EVERYBODY, _fine(f"excludes {_EVERYBODY}")
        if scheme == "file":
            summary = (
                "it looks and then renames, so it may replace what another process just committed"
            )
            return _ONE_JVM, Finding("jvm-store", Status.FAILED, summary, remedy)
        summary = f"it commits by a rename, and {scheme} may not refuse one onto a taken name"
        return "whomever the storage's rename excludes", _failed(summary, remedy)
    excludes = _EXCLUDES.get(name)
    if excludes is None:
        summary = f"{value} is not one of Delta's stores: ask its author what it excludes"
        return "not known", Finding("jvm-store", Status.NOTE, summary)
    if excludes is _ONE_JVM:
        summary = f"it excludes only {excludes}: two drivers lose each other's commits"
        return excludes, _failed(summary, remedy)
    return excludes, _fine(f"excludes {excludes}")


def _bridged(uri: str, conf: Mapping[str, str], key: str) -> JvmStore:
    from lakelog.logstores.service import default_endpoint_file

    behind = resolve(uri, conf)
    scope = log_store_for(uri, conf).capabilities.exclusive_create
    excluded = _SCOPES[scope]
    where = "lakelog.bridge.endpoint"
    named = conf.get(f"spark.hadoop.{where}", conf.get(where, "")).strip()
    file = Path(named) if named else default_endpoint_file()
    finding = _fine(f"excludes {excluded}; the service's endpoint file is {file}")
    if scope is Scope.NONE:
        finding = _failed("the bridge's store excludes no other writer", "name another store")
    elif not file.exists():
        finding = Finding(
            "jvm-store",
            Status.NOTE,
            f"excludes {excluded}; no service runs now, for there is no endpoint file {file}",
            "begin the session by lakelog.spark.bridge, or run `lakelog serve`",
        )
    return JvmStore(BRIDGE_CLASS, f"the key {key}", excluded, behind.class_path, finding)


def _fine(summary: str) -> Finding:
    return Finding("jvm-store", Status.FINE, summary)


def _failed(summary: str, remedy: str) -> Finding:
    return Finding("jvm-store", Status.FAILED, summary, remedy)
