"""What delta-spark did with a command, by all that it depends on, in an archive a test module."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from support.delta_spark import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path(__file__).with_name("remembered")
_INDEX: Final = "memories.json"


@dataclass(frozen=True, slots=True)
class Memory:
    """What one command did."""

    answer: dict[str, Any]
    """As it came from delta-spark's process: a result, or an error."""
    files: dict[str, bytes | None]
    """What it wrote, by path; None for what it deleted."""


@dataclass
class Memories:
    """Those of one module of tests.

    Attributes:
        module: its name.
        known: what is remembered, by key.
        drafts: what runs that record have seen: the next one says which of it is asked for again.
        tests: those that pass on memories alone, each with the keys that it asks for.
    """

    module: str
    known: dict[str, Memory] = field(init=False)
    drafts: dict[str, Memory] = field(init=False)
    tests: dict[str, list[str]] = field(init=False)

    @classmethod
    def of(cls, module: str, *, with_drafts: bool) -> Self:
        """Read a module's."""
        found = cls(module)
        found.known, found.tests = _read(found._archive)
        found.drafts = _read(found._draft)[0] if with_drafts else {}
        return found

    def find(self, key: str) -> Memory | None:
        """What is remembered under a key."""
        return self.drafts.get(key) or self.known.get(key)

    def keep(self) -> None:
        """Write down what the tests ask for, and what this run saw for the next one."""
        every = self.known | self.drafts
        _write(self._draft, every, {})
        asked = sorted({key for keys in self.tests.values() for key in keys})
        _write(self._archive, {key: every[key] for key in asked}, self.tests)

    @property
    def _archive(self) -> Path:
        return FOLDER / f"{self.module}.zip"

    @property
    def _draft(self) -> Path:
        return cache_folder() / "delta-spark-drafts" / f"{self.module}.zip"


def _read(path: Path) -> tuple[dict[str, Memory], dict[str, list[str]]]:
    if not path.exists():
        return {}, {}
    with zipfile.ZipFile(path) as archive:
        index: dict[str, Any] = json.loads(archive.read(_INDEX))
        bodies = {name: archive.read(name) for name in archive.namelist()}
    memories = {
        key: Memory(
            each["answer"],
            {name: bodies.get(digest) for name, digest in each["files"].items()},
        )
        for key, each in index["memories"].items()
    }
    return memories, index["tests"]


def _write(path: Path, memories: Mapping[str, Memory], tests: Mapping[str, list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if not memories:
        return
    bodies: dict[str, bytes] = {}
    described = {
        key: {
            "answer": memory.answer,
            "files": {name: _put(bodies, body) for name, body in memory.files.items()},
        }
        for key, memory in memories.items()
    }
    index = {"memories": described, "tests": tests}
    text = json.dumps(index, indent=0, sort_keys=True).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, body in {_INDEX: text, **bodies}.items():
            # Without a time of its own, so that the same memories are the same bytes.
            archive.writestr(zipfile.ZipInfo(name), body, zipfile.ZIP_LZMA)


def _put(bodies: dict[str, bytes], body: bytes | None) -> str | None:
    if body is None:
        return None
    digest = hashlib.sha256(body).hexdigest()[:24]
    bodies[digest] = body
    return digest
