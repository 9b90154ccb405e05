"""Write docs/features.md from `lakelog.core.features.registry`, or say that it is out of date.

python scripts/feature_table.py            # writes the page
python scripts/feature_table.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from written_page import write_or_compare

from lakelog.core.features.advice import activation, how_to_remove
from lakelog.core.features.registry import FEATURES, Feature, Support

PAGE = Path(__file__).parents[1] / "docs" / "features.md"
COMMAND = "python scripts/feature_table.py"

HEAD = f"""\
# Table features

A Delta table lists in its protocol what a client must know to read it, and to write it. A client
that meets a feature which it does not have must refuse the table; this page says what lakelog has.
It is written from the code (`{COMMAND}`); a test fails where they differ.

"""

FOOT = """
*Yes* means that lakelog does what the feature asks. *Until it is on* means that a table may have
the feature in its protocol, and is refused only once its metadata makes use of it. *–* means that
a client need not know the feature for that. Every refusal is an `UnsupportedFeatureError`
(`[DELTA_UNSUPPORTED_FEATURES_FOR_READ]`, `[…_FOR_WRITE]`) that names the features and what to do.
A feature that is not in the table, `collations-preview` for one, is refused in the same way.

## Switching a feature on

By what it is made for: the property or the column in the fourth column. The protocol then gets the
feature by itself, in a new table and, unless the table above says otherwise, in one that exists.

By name, with the property `delta.feature.<name>=supported` (or `enabled`, which means the same):

```python
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.alter import set_properties

uri = "/tmp/guide/with-features"
write_arrow(uri, {"id": [1]}, properties={"delta.feature.domainMetadata": "supported"})
set_properties(uri, {"delta.checkpointPolicy": "v2"})
set_properties(uri, {"delta.feature.vacuumProtocolCheck": "supported"})
print(DeltaLog.for_table(uri).snapshot.protocol.writer_features)
```

```text
['appendOnly', 'domainMetadata', 'invariants', 'v2Checkpoint', 'vacuumProtocolCheck']
```

In a new table it may also be a default of the session,
`spark.databricks.delta.properties.defaults.feature.<name>=supported`. Such properties are never
stored: the protocol holds the feature. What a feature rests on comes with it. Older clients can't
use the table from then on. Some features can be [dropped again](dropping-features.md).

A new table gets the lowest protocol that holds its features: version numbers where they imply
just these, lists of features (writer 7, and reader 3 where readers must know one) else.
"""

WORDS = {Support.YES: "yes", Support.INACTIVE: "until it is on", Support.NO: "**no**", None: "–"}


def render() -> str:
    """The page."""
    lines = [
        "| feature | read | write | what switches it on | rests on | refused, and what to do |",
        "|---|:-:|:-:|---|---|---|",
    ]
    lines += [_row(feature) for feature in sorted(FEATURES.values(), key=lambda f: f.name.lower())]
    return HEAD + "\n".join(lines) + "\n" + FOOT


def _row(feature: Feature) -> str:
    needs = ", ".join(f"`{name}`" for name in feature.requires)
    cells = (
        f"`{feature.name}`",
        WORDS[feature.read],
        WORDS[feature.write],
        _marked(activation(feature)) or "its name alone",
        needs or "–",
        _refusal(feature),
    )
    return f"| {' | '.join(cells)} |"


def _refusal(feature: Feature) -> str:
    if feature.write is Support.YES and feature.read in (Support.YES, None):
        return "–"
    refused = {
        (True, Support.NO): "reading and writing",
        (True, Support.INACTIVE): "reading, and writing once it is on",
        (False, Support.NO): "writing",
        (False, Support.INACTIVE): "writing once it is on",
    }[feature.read is Support.NO, feature.write]
    way = how_to_remove(feature.name)
    if way.startswith("ALTER"):
        way = f"`` {way} ``" if "`" in way else f"`{way}`"
    return f"{refused}. With a client that has it: {way}"


def _marked(text: str) -> str:
    """The text with table properties as code."""
    return re.sub(r"delta\.[\w.*=-]+", lambda found: f"`{found[0]}`", text)


if __name__ == "__main__":
    sys.exit(write_or_compare(PAGE, render(), COMMAND))
