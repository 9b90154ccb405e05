"""`OptimisticTransaction`: what was read, what is changed, and the commit of both.

Source: PROTOCOL.md, "Commit Provenance Information"; the conflict rules are in `conflicts`.
"""
