"""Values: Arrow's arrays and types for Delta's.

`to_arrow_schema` gives the types that files have for a schema, `from_arrow_schema` the schema for
types. `pc` is `pyarrow.compute`, and `array_of` and its like make arrays; both without loading
pandas, which pyarrow would load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.arrays import array_of, empty_table, integers, scalar_of
    from lakelog.core.arrow.arrow_types import from_arrow_schema, to_arrow_field, to_arrow_schema
    from lakelog.core.arrow.time_zones import EngineZone, zone_of
    from lakelog.core.arrow.variant_values import ARROW_VARIANT, has_variants
    from lakelog.core.compute import pc
    from lakelog.core.portable.leaves import filled_variants
    from lakelog.core.portable.shown_values import python_value
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrays": "array_of empty_table integers scalar_of",
            "arrow.time_zones": "EngineZone zone_of",
            "arrow.arrow_types": "from_arrow_schema to_arrow_field to_arrow_schema",
            "arrow.variant_values": "ARROW_VARIANT has_variants",
            "compute": "pc",
            "portable.leaves": "filled_variants",
            "portable.shown_values": "python_value",
        },
        below="lakelog.core",
    )
