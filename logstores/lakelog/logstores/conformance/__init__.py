"""Does a store keep the promises of the contract? Checks that the author of any store can run.

With pytest, inherit `LogStoreConformance` and give it two fixtures:

    class TestMyStore(LogStoreConformance):
        @pytest.fixture
        def store(self):
            return MyStore({"my.key": "value"})

        @pytest.fixture
        def root(self):
            return "my://bucket/a-new-prefix"

`HttpFaultConformance` does the same for what happens on the way to a service over HTTP.

Without a line of code: `pytest --pyargs lakelog.logstores.conformance.suite --lakelog-uri <uri>`,
or `lakelog conformance <uri>`. Without pytest: `print(run_conformance(make_store, "my://b/new"))`.

The check against a model needs the package `hypothesis`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelog.logstores.conformance.checks.expect import PromiseBrokenError
    from lakelog.logstores.conformance.checks.store_suite import (
        LogStoreConformance,
        QuickConformance,
    )
    from lakelog.logstores.conformance.fault_proxy import FaultProxy
    from lakelog.logstores.conformance.http.fault_suite import HttpFaultConformance
    from lakelog.logstores.conformance.http_dialects import HttpDialect
    from lakelog.logstores.conformance.runner import (
        CheckResult,
        Report,
        run_conformance,
        run_fault_conformance,
    )

__all__ = [
    "CheckResult",
    "FaultProxy",
    "HttpDialect",
    "HttpFaultConformance",
    "LogStoreConformance",
    "PromiseBrokenError",
    "QuickConformance",
    "Report",
    "run_conformance",
    "run_fault_conformance",
]

# Loaded when they are asked for: pytest imports this package at each start, for its plugin.
_LAZY = {
    "CheckResult": "runner",
    "FaultProxy": "fault_proxy",
    "HttpDialect": "http_dialects",
    "HttpFaultConformance": "http.fault_suite",
    "LogStoreConformance": "checks.store_suite",
    "PromiseBrokenError": "checks.expect",
    "QuickConformance": "checks.store_suite",
    "Report": "runner",
    "run_conformance": "runner",
    "run_fault_conformance": "runner",
}

if not TYPE_CHECKING:  # else a type checker takes every name for one that is here

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
