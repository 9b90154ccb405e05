"""Run by the Python that has nbclient: run cells in a kernel, and print their outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nbformat  # type: ignore[import-not-found]
from nbclient import NotebookClient  # type: ignore[import-not-found]


def main(ask: dict[str, Any]) -> list[Any]:
    """The outputs of each cell."""
    cells = [nbformat.v4.new_code_cell(code) for code in ask["cells"]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=ask["seconds"], allow_errors=True).execute()
    for theme, path in ask["pages"].items():
        from nbconvert import HTMLExporter  # type: ignore[import-not-found]

        html, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
        Path(path).write_text(html, encoding="utf-8")
    return [cell.outputs for cell in notebook.cells]


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
