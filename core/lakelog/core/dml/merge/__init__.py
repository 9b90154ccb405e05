"""MERGE: its clauses, what they do to a row, and how that is carried out on Arrow data.

`clauses`, `analysis`, `alignment`, `evolution` and `new_rows` know no engine: an expression is
whatever the engine takes, text or an object. The other modules evaluate them by Arrow.
"""

from __future__ import annotations
