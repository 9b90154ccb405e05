"""Where lakelog decides otherwise than delta-spark, on purpose; each with its reason.

`docs/interoperability.md` tells users of those that they can meet. A scenario that is listed here
and agrees after all fails its test: the list can't outlive its reasons.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """One reason to differ."""

    reason: str
    ours: str
    """Our verdict."""
    theirs: str
    """delta-spark's."""
    scenarios: tuple[str, ...]
    """Their names, or the ends of them."""


_COMMITTED: Final = "version 2"
_APPEND: Final = "ConcurrentAppendException DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"

DIFFERENCES: Final[dict[str, Difference]] = {
    "a domain's conflict has a condition": Difference(
        "delta-spark raises it without an error condition; we use the one of its exception",
        "ConcurrentTransactionException DELTA_CONCURRENT_TRANSACTION",
        "ConcurrentTransactionException",
        (
            "both set one domain",
            "both set one domain to the same",
            "a domain is removed while the job sets it",
            "a domain is set while the job removes it",
            "another sets a domain; the job sets a domain",
        ),
    ),
    "a protocol from the future has a condition": Difference(
        "it is read, and refused by its number; delta-spark ends in an error of its parser",
        "refused DELTA_INVALID_PROTOCOL_VERSION",
        "refused",
        ("the protocol asks for a reader from the future",),
    ),
    "an OR may narrow": Difference(
        "each side of the OR names partitions, and the file lies in none of them: no row of it "
        "can match; delta-spark takes such a condition for one on data alone",
        _COMMITTED,
        _APPEND,
        ("(n = 8 AND id > 3L) OR day = DATE '2024-02-28' and an append to a partition",),
    ),
    "the empty text is null": Difference(
        "the protocol says so (Partition Value Serialization); delta-spark's conflict checker "
        "reads it as a text",
        _APPEND,
        _COMMITTED,
        ("name IS NULL and an append to the partition spelled {'name': ''}",),
    ),
    "the empty text is null for overwrites": Difference(
        "the same",
        _APPEND,
        _COMMITTED,
        ("a dynamic overwrite of the empty text",),
    ),
    "the empty text is no text": Difference(
        "the same",
        _COMMITTED,
        _APPEND,
        ("name = '' and an append to the partition spelled {'name': ''}",),
    ),
    "the empty text is null for numbers": Difference(
        "the same; delta-spark's conflict checker fails to cast it",
        _APPEND,
        "refused",
        ("n IS NULL and an append to the partition spelled {'n': ''}",),
    ),
    "a write does not change the partitioning": Difference(
        "delta-spark only logs it (`partitionColumnChangeCheck=log-only`), and old files then lack "
        "the new column's values",
        "refused DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE",
        "version 1",
        ("the partitioning changes by a write",),
    ),
}
