"""A plugin of pytest for a suite of a user's: the kit asks its store as `make test` asks ours."""

from __future__ import annotations

from lakelog.logstores.conformance import LogStoreConformance
from support.kit_sizes import IN_FULL, SIZES

for _name, _size in () if IN_FULL else SIZES.items():
    setattr(LogStoreConformance, _name, _size)
