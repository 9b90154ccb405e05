"""A stand-in for `orjson` where it is missing: the calls that lakelog makes, by `json`.

lakelog is sent to Spark's workers as an archive of Python sources; orjson is compiled and can't.
A worker without it reads the log correctly but some ten times more slowly.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any


def ensure_orjson() -> None:
    """Make `import orjson` work; do nothing where it does."""
    try:
        import orjson  # noqa: F401  # asking whether it is there
    except ImportError:
        sys.modules["orjson"] = _stand_in()


def _stand_in() -> ModuleType:
    made = ModuleType("orjson", __doc__)
    vars(made).update(loads=_loads, dumps=_dumps, JSONDecodeError=json.JSONDecodeError)
    return made


def _loads(value: bytes | bytearray | memoryview | str) -> Any:
    return json.loads(bytes(value) if isinstance(value, memoryview) else value)


def _dumps(value: Any) -> bytes:
    # Like orjson: compact, UTF-8, NaN and infinity are null.
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=True)
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
