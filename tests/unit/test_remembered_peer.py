"""Tests that are played on memories of delta-spark: when they are, and when they are not."""

from __future__ import annotations

import sys
import uuid
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import write_arrow
from support.delta_spark import DeltaSpark
from support.delta_spark_peer import DeltaSparkPeer
from support.forked_pytest import ForkedPytest
from support.same_again import PLACES, SameAgain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONFTEST = """
from pathlib import Path

from support import delta_spark_memory, remembered_peer
from support.delta_spark import DeltaSpark
from support.delta_spark_peer import DeltaSparkPeer

pytest_plugins = ["support.remembered_peer"]
HERE = Path(__file__).parent
delta_spark_memory.FOLDER = HERE / "remembered"
remembered_peer.LIVE_ONE_IN = 10**9
remembered_peer.installed = lambda: DeltaSpark(python=Path("python"), jars=())


def _live(self, op, *args, **kwargs):
    with (HERE / "live").open("a") as log:
        log.write(f"{args[0].split()[0]}\\n")
    if op == "sql" and args[0].startswith("INSERT"):
        table = Path(args[0].split("`")[1])
        table.mkdir(exist_ok=True)
        number = len(list(table.iterdir()))
        (table / f"{number}.txt").write_text(f"row of {table}")
        return [{"rows": number}]
    return []


DeltaSparkPeer._exchange = _live
"""

STORY = """
def test_story(delta_spark, tmp_path):
    from lakelog.core import write_arrow
    import pyarrow as pa

    path = tmp_path / "t"
    delta_spark.sql("SET a=ONE")
    assert delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (1)") == [{"rows": 0}]
    assert (path / "0.txt").read_text() == f"row of {path}"
    write_arrow(str(tmp_path / "ours"), pa.table({"a": [1, ROW]}))
    delta_spark.sql(f"COPY delta.`{tmp_path}/ours` TO delta.`{path}`")
    LAST
"""


@pytest.fixture(scope="module")
def forked() -> Iterator[ForkedPytest]:
    with ForkedPytest() as each:
        yield each


@pytest.fixture
def played(tmp_path: Path, forked: ForkedPytest) -> Callable[..., tuple[int, list[str]]]:
    """Plays the story in a process, and returns how that ended and what was played live."""
    (tmp_path / "conftest.py").write_text(CONFTEST)

    def play(
        mode: str, *, conf: str = "1", row: str = "2", last: str = "pass"
    ) -> tuple[int, list[str]]:
        story = STORY.replace("ONE", conf).replace("ROW", row).replace("LAST", last)
        (tmp_path / "test_story.py").write_text(story)
        (tmp_path / "live").write_text("")
        done = forked.run(
            tmp_path,
            ["-q", "-p", "no:cacheprovider", "test_story.py"],
            {
                "LAKELOG_DELTA_SPARK": mode,
                "LAKELOG_CACHE": str(tmp_path / "cache"),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # of nine processes, and none is needed
            },
        )
        return done.returncode, (tmp_path / "live").read_text().split()

    return play


def test_a_test_is_remembered_as_a_whole_or_played_as_a_whole(
    played: Callable[..., tuple[int, list[str]]],
) -> None:
    every = ["SET", "INSERT", "COPY"]
    assert played("remembered") == (0, every), "nothing is known yet"
    assert played("record") == (0, every)
    assert played("record") == (0, []), "both commands have memories"
    assert played("remembered") == (0, [])
    assert played("live") == (0, every)
    assert played("remembered", conf="7") == (0, every), "another conf"
    assert played("remembered", row="3") == (0, every), "another byte in a file of ours"
    assert played("remembered", last="delta_spark.sql('SELECT now()')") == (0, [*every, "SELECT"])
    assert played("remembered", last="assert 0") == (1, every), "it fails by what delta-spark does"


def test_a_script_that_stands_alone_is_remembered_by_its_text(
    played: Callable[..., tuple[int, list[str]]], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text("one")
    every = ["SET", "INSERT", "COPY", str(script)]
    alone = f"delta_spark.script({str(script)!r}, 'f', path, alone=True)"
    assert played("record", last=alone) == (0, every)
    assert played("record", last=alone) == (0, [])
    assert played("remembered", last=alone) == (0, [])
    assert played("remembered", last=alone.replace(", alone=True", "")) == (0, every)
    script.write_text("two")
    assert played("remembered", last=alone) == (0, every), "another text"


def test_what_is_drawn_and_the_time_are_the_same_again(tmp_path: Path) -> None:
    def written(seed: str, name: str) -> dict[str, bytes]:
        table = tmp_path / name
        with SameAgain(seed).installed():
            write_arrow(str(table), pa.table({"a": [1, 2]}), mode="append")
        return {str(f.relative_to(table)): f.read_bytes() for f in table.rglob("*") if f.is_file()}

    first = written("one", "a")
    assert len(first) >= 2
    assert written("one", "b") == first
    assert written("two", "c") != first
    assert uuid.uuid4.__module__ == "uuid", "and chance is real again"


ECHO = """
import json, sys, time
print(json.dumps({"result": "ready"}), flush=True)
for line in sys.stdin:
    text = json.loads(line)["args"][0]
    if text == "hang":
        time.sleep(60)
    if text == "die":
        sys.exit(1)
    print(json.dumps({"result": [{"text": text}]}), flush=True)
"""


def test_a_command_never_gets_the_answer_of_one_before(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    with DeltaSparkPeer(DeltaSpark(Path(sys.executable), ()), timeout=3) as peer:
        peer._command = [sys.executable, str(script)]
        assert peer.sql("one") == [{"text": "one"}]
        with pytest.raises(TimeoutError, match="did not answer within 3 s"):
            peer.sql("hang")
        assert peer.sql("two") == [{"text": "two"}]
        with pytest.raises(RuntimeError, match="has ended"):
            peer.sql("die")
        assert peer.sql("three") == [{"text": "three"}]


@pytest.mark.parametrize("place", PLACES)
def test_what_draws_names_is_where_memories_look_for_it(place: str) -> None:
    module, _, name = place.partition(":")
    found = import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    function = getattr(found, "func", found)  # of a cached property
    assert "uuid4" in function.__code__.co_names
