"""A command that looks at a table asks its catalog once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.cli.app import app
from support.terminal import runner
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path_factory.mktemp("unity"), token="t0ken")) as served:
        other_client_commits(served, make_table(served), 1, 2)
        yield served


@pytest.mark.parametrize(
    "command", ["describe", "diff", "files", "history", "report", "sample", "schema"]
)
def test_the_table_is_loaded_once(server: UnityServer, tmp_path: Path, command: str) -> None:
    options = {"diff": ["0", "1"], "report": ["-o", str(tmp_path / "report.html")]}
    conf = [f"--conf={key}={value}" for key, value in server.conf().items()]
    before = len(server.seen)
    done = runner().invoke(app, [command, "lake.s.t", *options.get(command, []), *conf])
    assert done.exit_code == 0, done.output
    paths = [each.path for each in server.seen[before:]]
    assert [path.rpartition("/")[2] for path in paths if "config" not in path] == ["t"]
