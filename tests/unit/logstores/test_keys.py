"""What the text of a key means, and how a text is refused that means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.logstores import keys
from lakelog.logstores.errors import LogStoreConfError, UnreadableValueError
from lakelog.logstores.keys import Key, Kind


def key(kind: Kind) -> Key[Any]:
    return Key("spark.lakelog.x", kind, "the default", "")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("flag", " TRUE ", True),
        ("flag", "false", False),
        ("whole", "-7", -7),
        ("number", "1e3", 1000.0),
        ("seconds", "0.5", 0.5),
        ("text", " as it is ", " as it is "),
        ("text", None, "the default"),
    ],
)
def test_a_text_means_what_its_key_takes(kind: Kind, text: str | None, value: Any) -> None:
    assert key(kind).parse(text) == value
    assert key(kind).of({} if text is None else {"spark.lakelog.x": text}) == value


@pytest.mark.parametrize(
    ("kind", "texts", "allowed"),
    [
        ("flag", ["yes", "1", ""], "true or false"),
        ("whole", ["1.5", "ten", ""], "a whole number"),
        ("number", ["nan", "inf", "-inf", "fast"], "a number"),
        ("seconds", ["0", "-1", "nan", "inf", "1s"], "a number of seconds above 0"),
    ],
)
def test_another_text_is_refused_with_what_is_allowed(
    kind: Kind, texts: list[str], allowed: str
) -> None:
    for text in texts:
        with pytest.raises(UnreadableValueError) as caught:
            key(kind).parse(text, "the option")
        expected = f"the option spark.lakelog.x must be {allowed}, but it is {text!r}"
        assert str(caught.value) == expected
        assert (caught.value.key, caught.value.value) == ("spark.lakelog.x", text)


@pytest.mark.parametrize(("text", "is_allowed"), [("14", 0), ("15", 1), ("60", 1), ("61", 0)])
def test_a_number_keeps_to_its_bounds(text: str, is_allowed: int) -> None:
    lease = keys.AZURE_LEASE_DURATION
    if is_allowed:
        assert lease.parse(text) == int(text)
        return
    with pytest.raises(LogStoreConfError, match="whole number of at least 15 and at most 60, but"):
        lease.parse(text)


@pytest.mark.parametrize("text", ["-0.1", "60.5", "nan"])
def test_a_number_that_is_not_whole_has_bounds_too(text: str) -> None:
    assert keys.GCS_INTERVAL.parse("0.5") == 0.5
    with pytest.raises(LogStoreConfError, match="a number of at least 0 and at most 60, but"):
        keys.GCS_INTERVAL.parse(text)
