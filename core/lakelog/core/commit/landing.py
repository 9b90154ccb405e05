"""Whether a commit is in the log, as far as its writer can know.

A writer knows that nothing landed only as long as it has sent nothing, or after a proof: another's
commit has the version, or the storage refused the write and shows no file. Everything between is
doubt, and in doubt nothing is deleted that the commit names. So the mark is set before the first
byte goes to the storage, and only a proof clears it: an exception raised between any two
statements finds it set.
"""

from __future__ import annotations


class Landing:
    """What is known of one transaction's commit; `CommitWriter` keeps it."""

    __slots__ = ("_given", "_tried", "_version")

    def __init__(self) -> None:
        """Nothing was sent."""
        self._given: set[bytes] = set()
        self._tried: int | None = None
        self._version: int | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the commit is in the log, or may be, or may still land."""
        return self._tried is not None

    @property
    def tried(self) -> int | None:
        """The version that may hold the commit; None where none can."""
        return self._tried

    @property
    def version(self) -> int | None:
        """The version that does hold it; None where that is not known."""
        return self._version

    def trying(self, version: int) -> None:
        """The next statement sends the commit to the storage, as this version."""
        # An earlier commit of the transaction may have sent a greater one, which may still land.
        self._tried = version if self._tried is None else max(self._tried, version)

    def given(self, digest: bytes) -> None:
        """A store gets the last of these lines with the next statement; see `LineDigest`."""
        self._given.add(digest)

    def was_given(self, digest: bytes) -> bool:
        """Whether a store got all of these lines. A file of ours with other lines is torn."""
        return digest in self._given

    def landed(self, version: int) -> None:
        """It is proven that this version holds the commit."""
        self._tried = version
        self._version = version

    def refused(self, version: int) -> None:
        """It is proven that this version does not hold the commit, and never will."""
        if version == self._tried and self._version is None:
            self._tried = None
