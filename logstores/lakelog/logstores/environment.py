"""What the environment says of the way to a storage: proxies, and certificates to trust.

The SDKs that read and write the log obey it. Arrow's file systems, in C++, ignore it or follow
other rules: so the SDKs' choice is worked out here, and passed to them, or they are not used.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def environment_proxy(url: str) -> str | None:
    """The proxy that botocore would use for a URL: by HTTP_PROXY, HTTPS_PROXY and NO_PROXY.

    Args:
        url: of the service.

    Returns:
        The proxy's URL, with its password if it has one; None where there is none.
    """
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy.removeprefix('//')}"


def needs_requests(url: str) -> bool:
    """Whether only an SDK on `requests` goes where the environment says that a URL is reached.

    Args:
        url: of the service.
    """
    own = any(os.environ.get(name) for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))
    if own and url.startswith("https:"):
        return True
    if not getproxies():
        return False
    from requests.utils import get_environ_proxies, select_proxy

    return select_proxy(url, get_environ_proxies(url)) is not None
