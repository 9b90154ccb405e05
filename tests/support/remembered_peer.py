"""A delta-spark that remembers: what it was given before, it answers without a JVM.

What delta-spark makes of a command depends on the command, on the files that it finds, on the
session's confs and on its version. All of that is the key of a memory; a test draws its chance and
its time from its own name (`same_again.py`), so that the files are the same in every run. A test is
remembered as a whole, or played by the real delta-spark as a whole, with real chance and real time:
where one key is missing, or where it fails, it begins again, live, and that is what counts. One
test in 160, drawn anew each run, is live from the start; with `LAKELOG_DELTA_SPARK=live` every
one is, and so they are in `make soak`. Where delta-spark sees nothing of ours, in tests marked
`peer_alone`, chance and time may be real: on Spark's executors nothing else is possible.

What is not remembered costs time and nothing else. To remember it, twice, because a test is listed
once it has passed on its memories alone:

    LAKELOG_DELTA_SPARK=record .venv/bin/pytest -n 0 tests/interop
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import json
import os
import random
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow.parquet as pq
import pytest
from _pytest.outcomes import Failed
from _pytest.runner import runtestprotocol

from support.delta_spark import DELTA, PYSPARK, PeerUnavailableError, installed
from support.delta_spark_memory import Memories, Memory
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.examples import SEED
from support.same_again import SameAgain

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from contextlib import AbstractContextManager

    from support.delta_spark import DeltaSpark

MODE: Final = os.environ.get("LAKELOG_DELTA_SPARK", "live" if SEED else "remembered")
LIVE_ONE_IN: Final = 160
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


class _ForgottenError(Failed):
    """A memory that isn't there. No test catches it, for pytest's own are no `Exception`."""


class _How(enum.Enum):
    LIVE = "by the real delta-spark"
    RECALLED = "by memories alone"
    RECORDED = "by the real delta-spark, for the memories"


class _Test:
    """The one that runs: the module that it stands in, its name, and how it is played."""

    module = ""
    name = ""
    how = _How.LIVE
    keys: ClassVar[list[str]] = []


_memories: Final[dict[str, Memories]] = {}


def _of_module(module: str) -> Memories:
    if module not in _memories:
        _memories[module] = Memories.of(module, with_drafts=MODE == "record")
    return _memories[module]


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
        self._confs: dict[str, str] = {}
        self._unsaid: list[str] = []

    def forget_confs(self) -> None:
        """Begin a test with the session's own."""
        for key in list(self._confs):
            self._set("RESET", key, f"RESET {key}")

    def _exchange(self, op: str, *args: Any, **kwargs: Any) -> Any:
        text = args[0]
        if op == "sql" and (conf := _OF_SESSION.match(text)):
            return self._set(conf["verb"].upper(), conf["key"], text)
        if _Test.how is _How.LIVE:
            return self._play(op, *args, **kwargs)
        if op == "history" or (op in ("sql", "script") and self._is_of_this_run(text, **kwargs)):
            if _Test.how is _How.RECALLED:
                raise _ForgottenError
            return self._play(op, *args, **kwargs)
        return self._recall(op, *args, **kwargs)

    def _is_of_this_run(self, text: str, **kwargs: Any) -> bool:
        if "alone" in kwargs:
            return not kwargs["alone"]
        by_name = _BY_NAME.search(text) or not self._places.search(text)
        return bool(by_name or _OF_THE_MOMENT.search(text))

    def _set(self, verb: str, key: str, text: str) -> Any:
        if verb == "SET":
            self._confs[key] = text
        else:
            self._confs.pop(key, None)
        self._unsaid.append(text)
        return []

    def _abandon(self) -> None:
        super()._abandon()
        # The next process knows nothing of this one's.
        self._unsaid = list(self._confs.values())

    def _play(self, op: str, *args: Any, **kwargs: Any) -> Any:
        while self._unsaid:
            super()._exchange("sql", self._unsaid.pop(0))
        return super()._exchange(op, *args, **kwargs)

    def _recall(self, op: str, *args: Any, **kwargs: Any) -> Any:
        # A script is what stands in it, wherever it lies.
        known = (Path(args[0]).read_text(encoding="utf-8"),) if op == "script" else args
        said = json.dumps([op, known, kwargs, self._confs], sort_keys=True)
        named = [args[0], kwargs.get("source"), kwargs.get("target"), *kwargs.get("args", ())]
        places = [Path(each) for text in named if text for each in self._places.findall(text)]
        names = _Names(self._roots.findall(said))
        before = _files(places)
        key = names.key(said, before)
        memories = _of_module(_Test.module)
        memory = memories.find(key)
        if memory is None and _Test.how is _How.RECORDED:
            answer = self._tried(op, *args, **kwargs)
            memory = names.memory(answer, before, _files(places))
            if memory is not None:
                memories.drafts[key] = memory
            return _result_of(answer)
        if memory is None:
            raise _ForgottenError
        _Test.keys.append(key)
        for name, body in memory.files.items():
            _restore(Path(names.real(name)), None if body is None else names.real_bytes(body))
        return _result_of(json.loads(names.real(json.dumps(memory.answer))))

    def _tried(self, op: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return {"result": self._play(op, *args, **kwargs)}
        except DeltaSparkError as exc:
            return {"error": {"kind": exc.kind, "message": str(exc).removeprefix(f"{exc.kind}: ")}}


class _Names:
    """Names for the folders of this run, which are others in each."""

    def __init__(self, roots: Iterable[str]) -> None:
        names = {root: f"@@{at}@@" for at, root in enumerate(dict.fromkeys(roots))}
        # The longest first: one may begin like another.
        self._names = dict(sorted(names.items(), key=lambda each: -len(each[0])))

    def key(self, said: str, files: dict[str, bytes]) -> str:
        """Of a command, where these files are."""
        parts = [DELTA, PYSPARK, self._named(said)]
        parts += [
            f"{self._named(name)} {self._digest(name, files[name])}" for name in sorted(files)
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

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


def _result_of(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise DeltaSparkError(**answer["error"])
    return answer["result"]


_dice = random.Random()
_PLAYED: Final = "delta-spark"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Play a test on memories where it has some, and else, or where that fails, live."""
    if "delta_spark" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    ways = _ways(item)
    for turn, how in enumerate(ways):
        if turn:
            _begin_again(item)
        _Test.module, _Test.name, _Test.how, _Test.keys = item.path.stem, item.name, how, []
        reports = _played(item, nextitem, how)
        if how is _How.RECALLED and all(report.passed for report in reports):
            _of_module(_Test.module).tests[item.name] = _Test.keys
            break
    kind = _Test.how.name.lower() if _Test.how is ways[0] else "forgotten"
    _Test.module, _Test.how = "", _How.LIVE
    for report in reports:
        report.user_properties.append((_PLAYED, kind))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _ways(item: pytest.Item) -> list[_How]:
    """How to play it, one after the other; the last one counts."""
    if MODE == "record":
        _of_module(item.path.stem).tests.pop(item.name, None)
        return [_How.RECALLED, _How.RECORDED]
    if MODE == "live" or item.name not in _of_module(item.path.stem).tests:
        return [_How.LIVE]
    drawn = _dice.randrange(LIVE_ONE_IN) == 0
    return [_How.LIVE] if drawn else [_How.RECALLED, _How.LIVE]


def _played(item: pytest.Item, nextitem: pytest.Item | None, how: _How) -> list[pytest.TestReport]:
    same: AbstractContextManager[None] = contextlib.nullcontext()
    if how is not _How.LIVE and item.get_closest_marker("peer_alone") is None:
        same = SameAgain(f"{item.path.stem}::{item.name}").installed()
    with same:
        return runtestprotocol(item, log=False, nextitem=nextitem)


def _begin_again(item: Any) -> None:
    """As if it had not been played: what a fixture raised is else raised once more."""
    item._initrequest()
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for definition in definitions:
            if definition.cached_result is not None and definition.cached_result[2] is not None:
                definition.cached_result = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """What several tests share has memories of its own: any of them may be the first."""
    if fixturedef.scope not in ("module", "class") or not _Test.module or MODE == "live":
        return (yield)
    name = f"{fixturedef.argname} {getattr(request, 'param', '')}"
    tests = _of_module(_Test.module).tests
    if MODE != "record" and name not in tests:
        return (yield)
    of_test = _Test.how, _Test.keys
    if _Test.how is _How.LIVE:
        # Whatever has no memory is live here, and only here.
        _Test.how = _How.RECORDED
    _Test.keys = []
    try:
        with SameAgain(f"{_Test.module}::{name}").installed():
            value = yield
        tests[name] = _Test.keys
    finally:
        _Test.how, _Test.keys = of_test
    return value


@pytest.fixture(autouse=True)
def _own_confs(request: pytest.FixtureRequest) -> None:
    """No test finds what another one set in delta-spark's session."""
    if "delta_spark" in request.fixturenames:
        request.getfixturevalue("delta_spark").forget_confs()


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSparkPeer]:
    """A session of the real delta-spark, in a process of its own; installed at first use."""
    try:
        where = installed()
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    with RememberedPeer(where, tmp_path_factory.getbasetemp()) as peer:
        yield peer


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests had a delta-spark that remembers, and which were no longer remembered."""
    played: dict[str, list[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for kind in (value for key, value in report.user_properties if key == _PLAYED):
                    played.setdefault(kind, []).append(report.nodeid.partition("::")[0])
    if not played:
        return
    counts = ", ".join(f"{len(each)} {kind}" for kind, each in sorted(played.items()))
    terminalreporter.write_line(f"tests with delta-spark: {counts}")
    for module, count in Counter(played.get("forgotten", ())).most_common():
        terminalreporter.write_line(f"  forgotten, so played live: {count} of {module}")


def pytest_sessionfinish() -> None:
    """Write down what was recorded."""
    if MODE == "record":
        for memories in _memories.values():
            memories.keep()
