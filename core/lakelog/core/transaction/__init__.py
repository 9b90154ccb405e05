"""`OptimisticTransaction`: what was read (`Reads`), what is changed (`Changes`), and the commit of
both (`Committer`).

Source: PROTOCOL.md, "Commit Provenance Information"; the conflict rules are in `conflicts`.
"""
