"""The fault proxy, which the conformance kit ships."""

from __future__ import annotations

from lakelog.logstores.conformance.fault_proxy import FaultProxy

__all__ = ["FaultProxy"]
