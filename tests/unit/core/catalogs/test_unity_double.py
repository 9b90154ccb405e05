"""The double of Unity Catalog answers as the real server did whose answers were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import support.unity_server
from support.unity_server import BASE, UnityServer, Ways

RECORDED = json.loads(
    Path(support.unity_server.__file__).with_name("unity_exchanges.json").read_bytes()
)
MADE = {"storage_location", "location", "prefix"}


class Same:
    """Turns what a server makes up into what it has in common with what another one makes up.

    Ids, etags and times are numbered in the order in which they first appear, so that two of them
    are equal in both or in neither.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def __call__(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: self(v, k) for k, v in sorted(value.items())}
        if isinstance(value, list):
            found = [self(each) for each in value]
            return sorted(found, key=str) if key.endswith(("features", "endpoints")) else found
        if key in MADE:
            return f"<{key}>"
        # Another server writes the same request at another time.
        made = key in ("created_at", "updated_at", "created-time", "updated-time", "etag")
        if made or (isinstance(value, str) and len(value) == 36 and value.count("-") == 4):
            return f"<{self._seen.setdefault(str(value).removeprefix('etag-'), len(self._seen))}>"
        return value


def test_each_recorded_request_gets_the_recorded_answer() -> None:
    ways = Ways(checks_staged=False)  # the recorded commits had no files
    server = UnityServer("file:///srv/uc", ways)
    theirs, ours = Same(), Same()
    replaced: dict[str, str] = {}

    def ours_for(text: str) -> str:
        for old, new in replaced.items():
            text = text.replace(old, new)
        return text

    for each in RECORDED:
        method, path = each["request"]
        body = b"" if each["body"] is None else ours_for(json.dumps(each["body"])).encode()
        status, reply = server.answer(method, BASE + ours_for(path), body, {})

        assert status == each["status"], (each["what"], reply)
        if each["what"] == "metastore summary (getMetastoreId)":
            continue
        if isinstance(reply, dict) and "error" in reply:
            expected = ours_for(json.dumps(each["reply"]))
            assert reply == json.loads(expected), each["what"]
            continue
        assert ours(reply) == theirs(each["reply"]), each["what"]
        for key in ("id", "table-id", "location"):
            if isinstance(reply, dict) and key in reply:
                replaced[each["reply"][key]] = reply[key]
        metadata = (reply or {}).get("metadata") if isinstance(reply, dict) else None
        if metadata:
            replaced[each["reply"]["metadata"]["etag"]] = metadata["etag"]


def test_the_recording_holds_every_call_of_the_api() -> None:
    asked = {(each["request"][0], each["status"]) for each in RECORDED}
    assert {("GET", 200), ("POST", 409), ("POST", 400), ("POST", 429), ("HEAD", 404)} <= asked
