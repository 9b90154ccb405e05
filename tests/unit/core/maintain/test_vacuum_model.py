"""Which files stay, against a model that knows versions and times and nothing of VACUUM."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, vacuum
from support.aged_tables import UNCHECKED, data_files
from support.examples import examples
from support.tables import schema_json

HOUR_MS = 3_600_000
NAMES = [
    *("plain.parquet", "with space.parquet", "é中.parquet", "100%.parquet", "a%20b.parquet"),
    *("p=1/f.parquet", "_p=x y/f.parquet", "_p=%2F/f.parquet", "deep/er/f.parquet", "a+b&c=d"),
    *("a:b/f.parquet", "_change_data/looks like.parquet", "quo'te.parquet", "#hash?.parquet"),
]
SPELLINGS = {
    "relative": lambda uri, name: quote(name, safe="/"),
    "barely": lambda uri, name: quote(name, safe="/ é中=+&'"),
    "absolute": lambda uri, name: quote(f"{uri}/{name}", safe="/"),
    "uri": lambda uri, name: "file:" + quote(f"{uri}/{name}", safe="/"),
    "long uri": lambda uri, name: "file://" + quote(f"{uri}/./{name}", safe="/"),
}


@dataclass
class Model:
    """Files by the versions that need them."""

    live: dict[str, str | None] = field(default_factory=dict)
    """File -> its vector's file."""
    versions: list[tuple[float, set[str]]] = field(default_factory=list)
    """For each version: hours ago, and the files of data and vectors that it needs."""
    changes: list[tuple[float, str]] = field(default_factory=list)
    stamped: list[tuple[float, set[str]]] = field(default_factory=list)
    """What a tombstone keeps by its writer's clock: hours ago, files."""
    modified: dict[str, float] = field(default_factory=dict)
    """Every file of the folder -> hours ago."""

    def commit(self, hours: float) -> None:
        needed = {*self.live, *(each for each in self.live.values() if each)}
        self.versions.append((hours, needed))

    def must_stay(self, retention: float) -> set[str]:
        kept = set(self.versions[-1][1])
        for (_, files), (replaced, _) in zip(self.versions, self.versions[1:], strict=False):
            if replaced <= retention:
                kept |= files
        return kept | {path for hours, path in self.changes if hours <= retention}

    def goes(self, retention: float) -> set[str]:
        """What is old enough and needed by nothing; hidden files were never added."""
        stamped = {f for hours, files in self.stamped if hours <= retention for f in files}
        stay = self.must_stay(retention) | stamped
        return {p for p, hours in self.modified.items() if hours > retention} - stay


class Table:
    """A table that is written action by action, as any client might."""

    def __init__(self, uri: str, draw: Any, now: float) -> None:
        self.uri = uri
        self.draw = draw
        self.now = now
        self.model = Model()
        self.spelling: dict[str, str] = {}
        self.skew = 0.0
        """Hours by which the writers' clock is ahead of the storage's."""
        (Path(uri) / "_delta_log").mkdir(parents=True)

    def put(self, name: str, hours: float) -> None:
        path = Path(self.uri) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        self.touch(path, hours)
        self.model.modified[name] = hours

    def touch(self, path: Path, hours: float) -> None:
        then = self.now - hours * 3600
        os.utime(path, (then, then))

    def path(self, name: str) -> str:
        if name not in self.spelling:
            kind = self.draw(st.sampled_from(sorted(SPELLINGS)))
            # A colon in the first name must be encoded, or it would be a scheme.
            self.spelling[name] = SPELLINGS["absolute" if ":" in name else kind](self.uri, name)
        return self.spelling[name]

    def vector(self, name: str | None) -> dict[str, Any] | None:
        if name is None:
            return None
        place = f"{self.uri}/{name}"
        return {"storageType": "p", "pathOrInlineDv": place, "sizeInBytes": 9, "cardinality": 1}

    def commit(self, hours: float, actions: list[dict[str, Any]]) -> None:
        version = len(self.model.versions)
        path = Path(self.uri) / "_delta_log" / f"{version:020d}.json"
        info = {"commitInfo": {"timestamp": self.stamp(hours), "operation": "TEST"}}
        path.write_text("".join(json.dumps(each) + "\n" for each in [info, *actions]))
        self.touch(path, hours)
        self.model.commit(hours)

    def stamp(self, hours: float) -> int:
        return int((self.now - hours * 3600) * 1000)

    def create(self, hours: float) -> None:
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_json(id="long", p="string", _p="string"),
            "partitionColumns": ["_p"],
            "configuration": {"delta.deletedFileRetentionDuration": "interval 10 hours"},
        }
        features = ["deletionVectors"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        self.commit(hours, [{"protocol": protocol}, {"metaData": metadata}])

    def add(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "path": self.path(name),
            "partitionValues": {"_p": "x"},
            "size": 1,
            "modificationTime": 0,
            "dataChange": True,
        }
        vector = self.vector(self.model.live[name])
        return {"add": found | ({"deletionVector": vector} if vector else {})}

    def remove(self, name: str, hours: float, skew: float) -> dict[str, Any]:
        vector = self.model.live[name]
        found: dict[str, Any] = {
            "path": self.path(name),
            "deletionTimestamp": self.stamp(hours - skew),
            "dataChange": True,
        }
        files = {name} | ({vector} if vector else set())
        self.model.stamped.append((hours - skew, files))
        descriptor = self.vector(vector)
        return {"remove": found | ({"deletionVector": descriptor} if descriptor else {})}

    def change(self, hours: float, skew: float) -> None:
        """One commit with anything in it."""
        model, draw = self.model, self.draw
        actions: list[dict[str, Any]] = []
        for name in sorted(model.live):
            match draw(st.sampled_from(["keep", "keep", "remove", "mask"])):
                case "remove":
                    actions.append(self.remove(name, hours, skew))
                    del model.live[name]
                case "mask":
                    actions.append(self.remove(name, hours, skew))
                    vector = f"deletion_vector_{uuid.uuid4()}.bin"
                    self.put(vector, hours + draw(st.sampled_from([0.0, 3.0])))
                    model.live[name] = vector
                    actions.append(self.add(name))
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)):
            touched = {each.get("remove", {}).get("path") for each in actions}
            if name in model.live or self.path(name) in touched:
                continue
            if name not in model.modified:  # else it comes back, as by RESTORE
                self.put(name, hours + draw(st.sampled_from([0.0, 2.0, 30.0])))
            model.live[name] = None
            actions.append(self.add(name))
        if draw(st.booleans()):
            cdc = f"_change_data/cdc-{uuid.uuid4()}.parquet"
            self.put(cdc, hours + draw(st.sampled_from([0.0, 5.0])))
            model.changes.append((hours, cdc))
            path = {"path": cdc, "partitionValues": {}, "size": 1, "dataChange": False}
            actions.append({"cdc": path})
        self.commit(hours, actions)


@st.composite
def tables(draw: Any) -> tuple[Table, float]:
    # Half hours, so that nothing lies so near the cutoff that a slow run would move it.
    folder = tempfile.mkdtemp(prefix="lakelog vacuum é ")
    table = Table(f"{folder}/t", draw, time.time())
    ages = sorted(
        draw(st.lists(st.integers(1, 60), min_size=2, max_size=9, unique=True)), reverse=True
    )
    skew = table.skew = draw(st.sampled_from([0.0, 0.0, -25.0, 25.0]))
    table.create(ages[0] + 0.5)
    for number, hours in enumerate(ages[1:]):
        table.change(hours + 0.5, skew)
        if number == 3 and draw(st.booleans()):
            DeltaLog.for_table(table.uri).checkpoint()
    for name in draw(st.lists(st.sampled_from(["stray", "p=1/stray", "é/stray"]), unique=True)):
        table.put(name, draw(st.integers(0, 60)) + 0.5)
    return table, draw(st.integers(0, 60)) + 0.0


@given(tables(), st.sampled_from(["FULL", "LITE"]))
@settings(max_examples=examples(15))
def test_exactly_what_nothing_needs_goes(drawn: tuple[Table, float], mode: str) -> None:
    table, retention = drawn
    expected, before = table.model.goes(retention), data_files(table.uri)
    assert before == set(table.model.modified)

    done = vacuum(table.uri, retention, mode=mode, conf=UNCHECKED)

    deleted = before - data_files(table.uri)
    shutil.rmtree(Path(table.uri).parent)
    assert done.num_files == len(deleted)
    assert not deleted & table.model.must_stay(retention)
    if mode == "LITE":
        expected = {path for path in expected if not path.endswith("stray")}
    if table.skew > 0:
        # The log forgets by the table's own retention what only a writer's clock would keep.
        assert mode == "LITE" or deleted >= expected
    else:
        assert deleted == expected
