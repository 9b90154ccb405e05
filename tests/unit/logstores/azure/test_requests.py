"""A request of the client for Azure is one request: nothing below repeats it or sends it on."""

from __future__ import annotations

import pytest

from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.azure.conf import AzureSettings
from lakelog.logstores.azure.credentials import Credential, SasToken, SharedKey
from lakelog.logstores.object_store.store import TryAgainError
from support.scripted_server import scripted_server

ACCOUNT = "devstoreaccount1"
CREDENTIALS = [SharedKey(ACCOUNT, "Zm9v"), SasToken("sv=2025-11-05&sig=a-secret-signature")]


@pytest.mark.parametrize("credential", CREDENTIALS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("status", [302, 307, 308, 408, 429, 500, 503])
def test_a_create_is_sent_once_and_nowhere_else(credential: Credential, status: int) -> None:
    with scripted_server() as server, scripted_server() as elsewhere:
        server.say(status, {}, Location=f"{elsewhere.url}/{ACCOUNT}/lake/key")
        settings = AzureSettings(ACCOUNT, f"{server.url}/{ACCOUNT}", credential)
        with pytest.raises((OSError, TryAgainError)) as caught:
            AzureClient(settings, "lake").create("key", b"body", "token")
        assert len(server.heard) == 1
        assert elsewhere.heard == []
    assert "a-secret-signature" not in f"{caught.value}"
