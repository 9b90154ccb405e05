"""The fault checks in one class."""

from __future__ import annotations

from lakelog.logstores.conformance.http.reads import HttpReadChecks
from lakelog.logstores.conformance.http.writes import HttpWriteChecks


class HttpFaultConformance(HttpWriteChecks, HttpReadChecks):
    """What a store on an HTTP service promises when the transport fails. Inherit it.

    Define three fixtures:

    - `endpoint` gives the URL of a real service, `http://host:port`, that the checks may fill;
    - `behind` gives a function that makes the store for any endpoint URL. Let it set the
      store's timeout of a request to a second or two, and the time in which it gives up to some
      three seconds: the checks wait for both, often;
    - `root` gives the URI of a folder that exists or can be made.

    Set `dialect` to how the service speaks. The service must be one whose answers do not depend
    on the address that the client used, since the client talks to a proxy.
    """
