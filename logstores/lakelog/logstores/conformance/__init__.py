"""Does a store keep the promises of the contract? Checks that any store's author can run.

With pytest, inherit `LogStoreConformance` and give it two fixtures:

    class TestMyStore(LogStoreConformance):
        @pytest.fixture
        def store(self):
            return MyStore({"my.key": "value"})

        @pytest.fixture
        def root(self):
            return "my://bucket/a-new-prefix"

Without pytest: `print(run_conformance(make_store, "my://bucket/a-new-prefix"))`.

The check against a model needs the package `hypothesis`.
"""

from lakelog.logstores.conformance._expect import PromiseBrokenError
from lakelog.logstores.conformance._runner import CheckResult, Report, run_conformance
from lakelog.logstores.conformance._suite import LogStoreConformance

__all__ = [
    "CheckResult",
    "LogStoreConformance",
    "PromiseBrokenError",
    "Report",
    "run_conformance",
]
