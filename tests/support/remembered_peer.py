"""A delta-spark that remembers: a command that it was given before, it answers without a JVM.

What delta-spark makes of a command depends on the command, on the files that it finds, on the
session's confs and on its version. All of that is the key of a memory. So nothing is remembered of
a command that is new, or that finds a file of lakelog's, whose name has a random part: the real
delta-spark plays it, on the files that remembered commands have put there. One test in twenty,
drawn anew each run, is played live as a whole; with `LAKELOG_DELTA_SPARK=live` every one is, and so
they are in `make soak`.

What is not remembered costs time and nothing else. To remember it, twice, because what the second
run does not ask for again is not kept:

    LAKELOG_DELTA_SPARK=record .venv/bin/pytest -n 0 tests/interop
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pytest

from support.delta_spark import DELTA, PYSPARK, PeerUnavailableError, installed
from support.delta_spark_memory import Memories, Memory
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.examples import SEED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.delta_spark import DeltaSpark

__all__ = ["RememberedPeer"]

MODE: Final = os.environ.get("LAKELOG_DELTA_SPARK", "live" if SEED else "remembered")
LIVE_ONE_IN: Final = 20
_OF_SESSION: Final = re.compile(r"\s*(?P<verb>SET|RESET)\s+(?P<key>[^\s=]+)", re.IGNORECASE)
_BY_NAME: Final = re.compile(
    r"\b(?:TABLE|VIEW|INTO|FROM|USING|UPDATE|JOIN)\s+"
    r"(?!delta\b|parquet\b|values\b|set\b)[\w.]+\b(?!\s*\()",
    re.IGNORECASE,
)
"""A table or a view that the session knows, and no file of the test."""
_OF_THE_MOMENT: Final = re.compile(
    r"\b(?:HISTORY|VACUUM|current_\w+|rand\w*|uuid|now)\b", re.IGNORECASE
)
"""The answer has the time of day in it, or of files, or chance."""


class _Test:
    """The one that runs: the module that it stands in, and whether it is played live."""

    module = ""
    live = False


class RememberedPeer(DeltaSparkPeer):
    """delta-spark, or what it did the last time.

    Args:
        peer: where delta-spark stands.
        base: the folder of all folders of tests.
    """

    def __init__(self, peer: DeltaSpark, base: Path) -> None:
        super().__init__(peer)
        ours = re.escape(str(self._scratch))
        self._roots = re.compile(rf"{re.escape(str(base))}/[\w.-]+|{ours}")
        self._places = re.compile(rf"(?:{re.escape(str(base))}/|{ours})[^`'\"]*")
        self._memories: dict[str, Memories] = {}
        self._confs: dict[str, str] = {}
        self._unsaid: list[str] = []

    def close(self) -> None:
        """End the session; what was recorded is written down."""
        super().close()
        if MODE == "record":
            for memories in self._memories.values():
                memories.keep()

    def _exchange(self, op: str, *args: Any, **kwargs: Any) -> Any:
        text = args[0]
        if op == "sql" and (conf := _OF_SESSION.match(text)):
            return self._set(conf["verb"].upper(), conf["key"], text)
        if op == "sql" and (_BY_NAME.search(text) or not self._places.search(text)):
            _Test.live = True  # what follows may stand on it
        of_the_moment = op == "history" or (op == "sql" and _OF_THE_MOMENT.search(text))
        if _Test.live or of_the_moment:
            return self._play(op, *args, **kwargs)
        return self._recall(op, *args, **kwargs)

    def _set(self, verb: str, key: str, text: str) -> Any:
        if verb == "SET":
            self._confs[key] = text
        else:
            self._confs.pop(key, None)
        self._unsaid.append(text)
        return []

    def _play(self, op: str, *args: Any, **kwargs: Any) -> Any:
        while self._unsaid:
            super()._exchange("sql", self._unsaid.pop(0))
        return super()._exchange(op, *args, **kwargs)

    def _recall(self, op: str, *args: Any, **kwargs: Any) -> Any:
        said = json.dumps([op, args, kwargs, self._confs], sort_keys=True)
        named = [args[0], kwargs.get("source"), kwargs.get("target")]
        places = [Path(each) for text in named if text for each in self._places.findall(text)]
        names = _Names(self._roots.findall(said))
        before = _files(places)
        key = names.key(said, before)
        memories = self._of_module()
        memory = memories.find(key)
        if memory is not None:
            for name, body in memory.files.items():
                _restore(Path(names.real(name)), None if body is None else names.real_bytes(body))
        elif MODE != "record":
            return self._play(op, *args, **kwargs)
        else:
            answer = self._tried(op, *args, **kwargs)
            memory = names.memory(answer, before, _files(places))
            if memory is None:
                return _told(answer)
            memories.drafts[key] = memory
        return _told(json.loads(names.real(json.dumps(memory.answer))))

    def _tried(self, op: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return {"result": self._play(op, *args, **kwargs)}
        except DeltaSparkError as exc:
            return {"error": {"kind": exc.kind, "message": str(exc).removeprefix(f"{exc.kind}: ")}}

    def _of_module(self) -> Memories:
        module = _Test.module
        if module not in self._memories:
            self._memories[module] = Memories.of(module, with_drafts=MODE == "record")
        return self._memories[module]


class _Names:
    """Names for the folders of this run, which are others in each."""

    def __init__(self, roots: Iterable[str]) -> None:
        names = {root: f"@@{at}@@" for at, root in enumerate(dict.fromkeys(roots))}
        # The longest first: one may begin like another.
        self._names = dict(sorted(names.items(), key=lambda each: -len(each[0])))

    def key(self, said: str, files: dict[str, bytes]) -> str:
        """Of a command, where these files are."""
        told = [DELTA, PYSPARK, self._named(said)]
        told += [f"{self._named(name)} {self._digest(name, files[name])}" for name in sorted(files)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]

    def memory(
        self, answer: dict[str, Any], before: dict[str, bytes], after: dict[str, bytes]
    ) -> Memory | None:
        """Of a command; None where it can't be remembered under other names."""
        changed: dict[str, bytes | None] = dict.fromkeys(before.keys() - after.keys())
        changed |= {name: body for name, body in after.items() if before.get(name) != body}
        for body in changed.values():
            if body is not None and not _is_text(body) and self._named_bytes(body) != body:
                return None
        return Memory(
            json.loads(self._named(json.dumps(answer))),
            {
                self._named(name): None if body is None else self._named_bytes(body)
                for name, body in sorted(changed.items())
            },
        )

    def real(self, text: str) -> str:
        """The text, with the folders of this run in it."""
        for root, name in self._names.items():
            text = text.replace(name, root)
        return text

    def real_bytes(self, body: bytes) -> bytes:
        """So in a file."""
        return self.real(body.decode()).encode() if _is_text(body) else body

    def _named(self, text: str) -> str:
        for root, name in self._names.items():
            text = text.replace(root, name)
        return text

    def _named_bytes(self, body: bytes) -> bytes:
        for root, name in self._names.items():
            body = body.replace(root.encode(), name.encode())
        return body

    def _digest(self, name: str, body: bytes) -> str:
        if name.endswith("/source.parquet"):
            # Its bytes are pyarrow's, and another version writes others.
            table = pq.read_table(name)
            body = f"{table.schema.to_string()} {table.to_pylist()}".encode()
        return hashlib.sha256(self._named_bytes(body)).hexdigest()


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode()
    except UnicodeDecodeError:
        return False


def _files(places: Iterable[Path]) -> dict[str, bytes]:
    """Every file there, but for Hadoop's own checksums, which are made of the others."""
    found = {}
    for place in places:
        for path in [place, *place.rglob("*")]:
            if path.is_file() and not _is_checksum(path):
                found[str(path)] = path.read_bytes()
    return found


def _is_checksum(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".crc")


def _restore(path: Path, body: bytes | None) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if body is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


def _told(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise DeltaSparkError(**answer["error"])
    return answer["result"]


_dice = random.Random()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw who is played live."""
    drawn = MODE == "remembered" and _dice.randrange(LIVE_ONE_IN) == 0
    _Test.module = item.path.stem
    _Test.live = MODE == "live" or drawn or item.get_closest_marker("delta_spark_live") is not None


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSparkPeer]:
    """A session of the real delta-spark, in a process of its own; installed at first use."""
    try:
        where = installed()
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    with RememberedPeer(where, tmp_path_factory.getbasetemp()) as peer:
        yield peer
