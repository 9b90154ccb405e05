"""Whether a commit that lost a race may go after the winner.

The counterpart of delta-spark's `ConflictChecker`: made to be read on its own.
"""
