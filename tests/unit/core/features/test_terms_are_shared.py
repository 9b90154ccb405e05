"""A snapshot and a transaction have one `terms`; only metadata that neither has is parsed again."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from support.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]

CONSTRUCTIONS = {
    "features/terms.py": (1, "the value that all others share"),
    "features/protocol.py": (3, "what a caller and the session ask for, before it is metadata"),
    "features/registry.py": (1, "features of metadata that has no protocol yet"),
    "features/iceberg_compat.py": (1, "new metadata, which defaults may still change"),
    "metadata/metadata_changes.py": (1, "modes of two metadata, of which one is new"),
    "metadata/column_mapping_changes.py": (2, "new metadata without its ids, and the table's"),
    "metadata/restored.py": (1, "metadata of two versions"),
    "metadata/row_tracking_rules.py": (1, "new metadata without its names of columns"),
    "metadata/verify.py": (2, "new metadata, not checked yet, and the table's"),
    "rows/constraints.py": (1, "the rules of metadata, for callers that hold it alone"),
    "change_feed/commits.py": (1, "the metadata of one commit"),
    "change_feed/removed.py": (1, "the mode by which files of another version are read"),
    "change_feed/feed.py": (1, "the metadata of one commit"),
    "streaming/schema_changes.py": (1, "the metadata of one commit, or of a stream's log"),
    "create/clone/clone_table.py": (1, "the metadata that a clone is to have"),
    "alter/feature_removal/traces.py": (1, "the metadata of one commit"),
    "alter/row_tracking.py": (1, "the properties as a caller wants them"),
}
"""File in core -> how often it makes `TableProperties`, and of what that no snapshot has."""


def constructions() -> Iterator[str]:
    for root in ("core", "spark", "cli", "contrib", "logstores"):
        top = ROOT / root / "lakelog" / root
        for file in top.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "TableProperties":
                    name = str(file.relative_to(top))
                    yield name if root == "core" else f"{root}/{name}"


def test_properties_are_parsed_only_where_no_snapshot_has_them() -> None:
    assert Counter(constructions()) == {file: count for file, (count, _) in CONSTRUCTIONS.items()}


def test_a_snapshot_hands_its_terms_to_its_transactions(tmp_path: Path) -> None:
    log = new_table(str(tmp_path))
    snapshot = log.update()
    txn = log.start_transaction()
    assert txn.changes.terms is snapshot.terms
    assert snapshot.properties is snapshot.terms.properties


def test_a_transaction_keeps_the_terms_of_its_new_metadata(tmp_path: Path) -> None:
    txn = new_table(str(tmp_path)).start_transaction()
    before = txn.changes.terms
    txn.update_metadata(replace(txn.metadata, configuration={"delta.appendOnly": "true"}))
    assert txn.changes.terms is txn.changes.terms
    assert txn.changes.terms is not before
    assert txn.changes.terms.is_append_only
