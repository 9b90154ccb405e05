"""One file in several spellings is one file to everybody who looks for it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelog.core
import lakelog.spark
from lakelog.core import DeltaLog, Operation, delete_rows, update_rows, write_arrow
from lakelog.core.actions import RemoveFile
from lakelog.core.commit.draft import untouched
from lakelog.core.conflicts.winner import WinningCommit
from lakelog.core.errors import (
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaAnalysisError,
)
from lakelog.core.log.commit_file import Commit
from lakelog.core.paths import data_path
from lakelog.core.transaction.optimistic import OptimisticTransaction
from support.commits import write_commit
from support.examples import examples
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import Action

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)
segments = names.filter(lambda name: name not in (".", ".."))


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Two `path`s of one file."""
    path = draw(st.lists(segments, min_size=1, max_size=3))
    if draw(st.booleans()):
        return _spelled(draw, path), _spelled(draw, path)
    heads = st.sampled_from(["/", "memory:/", "memory:///", "memory://spellings/"])
    return draw(heads) + _spelled(draw, path), draw(heads) + _spelled(draw, path)


def _spelled(draw: st.DrawFn, path: list[str]) -> str:
    """Each segment as bare as can be, as Spark has it, or encoded to the last letter; and dots."""
    out: list[str] = []
    for segment in path:
        # A colon could make a scheme of the first segment.
        bare = segment.replace("%", "%25").replace(":", "%3A")
        whole = "".join(f"%{byte:02X}" for byte in segment.encode())
        if out:
            out += draw(st.sampled_from([[], [], ["."], ["", "x", ".."]]))
        out.append(draw(st.sampled_from([bare, quote(segment, safe="=+!$&"), whole])))
    return "/".join(out)


@settings(deadline=None, max_examples=examples(18))
@given(spellings())
def test_whoever_looks_for_a_file_finds_it_in_every_spelling(pair: tuple[str, str]) -> None:
    one, other = pair
    log = new_table(_memory())
    log.start_transaction().commit([add_file(one)], Operation.write("Append"))

    reader, removers = log.start_transaction(), [log.start_transaction() for _ in range(2)]
    reader.filter_files()
    removers[0].commit([RemoveFile(path=other, data_change=True)], Operation("DELETE"))
    log.update()
    assert log.snapshot.num_files == 0
    with pytest.raises(ConcurrentDeleteReadException):
        reader.commit([add_file("new")], Operation("UPDATE"))
    with pytest.raises(ConcurrentDeleteDeleteException):
        removers[1].commit([RemoveFile(path=one, data_change=True)], Operation("DELETE"))

    winner = WinningCommit(Commit(1, "1.json", removes=[{"path": other}]))
    assert not list(untouched([add_file(one)], winner, log.table))
    again: tuple[Action, ...] = add_file(other), RemoveFile(path=other, data_change=True)
    for second in again:
        twice = [add_file(one), second]
        with pytest.raises(DeltaAnalysisError, match="DUPLICATE_ACTIONS"):
            log.start_transaction().commit(twice, Operation.write("Append"))


CHANGES: dict[str, Callable[[str], object]] = {
    "DELETE": lambda uri: delete_rows(uri, "id = 1"),
    "UPDATE": lambda uri: update_rows(uri, {"id": 5}, "id = 1"),
}
_numbers = iter(range(10**9))


def _memory() -> str:
    return f"memory://spellings/{next(_numbers)}"


@pytest.mark.parametrize("properties", [{}, {"delta.enableDeletionVectors": "true"}])
@pytest.mark.parametrize("changes", CHANGES)
def test_a_delete_of_another_client_stays_whatever_is_in_flight(
    tmp_path: Path, changes: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    data = pa.table({"id": [1, 2], "p": ["\u00e9 x"] * 2})
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")
    log = DeltaLog.for_table(uri)
    (add,) = log.snapshot.files()
    # Spark leaves letters beyond ASCII as they are, deltalake encodes what it removes.
    name = add.path.rpartition("/")[2]
    (tmp_path / "t/p=\u00e9 x").mkdir()
    Path(data_path(uri, add.path)).rename(tmp_path / "t/p=\u00e9 x" / name)
    bare = replace(add, path=f"p=\u00e9%20x/{name}")
    encoded = f"p=%C3%A9%20x/{name}"
    log.start_transaction().commit([add.remove(1)], Operation("DELETE"))
    log.start_transaction().commit([bare], Operation.write("Append"))

    commit = OptimisticTransaction.commit_if_needed

    def beaten(txn: OptimisticTransaction, *args: Any) -> int | None:
        version = DeltaLog.for_table(uri).snapshot.version + 1
        write_commit(log, version, replace(bare.remove(2), path=encoded))
        return commit(txn, *args)

    monkeypatch.setattr(OptimisticTransaction, "commit_if_needed", beaten)
    with pytest.raises(ConcurrentDeleteReadException):
        CHANGES[changes](uri)
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 0


_MAY = {
    # A set or dict of the same actions' own paths.
    "core/commit/draft.py: given.get(action.path)",
    "core/features/numbered_rows.py: add.path not in keep",
    "core/features/numbered_rows.py: action.path not in keep",
    "core/transaction/committer.py: {a.path: a.partition_values for a in prepared.actions "
    "if isinstance(a, RemoveFile)}",
    # Files as the transaction was handed them; one that is spelled otherwise is counted afresh.
    "core/conflicts/read_set.py: pc.is_in(files['path'], value_set=wanted)",
    "core/hooks/checksum.py: {a.path: a for a in committed.actions if isinstance(a, AddFile)}",
    "core/hooks/checksum.py: {a.path: a for a in committed.actions if isinstance(a, RemoveFile)}",
    # A commit's own lines, as it wrote them.
    "core/log/commit_identity.py: {each.path for each in actions if isinstance(each, AddFile)}",
    # The writer's own files.
    "core/portable/hive_writer.py: {small[key].path: number for number, key in enumerate(others)}",
    # Files by where the storage has them.
    "core/change_feed/changed_files.py: {file.path: file for file in _found(commit.adds, files)}",
    "core/change_feed/changed_files.py: added.pop(old.path, None)",
    "spark/replay/tasks.py: {each.path: each.length for each in checkpoint.checkpoint.files}",
    "spark/replay/tasks.py: sizes.get(part.path, 0)",
    "core/maintain/vacuum/candidates.py: each.path in names",
    "core/maintain/vacuum/vacuum_table.py: each.path in names",
    # A listing's own spelling; what it spells otherwise is looked up by itself.
    "core/data/missing_files.py: {each.path for each in infos if each.is_file}",
    # A file that has another spelling by now was changed by another writer, and is left alone.
    "core/maintain/optimize/committing.py: live.get(file.path)",
    "core/maintain/optimize/committing.py: pc.is_in(table['path'], value_set=paths)",
    "core/maintain/optimize/committing.py: {file.path: file for file in "
    "to_add_files(table.filter(pc.is_in(table['path'], value_set=paths)))}",
    # The same snapshot's, or one that has another spelling by now and is left alone.
    "core/maintain/repair/repair_table.py: {each.path for each in (*files.gone, *files.before)}",
    "core/maintain/repair/repair_table.py: each.path in planned",
    # A listing's own spelling.
    "core/maintain/vacuum/linked.py: f.path not in inner",
    # Whether it is in a folder.
    "core/commit/file_checks.py: '/' in action.path",
    # Whether it is an absolute one.
    "core/create/clone/cloned_files.py: ':/' in add.path",
    # Columns of a Parquet file.
    "core/data/identity_bounds.py: self._names.get(footer.schema.column(index).path)",
}
_COLUMNS = {"leaf", "column"}


def test_no_code_compares_the_paths_of_actions_as_text() -> None:
    """Two spellings mean one file: by `data_path` or `file_keys`, never by the text itself."""
    modules = [
        (each, each.relative_to(Path(str(root.__file__)).parents[1]).as_posix())
        for root in (lakelog.core, lakelog.spark)
        for each in Path(str(root.__file__)).parent.rglob("*.py")
    ]
    found = {
        f"{name}: {ast.unparse(node)}"
        for module, name in modules
        if re.search(r"\.path\b|\[.path.\]", text := module.read_text())
        for node in ast.walk(ast.parse(text))
        if _goes_by_text(node)
    }
    assert found == _MAY


def _goes_by_text(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=right):
            by_value = any(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in ops)
            return by_value and any(map(_is_path, [left, *right]))
        case ast.SetComp(elt=key) | ast.DictComp(key=key) | ast.Subscript(slice=key):
            return _is_path(key)
        case ast.Set(elts=keys) | ast.Dict(keys=keys):
            return any(map(_is_path, keys))
        case ast.Call(
            func=ast.Attribute(attr="get" | "pop" | "add" | "setdefault"), args=[key, *_]
        ):
            return _is_path(key)
        case ast.Call(func=ast.Attribute(attr="is_in"), args=[key, *_]):
            return isinstance(key, ast.Subscript) and ast.unparse(key.slice) == "'path'"
    return False


def _is_path(node: ast.AST | None) -> bool:
    """Whether this is `action.path`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and not (isinstance(node.value, ast.Name) and node.value.id in _COLUMNS)
    )
